//===- DegreesTest.cpp - Tensor degrees in manifests, good and bad --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/DescribeManifest.h"
#include "test/runtime/plan/TinyDegrees.h"

#include <google/protobuf/util/json_util.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace dyna;
using testing::HasSubstr;

namespace {

TEST(DegreesTest, GoodOnesAreAccepted) {
  Status status = checkManifest(manifestWithDegrees());
  EXPECT_TRUE(status.isOk()) << status.message();
}

/// Half of the input, no more, has to have room where tokens are split.
TEST(DegreesTest, PartsOfTheInputNeedLessRoom) {
  plan::Manifest manifest = manifestWithDegrees();
  plan::LayerKind *block = manifest.mutable_degrees(1)->mutable_kinds(1);
  int64_t whole = block->tiers(DYNA_TIER_INPUT).tq();
  block->mutable_tiers(DYNA_TIER_INPUT)->set_tq((whole + 3) / 4);
  EXPECT_TRUE(checkManifest(manifest).isOk());
  block->mutable_tiers(DYNA_TIER_INPUT)->set_tq((whole + 3) / 4 - 1);
  EXPECT_THAT(checkManifest(manifest).message(),
              HasSubstr("bytes per token, its input needs"));
}

/// Three ranks have up to 11 of every 32 tokens, of 48 bytes each here: 16.5
/// bytes for each token of the whole, and blocks of whole alignments.
TEST(DegreesTest, PartsOfTheInputAreRoundedUp) {
  plan::Manifest manifest = tinyManifest();
  ASSERT_EQ(manifest.kinds(1).tiers(DYNA_TIER_INPUT).tq(), 48);
  addDegree(manifest, 3, true);
  auto *tier = manifest.mutable_degrees(0)->mutable_kinds(1)->mutable_tiers(
      DYNA_TIER_INPUT);
  tier->set_tq(18);
  Status status = checkManifest(manifest);
  EXPECT_TRUE(status.isOk()) << status.message();
  for (int64_t less : {17, 16}) {
    tier->set_tq(less);
    EXPECT_THAT(checkManifest(manifest).message(),
                HasSubstr(formatText("the input tier has %d bytes per token, "
                                     "its input needs 18",
                                     less)));
  }
}

struct BadDegrees {
  const char *message;
  std::function<void(plan::Manifest &)> spoil;
};

plan::LayerKind *block(plan::Manifest &manifest) {
  return manifest.mutable_degrees(0)->mutable_kinds(1);
}

plan::LayerKind::Role &forward(plan::Manifest &manifest) {
  return *block(manifest)->mutable_roles(DYNA_ROLE_FORWARD);
}

const BadDegrees badDegrees[] = {
    {"has tp=1: expects 2 to",
     [](auto &m) { m.mutable_degrees(0)->set_tp(1); }},
    {"has tp=1000000: expects 2 to",
     [](auto &m) { m.mutable_degrees(0)->set_tp(1000000); }},
    {"'embedding.tp2' stands where 'embedding.tp4' is expected",
     [](auto &m) { m.mutable_degrees(0)->set_tp(4); }},
    {"the tensor degree tp2 is there twice",
     [](auto &m) { *m.add_degrees() = m.degrees(0); }},
    {"has 2 kinds of layers, the model has 3",
     [](auto &m) { m.mutable_degrees(0)->mutable_kinds()->RemoveLast(); }},
    {"'block' stands where 'block.tp2' is expected",
     [](auto &m) { block(m)->set_name("block"); }},
    {"other numbers of parameters, splits",
     [](auto &m) { block(m)->mutable_splits()->RemoveLast(); }},
    {"is split along dimension 2 of 2",
     [](auto &m) { block(m)->mutable_splits(0)->set_dim(2); }},
    {"is split along dimension -1 of 2",
     [](auto &m) { block(m)->mutable_splits(0)->set_dim(-1); }},
    {"parameter 0:",
     [](auto &m) { // no factor of two ranks
       block(m)->mutable_splits(0)->mutable_parts(0)->set_size(3);
     }},
    {"parameter 0:",
     [](auto &m) {
       block(m)->mutable_splits(0)->mutable_parts(0)->set_stride(0);
     }},
    {"parameter 0:",
     [](auto &m) { // split and summed over the same ranks
       addPart(block(m)->mutable_splits(0)->mutable_gradient_partial(), 1, 2);
     }},
    {"in dimension 1, but",
     [](auto &m) { block(m)->mutable_splits(2)->clear_parts(); }},
    {"an input or output that does not fit",
     [](auto &m) {
       block(m)->mutable_inputs(0)->set_rows(plan::TensorSpec::TQ_PART);
     }},
    {"an input or output that does not fit",
     [](auto &m) {
       m.mutable_degrees(1)->mutable_kinds(1)->mutable_outputs(0)->set_rows(
           plan::TensorSpec::TQ);
     }},
    {"bytes per token, its input needs",
     [](auto &m) { block(m)->mutable_tiers(DYNA_TIER_INPUT)->set_tq(8); }},
    {"expects 10 roles", [](auto &m) { block(m)->mutable_roles()->Clear(); }},
    {"accepts other parameters in sparse form than 'block'",
     [](auto &m) { block(m)->add_sparse_parameters(0); }},
    {"has other roles than 'block'",
     [](auto &m) {
       block(m)->mutable_roles(DYNA_ROLE_RECOMPUTE_FULL)->set_present(false);
     }},
    {"exchanges over group 0, which is none of tp=2",
     [](auto &m) { forward(m).mutable_exchanges(0)->set_group(0); }},
    {"exchanges over group 3, which is none of tp=2",
     [](auto &m) { forward(m).mutable_exchanges(0)->set_group(3); }},
    {"exchanges over group 4, which is none of tp=2",
     [](auto &m) { forward(m).mutable_exchanges(0)->set_group(4); }},
    {"which is none of tp=2",
     [](auto &m) {
       forward(m).mutable_exchanges(0)->mutable_tensors(0)->set_dealt_group(2);
     }},
    {"an exchange of nothing",
     [](auto &m) { forward(m).mutable_exchanges(0)->clear_tensors(); }},
    {"unknown kind of exchange 9",
     [](auto &m) {
       forward(m).mutable_exchanges(0)->mutable_tensors(0)->set_kind(
           static_cast<plan::LayerExchange::Kind>(9));
     }},
    {"exchange: -1 bytes per row are out of range",
     [](auto &m) {
       forward(m)
           .mutable_exchanges(0)
           ->mutable_tensors(0)
           ->mutable_bytes()
           ->set_tq(-1);
     }},
    {"a function of the optimizer exchanges something",
     [](auto &m) {
       *block(m)->mutable_roles(DYNA_ROLE_UPDATE)->add_exchanges() =
           forward(m).exchanges(0);
     }},
    {"a function that is not there exchanges something",
     [](auto &m) {
       auto *role = m.mutable_degrees(0)->mutable_kinds(0)->mutable_roles(
           DYNA_ROLE_BACKWARD_WEIGHT);
       *role->add_exchanges() = forward(m).exchanges(0);
     }},
    {"'block' exchanges something, but is that of one rank",
     [](auto &m) {
       auto *role = m.mutable_kinds(1)->mutable_roles(DYNA_ROLE_FORWARD);
       *role->add_exchanges() = forward(m).exchanges(0);
     }},
    {"parameter 'wte' is split in two ways at degree tp2",
     [](auto &m) {
       plan::LayerKind *head = m.mutable_degrees(0)->mutable_kinds(2);
       *head->mutable_parameters(0) = m.kinds(2).parameters(0);
       head->mutable_splits(0)->clear_parts();
     }},
    {"group 3 is of tp=8, which was not compiled",
     [](auto &m) { m.mutable_groups(0)->set_tp(8); }},
    {"group 3:",
     [](auto &m) { m.mutable_groups(0)->mutable_parts(0)->set_size(3); }},
    {"group 3 is along nothing",
     [](auto &m) { m.mutable_groups(0)->clear_parts(); }},
    {"strategy 'dp=x'", [](auto &m) { m.add_strategies("dp=x"); }},
    {"two strategies have the name 'a'",
     [](auto &m) { m.add_strategies("a: dp=4"); }},
    {"needs the tensor degree tp8, which was not compiled",
     [](auto &m) { m.add_strategies("c: tp=8"); }},
    {"needs the tensor degree tp2.sp, which was not compiled",
     [](auto &m) { m.add_strategies("c: tp=2,sp=1"); }},
};

TEST(DegreesTest, BadOnesAreRefusedWithAReason) {
  for (const BadDegrees &bad : badDegrees) {
    plan::Manifest manifest = manifestWithDegrees();
    bad.spoil(manifest);
    EXPECT_THAT(checkManifest(manifest).message(), HasSubstr(bad.message));
  }
}

TEST(DegreesTest, AreDescribed) {
  StatusOr<Model> model = Model::create(manifestWithDegrees());
  ASSERT_TRUE(model.isOk()) << model.status().message();
  std::string text = describeManifest(*model, 64);
  EXPECT_THAT(text, HasSubstr("strategies\n  a: dp=2,tp=2\n"));
  EXPECT_THAT(text, HasSubstr("tensor degree tp=4, sp=1"));
  EXPECT_THAT(text, HasSubstr("dimension 1 over [tp]"));
  EXPECT_THAT(text, HasSubstr("group 3: [tp:2/1] of tp=4"));
  std::string json = manifestToJson(*model);
  // Complete: it can be read back.
  plan::Manifest readBack, whole = model->manifest();
  whole.set_gradient_type(model->gradientType());
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(json, &readBack).ok());
  EXPECT_EQ(readBack.SerializeAsString(), whole.SerializeAsString());
  EXPECT_THAT(json, HasSubstr("\"rows\": \"TQ_PART\""));
}

} // namespace
