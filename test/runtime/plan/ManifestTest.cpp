//===- ManifestTest.cpp - Manifests, good and bad -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/plan/graph/DescribeManifest.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/planner/graph/Planner.h"
#include "test/runtime/executor/TinyModel.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <functional>

using namespace dyna;
using testing::HasSubstr;

namespace {

TEST(ManifestTest, TheTinyModelIsValid) {
  Status status = checkManifest(tinyManifest());
  EXPECT_TRUE(status.isOk()) << status.message();
}

/// Every layer takes the output of the one that is before it now.
void chain(plan::Manifest &manifest) {
  for (int l = 0; l < manifest.layers_size(); ++l) {
    manifest.mutable_layers(l)->clear_producers();
    if (l > 0)
      manifest.mutable_layers(l)->add_producers(l - 1);
  }
}

/// Adds heads that are ranges of one parameter of the block.
void addGroups(plan::Manifest &manifest, int64_t count, int slot,
               int dimension) {
  plan::WeightGroups *groups = manifest.mutable_kinds(1)->add_weight_groups();
  groups->set_count(count);
  groups->add_parts()->set_parameter(slot);
  groups->mutable_parts(0)->set_dimension(dimension);
}

struct BadManifest {
  const char *message;
  std::function<void(plan::Manifest &)> spoil;
};

const BadManifest badManifests[] = {
    {"format 2", [](auto &m) { m.set_format(2); }},
    {"layers 1 and 2 are of one kind, but of 'h.0.w1' and 'h.1.w1' only one",
     [](auto &m) {
       for (plan::Parameter &parameter : *m.mutable_parameters())
         parameter.set_frozen(parameter.name() == "h.1.w1");
     }},
    {"all parameters are frozen",
     [](auto &m) {
       for (plan::Parameter &parameter : *m.mutable_parameters())
         parameter.set_frozen(true);
     }},
    {"compute type", [](auto &m) { m.set_compute_type(plan::I32); }},
    {"the gradient type",
     [](auto &m) { m.set_gradient_type(plan::BF16); }}, // beside f64
    {"vocabulary 0", [](auto &m) { m.mutable_facts()->set_vocabulary(0); }},
    {"positions -1", [](auto &m) { m.mutable_facts()->set_positions(-1); }},
    {"tables 16 of micro-batches",
     [](auto &m) { m.set_batch_tables(DYNA_BATCH_TABLES + 1); }},
    {"'wte' is there twice",
     [](auto &m) { m.mutable_parameters(1)->set_name("wte"); }},
    {"has no name", [](auto &m) { m.mutable_parameters(1)->set_name(""); }},
    {"too large",
     [](auto &m) {
       for (int i = 0; i < 2; ++i)
         m.mutable_parameters(0)->set_shape(i, INT64_C(1) << 30);
     }},
    {"the shape is", [](auto &m) { m.mutable_parameters(0)->set_shape(0, 0); }},
    {"not finite",
     [](auto &m) { m.mutable_parameters(0)->set_normal_std(-1); }},
    {"is not used by any layer",
     [](auto &m) {
       *m.add_parameters() = m.parameters(1);
       m.mutable_parameters(m.parameters_size() - 1)->set_name("spare");
     }},
    {"bytes per row",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_tiers(DYNA_TIER_PRODUCTS)->set_tq(-8);
     }},
    {"constant bytes",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_roles(1)->mutable_workspace()->set_constant(
           INT64_C(1) << 50);
     }},
    {"expects 10 roles",
     [](auto &m) { m.mutable_kinds(1)->mutable_roles()->RemoveLast(); }},
    {"has no forward function",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_roles(DYNA_ROLE_FORWARD)->set_present(false);
     }},
    {"has no backward function",
     [](auto &m) {
       for (int role : {DYNA_ROLE_BACKWARD, DYNA_ROLE_BACKWARD_WEIGHT})
         m.mutable_kinds(1)->mutable_roles(role)->set_present(false);
     }},
    {"has no update function",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_roles(DYNA_ROLE_UPDATE)->set_present(false);
     }},
    {"at least two layers",
     [](auto &m) {
       while (m.layers_size() > 1)
         m.mutable_layers()->RemoveLast();
     }},
    {"layer 2 is of kind 7 of 3",
     [](auto &m) { m.mutable_layers(2)->set_kind(7); }},
    {"uses parameter 99 of 11",
     [](auto &m) { m.mutable_layers(2)->set_parameters(0, 99); }},
    {"lists 2 parameters, but its kind takes 3",
     [](auto &m) { m.mutable_layers(2)->mutable_parameters()->RemoveLast(); }},
    {"the shape of parameter 'h.0.b1'",
     [](auto &m) { m.mutable_layers(2)->set_parameters(0, 2); }},
    {"layer 2 'h.1' does not take the output of the layer before it alone",
     [](auto &m) { m.mutable_layers(2)->set_producers(0, 0); }},
    {"layer 2 'h.1' does not take the output of the layer before it alone",
     [](auto &m) { m.mutable_layers(2)->add_producers(0); }},
    {"layer 2 'h.1' does not take the output of the layer before it alone",
     [](auto &m) { m.mutable_layers(2)->clear_producers(); }},
    {"layer 0 'embedding' does not take the output of the layer before it "
     "alone",
     [](auto &m) { m.mutable_layers(0)->add_producers(0); }},
    {"'block' has 3 tiers, but there are 4",
     [](auto &m) { m.mutable_kinds(1)->mutable_tiers()->RemoveLast(); }},
    {"the first layer takes token ids",
     [](auto &m) {
       m.mutable_layers()->DeleteSubrange(0, 1);
       chain(m);
     }},
    {"is not what the layer before gives",
     [](auto &m) { m.mutable_kinds(1)->mutable_inputs(0)->set_shape(0, 7); }},
    {"the last layer gives the loss",
     [](auto &m) { m.mutable_layers()->RemoveLast(); }},
    {"only the last layer gives a loss",
     [](auto &m) {
       m.mutable_layers()->SwapElements(3, 4);
       chain(m);
     }},
    {"bytes per token, its input needs",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_tiers(DYNA_TIER_INPUT)->set_tq(8);
     }},
    {"it gives a loss, but takes no target ids",
     [](auto &m) { m.mutable_kinds(2)->mutable_inputs()->RemoveLast(); }},
    {"only layers that give a loss take target ids",
     [](auto &m) { *m.mutable_kinds(1)->add_inputs() = m.kinds(2).inputs(1); }},
    {"its second output is not the loss of an exit",
     [](auto &m) {
       *m.mutable_kinds(1)->add_outputs() = m.kinds(1).outputs(0);
     }},
    {"its second output is not the loss of an exit",
     [](auto &m) {
       *m.mutable_kinds(2)->add_outputs() = m.kinds(2).outputs(0);
     }},
    {"expects 1 or 2 inputs and outputs, but has 1 and 3",
     [](auto &m) {
       for (int i = 0; i < 2; ++i)
         *m.mutable_kinds(1)->add_outputs() = m.kinds(2).outputs(0);
     }},
    {"2 weights of losses, but 1 layers give one",
     [](auto &m) {
       for (double weight : {0.5, 1.0})
         m.mutable_facts()->add_loss_weights(weight);
     }},
    {"the weight -0.500000 of a loss is not finite, or is negative",
     [](auto &m) { m.mutable_facts()->add_loss_weights(-0.5); }},
    {"the weight inf of a loss is not finite, or is negative",
     [](auto &m) { m.mutable_facts()->add_loss_weights(1.0 / 0.0); }},
    {"0 groups of weights of kind 0, with 0 parts",
     [](auto &m) { m.mutable_kinds(1)->add_weight_groups(); }},
    {"groups along dimension 0 of parameter 1: expects a matrix",
     [](auto &m) { addGroups(m, 1, 1, 0); }},
    {"groups along dimension 2 of parameter 0",
     [](auto &m) { addGroups(m, 1, 0, 2); }},
    {"groups along dimension 0 of parameter 3",
     [](auto &m) { addGroups(m, 1, 3, 0); }},
    {"1000003 groups along dimension 0 of parameter 0",
     [](auto &m) { addGroups(m, 1000003, 0, 0); }},
    {"parameter 0 is in two lists of groups",
     [](auto &m) {
       addGroups(m, 1, 0, 0);
       addGroups(m, 1, 0, 1);
     }},
    {"sparse parameter 3 behind -1, of 3",
     [](auto &m) { m.mutable_kinds(1)->add_sparse_parameters(3); }},
    {"sparse parameter -1 behind -1",
     [](auto &m) { m.mutable_kinds(1)->add_sparse_parameters(-1); }},
    {"sparse parameter 0 behind 0",
     [](auto &m) {
       for (int i = 0; i < 2; ++i)
         m.mutable_kinds(1)->add_sparse_parameters(0);
     }},
    {"is no matrix",
     [](auto &m) { m.mutable_kinds(1)->add_sparse_parameters(1); }},
    {"negative flops",
     [](auto &m) { m.mutable_kinds(1)->set_flops_per_token(-1); }},
    {"negative flops",
     [](auto &m) { m.mutable_kinds(1)->set_flops_per_part_token(-1); }},
    {"negative flops of a role",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_roles(1)->set_flops_per_part_token(-1);
     }},
    {"layer kind 'block', input: has rows of stream 1, but a model has stream "
     "0 "
     "alone",
     [](auto &m) { m.mutable_kinds(1)->mutable_inputs(0)->set_stream(1); }},
    {"layer kind 'block', products tier: has rows of stream 2",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_tiers(DYNA_TIER_PRODUCTS)->set_stream(2);
     }},
    {"layer kind 'block', workspace: has rows of stream -1",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_roles(1)->mutable_workspace()->set_stream(
           -1);
     }},
    {"layer kind 'block': has rows of stream 1",
     [](auto &m) { m.mutable_kinds(1)->set_stream(1); }},
    {"layer kind 'block', keys: has rows of stream 1",
     [](auto &m) { m.mutable_kinds(1)->set_key_stream(1); }},
    {"unknown element type",
     [](auto &m) {
       m.mutable_kinds(1)->mutable_inputs(0)->set_type(
           static_cast<plan::ElementType>(77));
     }},
};

