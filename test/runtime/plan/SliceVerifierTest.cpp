//===- SliceVerifierTest.cpp - Rules of slices, broken once each ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/graph/Planner.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/plan/PlanEditor.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const std::vector<int64_t> lengths = {20, 7, 30};

/// The tiny model as if its blocks had attention.
plan::Manifest slicedManifest() {
  plan::Manifest manifest = tinyManifest();
  manifest.mutable_kinds(1)->set_key_bytes(64);
  manifest.mutable_kinds(1)->set_key_gradient_bytes(128);
  manifest.set_hash(manifestHash(manifest));
  return manifest;
}

const Model &model() {
  static const Model model = *Model::create(slicedManifest());
  return model;
}

ExecutableGraph graphOf(const std::string &text) {
  return *ExecutableGraph::create(model(), *parseStrategy(text));
}

PlanOptions sliced() {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 32;
  options.slices.count = 3;
  options.inFlight = 1;
  return options;
}

/// Samples 0 and 1 are in micro-batches 0 to 2, sample 2 is in 3 to 5.
plan::Plan goodPlan() {
  return *Planner(model()).training(lengths, 57, sliced());
}

std::string verify(const plan::Plan &plan, const Model &model) {
  const ExecutableGraph graph = *ExecutableGraph::create(model, Strategy());
  return verifyPlan(graph, plan, lengths, {}).message();
}

TEST(SliceVerifierTest, GoodPlansPass) {
  for (const char *text :
       {"dp=1", "dp=2", "pp=2,layers=3+2", "dp=2,pp=3,layers=2+2+1,zero=1"})
    for (Schedule schedule : allSchedules())
      for (bool trains : {true, false}) {
        const ExecutableGraph graph = graphOf(text);
        PlanOptions options = sliced();
        options.schedule = schedule;
        auto plan = trains ? Planner(graph).training(lengths, 57, options)
                           : Planner(graph).evaluation(lengths, 57, options);
        ASSERT_TRUE(plan.isOk()) << plan.status().message();
        const Status status = verifyPlan(graph, *plan, lengths, {});
        EXPECT_TRUE(status.isOk()) << status.message();
        EXPECT_GE(plan->microBatchCount(), 6);
      }
}

struct Case {
  const char *message;
  std::function<void(Editor)> spoil;
};

plan::Segment &slice(Editor e, int microBatch) {
  return e.plan.microBatches[microBatch].segments.back();
}

