//===- ManifestHashTest.cpp - What plans of a manifest depend on ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/model/Model.h"
#include "test/runtime/plan/TinyDegrees.h"

#include <functional>
#include <gtest/gtest.h>
#include <map>

using namespace dyna;

namespace {

struct Change {
  const char *field;
  std::function<void(plan::Manifest &)> make;
};

plan::LayerKind &block(plan::Manifest &m) { return *m.mutable_kinds(1); }

const Change covered[] = {
    {"format", [](auto &m) { m.set_format(2); }},
    {"model", [](auto &m) { m.set_model("other"); }},
    {"compute_type", [](auto &m) { m.set_compute_type(plan::F32); }},
    {"gradient_type", [](auto &m) { m.set_gradient_type(plan::F64); }},
    {"facts.family", [](auto &m) { m.mutable_facts()->set_family("gpt2"); }},
    {"facts.vocabulary", [](auto &m) { m.mutable_facts()->set_vocabulary(3); }},
    {"facts.positions", [](auto &m) { m.mutable_facts()->set_positions(3); }},
    {"facts.width", [](auto &m) { m.mutable_facts()->set_width(3); }},
    {"facts.heads", [](auto &m) { m.mutable_facts()->set_heads(3); }},
    {"facts.kv_heads", [](auto &m) { m.mutable_facts()->set_kv_heads(3); }},
    {"facts.head_dim", [](auto &m) { m.mutable_facts()->set_head_dim(3); }},
    {"facts.feed_forward",
     [](auto &m) { m.mutable_facts()->set_feed_forward(3); }},
    {"facts.config_json",
     [](auto &m) { m.mutable_facts()->set_config_json("{}"); }},
    {"parameters", [](auto &m) { m.add_parameters(); }},
    {"parameters.name",
     [](auto &m) { m.mutable_parameters(1)->set_name("other"); }},
    {"parameters.shape",
     [](auto &m) { m.mutable_parameters(1)->set_shape(0, 77); }},
    {"parameters.constant",
     [](auto &m) { m.mutable_parameters(1)->set_constant(2); }},
    {"parameters.normal_std",
     [](auto &m) { m.mutable_parameters(1)->set_normal_std(2); }},
    {"parameters.decay",
     [](auto &m) { m.mutable_parameters(1)->set_decay(false); }},
    {"parameters.frozen",
     [](auto &m) { m.mutable_parameters(1)->set_frozen(true); }},
    {"kinds.name", [](auto &m) { block(m).set_name("other"); }},
    {"kinds.parameters", [](auto &m) { block(m).add_parameters(); }},
    {"kinds.parameters.type",
     [](auto &m) { block(m).mutable_parameters(0)->set_type(plan::F32); }},
    {"kinds.parameters.rows",
     [](auto &m) {
       block(m).mutable_parameters(0)->set_rows(plan::TensorSpec::S);
     }},
    {"kinds.inputs.stream",
     [](auto &m) { block(m).mutable_inputs(0)->set_stream(1); }},
    {"kinds.tiers.stream",
     [](auto &m) { block(m).mutable_tiers(DYNA_TIER_INPUT)->set_stream(1); }},
    {"kinds.stream", [](auto &m) { block(m).set_stream(1); }},
    {"kinds.key_stream", [](auto &m) { block(m).set_key_stream(1); }},
    {"kinds.parameters.shape",
     [](auto &m) { block(m).mutable_parameters(0)->set_shape(0, 77); }},
    {"kinds.inputs",
     [](auto &m) { block(m).mutable_inputs(0)->set_type(plan::F32); }},
    {"kinds.outputs",
     [](auto &m) { block(m).mutable_outputs(0)->set_type(plan::F32); }},
    {"kinds.tiers.tq",
     [](auto &m) { block(m).mutable_tiers(DYNA_TIER_INPUT)->set_tq(1); }},
    {"kinds.tiers.tkv",
     [](auto &m) { block(m).mutable_tiers(DYNA_TIER_INPUT)->set_tkv(1); }},
    {"kinds.tiers.s",
     [](auto &m) { block(m).mutable_tiers(DYNA_TIER_INPUT)->set_s(1); }},
    {"kinds.tiers.constant",
     [](auto &m) { block(m).mutable_tiers(DYNA_TIER_INPUT)->set_constant(1); }},
    {"kinds.tiers.products",
     [](auto &m) { block(m).mutable_tiers(DYNA_TIER_PRODUCTS)->set_tq(1); }},
    {"kinds.tiers.elementwise",
     [](auto &m) { block(m).mutable_tiers(DYNA_TIER_ELEMENTWISE)->set_tq(1); }},
    {"kinds.tiers.deferred",
     [](auto &m) { block(m).mutable_tiers(DYNA_TIER_DEFERRED)->set_tq(1); }},
    {"kinds.roles.present",
     [](auto &m) {
       block(m).mutable_roles(DYNA_ROLE_BACKWARD)->set_present(false);
     }},
    {"kinds.roles.workspace",
     [](auto &m) {
       block(m)
           .mutable_roles(DYNA_ROLE_BACKWARD)
           ->mutable_workspace()
           ->set_tq(1);
     }},
    {"kinds.roles.flops_per_token",
     [](auto &m) { block(m).mutable_roles(0)->set_flops_per_token(1); }},
    {"kinds.roles.flops_per_target",
     [](auto &m) { block(m).mutable_roles(0)->set_flops_per_target(1); }},
    {"kinds.roles.flops_per_pair",
     [](auto &m) { block(m).mutable_roles(0)->set_flops_per_pair(1); }},
    {"kinds.roles.flops_per_causal_pair",
     [](auto &m) { block(m).mutable_roles(0)->set_flops_per_causal_pair(1); }},
    {"kinds.roles.flops_per_part_token",
     [](auto &m) { block(m).mutable_roles(0)->set_flops_per_part_token(1); }},
    {"kinds.flops_per_part_token",
     [](auto &m) { block(m).set_flops_per_part_token(1); }},
    {"kinds.target_table", [](auto &m) { block(m).set_target_table(1); }},
    {"kinds.flops_per_token", [](auto &m) { block(m).set_flops_per_token(1); }},
    {"kinds.flops_per_target",
     [](auto &m) { block(m).set_flops_per_target(1); }},
    {"kinds.attention_flops_per_pair",
     [](auto &m) { block(m).set_attention_flops_per_pair(1); }},
    {"kinds.causal", [](auto &m) { block(m).set_causal(true); }},
    {"kinds.variant_of", [](auto &m) { block(m).set_variant_of("other"); }},
    {"kinds.frozen", [](auto &m) { block(m).set_frozen(true); }},
    {"kinds.stops_gradient",
     [](auto &m) { block(m).set_stops_gradient(true); }},
    {"kinds.splits", [](auto &m) { block(m).add_splits(); }},
    {"layers", [](auto &m) { m.mutable_layers()->RemoveLast(); }},
    {"layers.name", [](auto &m) { m.mutable_layers(1)->set_name("other"); }},
    {"layers.kind", [](auto &m) { m.mutable_layers(1)->set_kind(2); }},
    {"layers.parameters",
     [](auto &m) { m.mutable_layers(1)->set_parameters(0, 77); }},
    {"layers.producers",
     [](auto &m) { m.mutable_layers(2)->set_producers(0, 0); }},
    {"batch_tables", [](auto &m) { m.set_batch_tables(DYNA_BATCH_OFFSETS); }},
    {"degrees", [](auto &m) { m.mutable_degrees()->RemoveLast(); }},
    {"degrees.tp", [](auto &m) { m.mutable_degrees(0)->set_tp(3); }},
    {"degrees.sp", [](auto &m) { m.mutable_degrees(0)->set_sp(true); }},
    {"degrees.kinds",
     [](auto &m) {
       m.mutable_degrees(0)->mutable_kinds(1)->set_flops_per_token(1);
     }},
    {"degrees.kinds.splits.dim",
     [](auto &m) {
       m.mutable_degrees(0)->mutable_kinds(1)->mutable_splits(0)->set_dim(1);
     }},
    {"degrees.kinds.splits.parts",
     [](auto &m) {
       addPart(m.mutable_degrees(0)
                   ->mutable_kinds(1)
                   ->mutable_splits(0)
                   ->mutable_parts(),
               1, 2);
     }},
    {"degrees.kinds.splits.gradient_partial",
     [](auto &m) {
       addPart(m.mutable_degrees(0)
                   ->mutable_kinds(1)
                   ->mutable_splits(0)
                   ->mutable_gradient_partial(),
               1, 2);
     }},
    {"groups", [](auto &m) { m.add_groups(); }},
    {"groups.tp", [](auto &m) { m.mutable_groups(0)->set_tp(8); }},
    {"groups.parts.stride",
     [](auto &m) { m.mutable_groups(0)->mutable_parts(0)->set_stride(2); }},
    {"groups.parts.size",
     [](auto &m) { m.mutable_groups(0)->mutable_parts(0)->set_size(4); }},
};

const Change notCovered[] = {
    {"hash", [](auto &m) { m.set_hash(1); }},
    {"producer", [](auto &m) { m.set_producer("another"); }},
    {"matmul", [](auto &m) { m.set_matmul("library"); }},
    {"strategies", [](auto &m) { m.add_strategies("c: dp=4"); }},
    {"ranges", [](auto &m) { m.set_ranges("c: 0-"); }},
    {"target", [](auto &m) { m.set_target("cuda"); }},
    {"kinds.weight_groups", [](auto &m) { block(m).add_weight_groups(); }},
    {"degrees.kinds.weight_groups",
     [](auto &m) {
       m.mutable_degrees(0)->mutable_kinds(1)->add_weight_groups();
     }},
    {"kinds.sparse_parameters",
     [](auto &m) { block(m).add_sparse_parameters(1); }},
    {"degrees.kinds.sparse_parameters",
     [](auto &m) {
       m.mutable_degrees(0)->mutable_kinds(1)->add_sparse_parameters(1);
     }},
    {"facts.stored_prefix",
     [](auto &m) { m.mutable_facts()->set_stored_prefix("body."); }},
    {"facts.skipped_buffers",
     [](auto &m) { m.mutable_facts()->add_skipped_buffers(".mask"); }},
    {"facts.config_defaults",
     [](auto &m) { m.mutable_facts()->set_config_defaults("{}"); }},
    {"parameters.stored",
     [](auto &m) {
       m.mutable_parameters(1)->mutable_stored()->set_name("other");
     }},
    {"parameters.added",
     [](auto &m) { m.mutable_parameters(1)->set_added(true); }},
};

TEST(ManifestHashTest, CoversEveryFieldThatPlansDependOn) {
  const plan::Manifest manifest = manifestWithDegrees();
  std::map<uint64_t, std::string> seen = {{manifestHash(manifest), "nothing"}};
  for (const Change &change : covered) {
    plan::Manifest changed = manifest;
    change.make(changed);
    auto [same, isNew] = seen.insert({manifestHash(changed), change.field});
    EXPECT_TRUE(isNew) << change.field << " hashes like " << same->second;
  }
}

TEST(ManifestHashTest, LeavesOutTheOthers) {
  const plan::Manifest manifest = manifestWithDegrees();
  for (const Change &change : notCovered) {
    plan::Manifest changed = manifest;
    change.make(changed);
    EXPECT_EQ(manifestHash(changed), manifestHash(manifest)) << change.field;
  }
}

} // namespace