TEST(ManifestTest, BadOnesAreRefusedWithAReason) {
  for (const BadManifest &bad : badManifests) {
    plan::Manifest manifest = tinyManifest();
    bad.spoil(manifest);
    EXPECT_THAT(checkManifest(manifest).message(), HasSubstr(bad.message));
  }
}

/// Blocks that are exits: they give a loss beside their activation.
TEST(ManifestTest, LayersInsideTheChainMayGiveLosses) {
  plan::Manifest manifest = tinyManifest();
  const uint64_t hash = manifestHash(manifest);
  manifest.mutable_facts()->add_loss_weights(0.25);
  EXPECT_EQ(manifestHash(manifest), hash) << "weights do not change plans";
  *manifest.mutable_kinds(1)->add_outputs() = manifest.kinds(2).outputs(0);
  *manifest.mutable_kinds(1)->add_inputs() = manifest.kinds(2).inputs(1);
  const int last = manifest.layers_size() - 1;
  manifest.mutable_facts()->clear_loss_weights();
  for (int loss = 0; loss < last; ++loss)
    manifest.mutable_facts()->add_loss_weights(loss + 0.5);
  StatusOr<Model> model = Model::create(manifest);
  ASSERT_TRUE(model.isOk()) << model.status().message();
  EXPECT_EQ(model->lossOf(0), -1);
  for (int layer = 1; layer <= last; ++layer) {
    EXPECT_EQ(model->lossLayers()[layer - 1], layer);
    EXPECT_EQ(model->lossOf(layer), layer - 1);
    EXPECT_EQ(model->lossWeight(layer - 1), layer - 0.5);
  }
}