const Case cases[] = {
    // P2
    {"micro-batch 4 takes tokens of sample 2 from 11 on, but micro-batches "
     "before it end at 10",
     [](Editor e) { ++slice(e, 4).begin, --slice(e, 4).length; }},
    {"micro-batch 4 takes tokens of sample 2 from 9 on, but micro-batches "
     "before "
     "it end at 10",
     [](Editor e) { --slice(e, 4).begin, ++slice(e, 4).length; }},
    {"micro-batches have only the first 29 of 30 tokens of sample 2",
     [](Editor e) { --slice(e, 5).length; }},
    {"takes tokens [20, +11) of sample 2, which has 30",
     [](Editor e) { ++slice(e, 5).length; }},
    {"micro-batch 4 takes tokens of sample 2 from 20 on",
     [](Editor e) {
       std::swap(e.plan.microBatches[4], e.plan.microBatches[5]);
     }},
    {"micro-batch 3 has two slices of sample 2",
     [](Editor e) {
       e.plan.microBatches[3].segments.push_back(slice(e, 4));
       slice(e, 4) = slice(e, 5);
     }},
    {"micro-batch 5 has an empty slice of sample 2",
     [](Editor e) {
       slice(e, 4).length = 20;
       slice(e, 5).begin = 30, slice(e, 5).length = 0;
     }},
    {"gives sample 2 keys [0, +19), but its tokens up to the segment's last "
     "are "
     "[0, +20)",
     [](Editor e) { slice(e, 4).keyEnd = 19; }},
    {"gives sample 2 keys [10, +10), but its tokens up to the segment's last "
     "are "
     "[0, +20)",
     [](Editor e) { slice(e, 4).keyBegin = 10; }},
    // P3
    {"micro-batch 3 has the slice before it, and has not passed the layer",
     [](Editor e) {
       const int target = e.find(Instruction::LOAD, 0, 3);
       for (int layer = 4; layer >= 0; --layer)
         e.move(Instruction::FORWARD, layer, 4, target);
       e.move(Instruction::LOAD, 0, 4, target);
       e.move(Instruction::TAKE_KEYS, 1, 3, target);
     }},
    {"micro-batch 4 has the slice behind it, and its backward has not passed "
     "the "
     "layer",
     [](Editor e) {
       const int target = e.find(Instruction::BACKWARD, 4, 4);
       for (int layer = 0; layer <= 4; ++layer) {
         e.move(Instruction::FREE, layer, 3, target);
         e.move(Instruction::BACKWARD, layer, 3, target);
       }
     }},
    {"names micro-batch 1, but the first one of the bundle is 0",
     [](Editor e) { e.at(Instruction::TAKE_KEYS, 2, 0).microBatch = 1; }},
    {"names micro-batch 1, but the last one of the bundle is 2",
     [](Editor e) { e.at(Instruction::CLEAR_KEY_GRADS, 2, 2).microBatch = 1; }},
    {"names micro-batch 1, but the first one of the bundle is 0",
     [](Editor e) { e.at(Instruction::FREE_KEYS, 2, 0).microBatch = 1; }},
    {"the layer did this before for the slices of bundle 0",
     [](Editor e) {
       e.move(Instruction::TAKE_KEYS, 2, 0, e.find(Instruction::FORWARD, 2, 1),
              true);
     }},
    {"the layer did this before for the slices of bundle 0",
     [](Editor e) {
       e.move(Instruction::CLEAR_KEY_GRADS, 2, 2,
              e.find(Instruction::BACKWARD, 2, 1), true);
     }},
    {"the layer did this before for the slices of bundle 0",
     [](Editor e) {
       e.move(Instruction::FREE_KEYS, 2, 0, e.find(Instruction::FREE, 0, 0),
              true);
     }},
    // P6
    {"keys block of layer 2 bundle 0",
     [](Editor e) { e.remove(Instruction::TAKE_KEYS, 2, 0); }},
    {"key gradients block of layer 2 bundle 0",
     [](Editor e) { e.remove(Instruction::CLEAR_KEY_GRADS, 2, 2); }},
    {"keys block of layer 2 bundle 0",
     [](Editor e) { e.remove(Instruction::FREE_KEYS, 2, 0); }},
    {"keys block of layer 2 bundle 0",
     [](Editor e) {
       e.move(Instruction::FREE_KEYS, 2, 0,
              e.find(Instruction::BACKWARD, 2, 0));
     }},
    {"'keys' is 64, but it takes no such block here",
     [](Editor e) {
       e.move(Instruction::TAKE_KEYS, 2, 0, e.find(Instruction::FORWARD, 0, 0),
              true);
       Instruction &i = e.instructions[e.find(Instruction::FORWARD, 0, 0) - 1];
       i.layer = 0;
       placeOf(i, Operand::Keys) = 64;
     }},
};

TEST(SliceVerifierTest, EveryRuleIsEnforced) {
  for (const Case &bad : cases) {
    plan::Plan plan = goodPlan();
    ASSERT_EQ(verify(plan, model()), "");
    bad.spoil(Editor(plan));
    EXPECT_THAT(verify(plan, model()), HasSubstr(bad.message));
  }
}

TEST(SliceVerifierTest, WholeSamplesNeedNoStore) {
  PlanOptions whole = sliced();
  whole.slices = {};
  plan::Plan plan = *Planner(model()).training(lengths, 57, whole);
  Editor e(plan);
  Instruction take;
  take.op = Instruction::TAKE_KEYS, take.layer = 2;
  e.instructions.insert(
      e.instructions.begin() + e.find(Instruction::FORWARD, 2), take);
  EXPECT_THAT(verify(plan, model()),
              HasSubstr("micro-batch 0 has no slice of a sample"));
}

TEST(SliceVerifierTest, SlicesStayOnOneReplica) {
  const ExecutableGraph graph = graphOf("dp=2");
  plan::Plan plan = *Planner(graph).training(lengths, 57, sliced());
  const int last = plan.microBatchCount() - 1;
  plan.microBatches[last].replica = 1 - plan.microBatches[last].replica;
  EXPECT_THAT(verifyPlan(graph, plan, lengths, {}).message(),
              HasSubstr("of two replicas"));
}

/// A block outside of a plan: attention that looks at later tokens, or code without
/// stores.
TEST(SliceVerifierTest, ModelsMustAllowSlices) {
  plan::Manifest manifest = slicedManifest();
  plan::LayerKind *block = manifest.mutable_kinds(1);
  block->set_attention_flops_per_pair(4);
  auto check = [&](const char *message) {
    manifest.set_hash(manifestHash(manifest));
    const Model changed = *Model::create(manifest);
    plan::Plan plan = goodPlan();
    plan.manifestHash = changed.hash();
    EXPECT_THAT(verify(plan, changed), HasSubstr(message));
    EXPECT_NE(
        Planner(changed).training(lengths, 57, sliced()).status().message(),
        "");
  };
  check("has attention that is not causal and looks at later slices");
  block->set_causal(true);
  block->set_key_bytes(0);
  check("has no store for the keys of slices; compile the model again");
}

} // namespace