TEST(ManifestTest, HashCoversWhatMattersOnly) {
  plan::Manifest manifest = tinyManifest();
  uint64_t hash = manifestHash(manifest);
  EXPECT_EQ(hash, manifest.hash());
  manifest.set_producer("another");
  manifest.set_matmul("library");
  manifest.add_strategies("a: dp=2,tp=1,pp=1");
  EXPECT_EQ(manifestHash(manifest), hash);
  manifest.mutable_layers(1)->set_name("renamed");
  EXPECT_NE(manifestHash(manifest), hash);
}

/// Each row class has a count of its own, in values and in formulas.
TEST(ManifestTest, RowsAreThoseOfTheirClass) {
  plan::Manifest manifest = tinyManifest();
  plan::LinearBytes *products =
      manifest.mutable_kinds(1)->mutable_tiers(DYNA_TIER_PRODUCTS);
  products->set_tq(64);
  products->set_tkv(6400);
  products->set_s(640000);
  manifest.set_hash(manifestHash(manifest));
  auto model = Model::create(manifest);
  ASSERT_TRUE(model.isOk()) << model.status().message();
  const RankView view = RankView::whole(*model);
  const Load load{33, 97, 65}; // rounded up: 64, 128 and 96
  EXPECT_EQ(view.tierBytes(1, DYNA_TIER_PRODUCTS, load),
            64 * 64 + 6400 * 128 + 640000 * 96);
  for (auto [rows, count] : {std::pair(plan::TensorSpec::TQ, 33),
                             {plan::TensorSpec::TKV, 97},
                             {plan::TensorSpec::S, 65},
                             {plan::TensorSpec::TQ_PART, 33},
                             {plan::TensorSpec::FIXED, 1}}) {
    plan::TensorSpec spec;
    spec.set_rows(rows);
    EXPECT_EQ(view.rowsOf(spec, load), count);
  }
}

/// A manifest that names no stream means stream 0, as all did before streams had
/// names: its bytes, and so its hash, are the same.
TEST(ManifestTest, StreamZeroTakesNoBytes) {
  plan::Manifest manifest = tinyManifest();
  const std::string bytes = manifest.SerializeAsString();
  manifest.mutable_kinds(1)->set_stream(0);
  manifest.mutable_kinds(1)->set_key_stream(0);
  manifest.mutable_kinds(1)->mutable_inputs(0)->set_stream(0);
  manifest.mutable_kinds(1)->mutable_tiers(0)->set_stream(0);
  EXPECT_EQ(manifest.SerializeAsString(), bytes);
  auto model = Model::create(manifest);
  ASSERT_TRUE(model.isOk());
  EXPECT_THAT(manifestToJson(*model), HasSubstr("\"stream\": 0"));
  EXPECT_THAT(manifestToJson(*model), HasSubstr("\"key_stream\": 0"));
}

TEST(ManifestTest, TiersAndOwners) {
  auto model = Model::create(tinyManifest());
  ASSERT_TRUE(model.isOk());
  const RankView view = RankView::whole(*model);
  const Load load{33, 33, 2}; // counts as 64 tokens
  int64_t row = 8 * tinyWidth, hidden = 8 * tinyHidden;
  EXPECT_EQ(view.inputBytes(0, load), 4 * 64);
  EXPECT_EQ(view.inputBytes(1, load), row * 64);
  EXPECT_EQ(view.keptBytes(1, plan::RECOMPUTE_FULL, load), row * 64);
  EXPECT_EQ(view.keptBytes(1, plan::RECOMPUTE_SELECTIVE, load),
            (row + hidden) * 64);
  EXPECT_EQ(view.keptBytes(1, plan::RECOMPUTE_NONE, load),
            (2 * row + 2 * hidden) * 64);
  EXPECT_EQ(view.lateBytes(1, plan::RECOMPUTE_SELECTIVE, true, load),
            2 * (row + hidden) * 64);
  EXPECT_EQ(view.gradientBytes(0, load), 0);
  EXPECT_EQ(view.gradientBytes(1, load), row * 64);
  // The table is tied: the embedding owns it.
  EXPECT_EQ(view.owner(0), 0);
  EXPECT_TRUE(view.updates(0, 0));
  EXPECT_FALSE(view.updates(4, 0));
  EXPECT_TRUE(view.updates(4, 1));
  EXPECT_EQ(nearestMode(view.kind(4), plan::RECOMPUTE_FULL),
            plan::RECOMPUTE_NONE);
  EXPECT_EQ(model->totalElements(),
            tinyVocabulary * tinyWidth +
                3 * (2 * tinyWidth * tinyHidden + tinyHidden) + tinyWidth);
}

TEST(ManifestTest, PersistentPartsDoNotOverlap) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  auto model = Model::create(tinyManifest(tiny));
  ASSERT_TRUE(model.isOk());
  const RankView view = RankView::whole(*model);
  PersistentLayout layout = persistentLayout(view);
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (int p = 0; p < view.parameters(); ++p) {
    const ParameterPlace &place = layout.parameters[p];
    int64_t elements = view.elements(p);
    for (int64_t at : {place.master, place.gradient, place.m, place.v})
      ranges.push_back({at, at + 4 * elements});
    ranges.push_back({place.copy, place.copy + 2 * elements});
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 0; i < ranges.size(); ++i) {
    EXPECT_EQ(ranges[i].first % DYNA_BLOCK_ALIGNMENT, 0);
    EXPECT_LE(ranges[i].second,
              i + 1 < ranges.size() ? ranges[i + 1].first : layout.bytes);
  }
  PersistentLayout evaluation = persistentLayout(view, Persistent::Masters);
  EXPECT_LT(evaluation.bytes, layout.bytes);
  EXPECT_EQ(evaluation.parameters[0].gradient, -1);
  EXPECT_GE(evaluation.parameters[0].master, 0);
  // What layer functions read, alone, behind something else.
  PersistentLayout values = persistentLayout(view, Persistent::Values, 4096);
  EXPECT_LT(values.bytes, evaluation.bytes);
  EXPECT_EQ(values.parameters[0].master, -1);
  EXPECT_EQ(values.parameters[0].copy, 4096);
}

/// A frozen parameter has one tensor, in the type that layers read.
TEST(ManifestTest, FrozenParametersTakeOneTensor) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  const Model all = *Model::create(tinyManifest(tiny));
  tiny.frozen = {"wte"};
  const Model frozen = *Model::create(tinyManifest(tiny));
  const RankView view = RankView::whole(frozen);
  const PersistentLayout layout = persistentLayout(view);
  const ParameterPlace &place = layout.parameters[0];
  EXPECT_GE(place.master, 0);
  for (int64_t none : {place.copy, place.gradient, place.m, place.v})
    EXPECT_EQ(none, -1);
  EXPECT_EQ(view.owner(0), -1);
  EXPECT_EQ(view.updatedElements(0), 0);
  // Instead of a copy of 2 bytes and four tensors of 4, one of 2.
  EXPECT_EQ(persistentLayout(RankView::whole(all)).bytes - layout.bytes,
            4 * dyna_align_block(4 * view.elements(0)));
  EXPECT_EQ(typeOf(frozen, 0, ParameterPart::Master), plan::BF16);
  EXPECT_EQ(typeOf(frozen, 1, ParameterPart::Master), plan::F32);
}

/// The matrices of a layer follow each other whatever biases stand between them
/// in its list: products by them can be one (decision 20), which no number of a
/// run tells.
TEST(ManifestTest, MatricesOfALayerAreNeighbours) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  auto model = Model::create(tinyManifest(tiny));
  ASSERT_TRUE(model.isOk());
  const RankView view = RankView::whole(*model);
  int blocks = 0;
  for (bool training : {true, false}) {
    PersistentLayout layout = persistentLayout(
        view, training ? Persistent::Training : Persistent::Masters);
    for (int layer = 0; layer < view.layers(); ++layer) {
      std::vector<int> matrices, vectors;
      for (int p : view.layer(layer).parameters())
        (view.parameter(p).shape_size() > 1 ? matrices : vectors).push_back(p);
      if (matrices.size() < 2 || vectors.empty())
        continue;
      ++blocks;
      // Or there is nothing to keep apart.
      ASSERT_TRUE(matrices[0] < vectors[0] && vectors[0] < matrices[1]);
      auto expectNext = [&](int64_t ParameterPlace::*part, int64_t element) {
        int64_t end = layout.parameters[matrices[0]].*part +
                      dyna_align_block(element * view.elements(matrices[0]));
        EXPECT_EQ(layout.parameters[matrices[1]].*part, end) << layer;
      };
      expectNext(&ParameterPlace::master, 4);
      expectNext(&ParameterPlace::copy, 2);
      if (!training)
        continue;
      expectNext(&ParameterPlace::gradient, 4);
      expectNext(&ParameterPlace::m, 4);
      expectNext(&ParameterPlace::v, 4);
    }
  }
  EXPECT_GE(blocks, 4);
}

/// Narrow gradients take two bytes where they took four; nothing else moves but
/// by that.
TEST(ManifestTest, GradientsTakeTheirOwnType) {
  TinyOptions options;
  options.compute = plan::BF16;
  plan::Manifest manifest = tinyManifest(options);
  auto wide = Model::create(manifest);
  manifest.set_gradient_type(plan::F32);
  auto same = Model::create(manifest);
  manifest.set_gradient_type(plan::BF16);
  auto narrow = Model::create(manifest);
  ASSERT_TRUE(wide.isOk() && same.isOk() && narrow.isOk());
  EXPECT_EQ(wide->gradientType(), plan::F32);
  EXPECT_EQ(narrow->gradientType(), plan::BF16);
  EXPECT_EQ(narrow->masterType(), plan::F32);
  int64_t saved = 0;
  for (int p = 0; p < wide->parameters(); ++p)
    saved += dyna_align_block(4 * wide->elements(p)) -
             dyna_align_block(2 * wide->elements(p));
  EXPECT_GT(saved, 0);
  PersistentLayout before = persistentLayout(RankView::whole(*wide));
  PersistentLayout after = persistentLayout(RankView::whole(*narrow));
  EXPECT_EQ(persistentLayout(RankView::whole(*same)).bytes, before.bytes);
  EXPECT_EQ(before.bytes - after.bytes, saved);
  EXPECT_EQ(before.parameters[1].gradient - before.parameters[0].gradient,
            dyna_align_block(4 * wide->elements(0)));
  EXPECT_EQ(after.parameters[1].gradient - after.parameters[0].gradient,
            dyna_align_block(2 * wide->elements(0)));
  EXPECT_EQ(before.parameters[0].gradient, after.parameters[0].gradient);
  EXPECT_EQ(before.parameters[0].m - saved, after.parameters[0].m);
}

TEST(ManifestTest, DescriptionsNameWhatThereIs) {
  auto model = Model::create(tinyManifest());
  ASSERT_TRUE(model.isOk());
  std::string page = describeManifest(*model, 1024);
  for (const char *word : {"model tiny", "h.2.w2", "recompute selective",
                           "vocabulary 11", "1 to 3     block"})
    EXPECT_THAT(page, HasSubstr(word));
  EXPECT_THAT(manifestToJson(*model),
              HasSubstr("\"attention_flops_per_pair\""));
}

// Whatever bytes come: no crash, and what is accepted can be planned for.
TEST(ManifestTest, DamagedBytesDoNoHarm) {
  google::protobuf::LogSilencer silence;
  const std::string bytes = tinyManifest().SerializeAsString();
  uint64_t counter = 0;
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (uint64_t change = random(4) + 1; change > 0; --change)
      switch (random(3)) {
      case 0:
        damaged[random(damaged.size())] = static_cast<char>(random(256));
        break;
      case 1:
        damaged.erase(random(damaged.size()), random(8));
        break;
      default:
        damaged.insert(random(damaged.size()), 1,
                       static_cast<char>(random(256)));
      }
    plan::Manifest manifest;
    if (!manifest.ParseFromString(damaged))
      continue;
    auto model = Model::create(manifest);
    if (!model.isOk())
      continue;
    ++accepted;
    PlanOptions options;
    options.recompute = {plan::RECOMPUTE_FULL};
    auto bytesNeeded = Planner(*model).largestDynamicBytes(options, true);
    auto planned = Planner(*model).training({5, 60}, 65, options);
    EXPECT_EQ(planned.isOk(), bytesNeeded.isOk());
    describeManifest(*model, 100);
    manifestToJson(*model);
  }
  EXPECT_GT(accepted, 100);
}

} // namespace
