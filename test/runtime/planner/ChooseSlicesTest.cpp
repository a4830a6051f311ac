//===- ChooseSlicesTest.cpp - Slices that costs find worth it -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/ChooseSlices.h"
#include "runtime/base/Text.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/sim/PlanTimes.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

#include <limits>
#include <numeric>

using namespace dyna;
using testing::HasSubstr;

namespace {

/// The tiny model with so many positions, whose blocks attend.
Model attendingModel(bool isCausal = true) {
  plan::Manifest manifest = tinyManifest();
  manifest.mutable_facts()->set_positions(1 << 14);
  plan::LayerKind *block = manifest.mutable_kinds(1);
  block->set_attention_flops_per_pair(64);
  block->set_causal(isCausal);
  block->set_key_bytes(64);
  block->set_key_gradient_bytes(64);
  manifest.set_hash(manifestHash(manifest));
  return *Model::create(manifest);
}

PlanOptions automatic(Schedule schedule = Schedule::Adaptive) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 4096;
  options.longestSample = 1 << 14;
  options.schedule = schedule;
  options.inFlight = 8;
  options.slices.policy = SlicePolicy::Auto;
  return options;
}

class ChooseSlicesTest : public testing::Test {
protected:
  plan::Plan planOf(const std::string &strategy,
                    const std::vector<int64_t> &lengths,
                    const PlanOptions &options) {
    graph_ = *ExecutableGraph::create(model_, *parseStrategy(strategy));
    const int64_t targets =
        std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
    auto plan = Planner(*graph_).training(lengths, targets, options);
    EXPECT_TRUE(plan.isOk()) << plan.status().message();
    const Status status = verifyPlan(*graph_, *plan, lengths, {});
    EXPECT_TRUE(status.isOk()) << status.message();
    return *plan;
  }
  double makespan(const plan::Plan &plan) {
    return timePlan(*graph_, plan, CostModel(model_))->makespan;
  }
  static bool isSliced(const plan::Plan &plan) {
    bool any = false;
    for (const plan::MicroBatch &microBatch : plan.microBatches)
      any |= continuesSample(microBatch);
    return any;
  }

  const Model model_ = attendingModel();
  std::optional<ExecutableGraph> graph_;
};

TEST_F(ChooseSlicesTest, OneLongSampleIsSliced) {
  for (Schedule schedule :
       {Schedule::Adaptive, Schedule::OneForwardOneBackward, Schedule::GPipe}) {
    PlanOptions options = automatic(schedule);
    const plan::Plan sliced = planOf("pp=2,layers=3+2", {8192}, options);
    EXPECT_TRUE(isSliced(sliced));
    options.slices = {};
    const plan::Plan whole = planOf("pp=2,layers=3+2", {8192}, options);
    EXPECT_FALSE(isSliced(whole));
    // Two stages with much in flight take little more than half of one after the other.
    EXPECT_LT(makespan(sliced), 0.8 * makespan(whole));
  }
}

TEST_F(ChooseSlicesTest, WhatCannotGainStaysWhole) {
  PlanOptions options = automatic();
  EXPECT_FALSE(isSliced(planOf("dp=1", {8192}, options)));
  EXPECT_FALSE(isSliced(planOf("pp=2,layers=3+2", {40, 20}, options)));
  // A step of many samples fills the pipeline by itself.
  options.maxTokensPerMicroBatch = 64;
  EXPECT_FALSE(isSliced(
      planOf("pp=2,layers=3+2", std::vector<int64_t>(256, 64), options)));
}

TEST_F(ChooseSlicesTest, StepsAreNotSlower) {
  Draw draw(3);
  double gained = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<int64_t> lengths;
    for (int n = 1 + draw.below(12); n > 0; --n)
      lengths.push_back(draw.below(4) ? 1 + draw.below(800)
                                      : 1 + draw.below(12000));
    const char *strategies[] = {"pp=2,layers=3+2", "pp=3,layers=2+2+1",
                                "dp=2,pp=2,layers=2+3"};
    PlanOptions options = automatic();
    const std::string strategy = strategies[round % 3];
    const double sliced = makespan(planOf(strategy, lengths, options));
    options.slices = {};
    const double whole = makespan(planOf(strategy, lengths, options));
    // The choice goes by a clock without messages and instructions.
    EXPECT_LT(sliced, 1.05 * whole);
    gained += whole / sliced - 1;
  }
  EXPECT_GT(gained / 30, 0.1);
}

/// Slices are compared by the formula of equal stages, under GPipe.
TEST_F(ChooseSlicesTest, PoliciesWithoutANumberHaveTheBest) {
  const std::vector<int64_t> lengths = {8192, 300, 200, 3000};
  for (const char *name : {"uniform", "seq1f1b", "chunkflow"}) {
    PlanOptions options = automatic(Schedule::GPipe);
    options.slices = *parseSlices(name);
    const auto best = planOf("pp=2,layers=3+2", lengths, options).microBatches;
    double shortest = std::numeric_limits<double>::infinity();
    bool isOneOfThem = false;
    const bool isChunks = name == std::string("chunkflow");
    for (int64_t number = isChunks ? 512 : 1; number <= (isChunks ? 4096 : 128);
         number *= 2) {
      options.slices = *parseSlices(formatText("%s:%d", name, number));
      const plan::Plan plan = planOf("pp=2,layers=3+2", lengths, options);
      shortest = std::min(shortest, makespan(plan));
      isOneOfThem |= plan.microBatches == best;
    }
    EXPECT_TRUE(isOneOfThem) << name;
    options.slices = *parseSlices(name);
    EXPECT_LE(makespan(planOf("pp=2,layers=3+2", lengths, options)),
              1.1 * shortest)
        << name;
  }
}

/// In memory that holds little more than one sample.
TEST_F(ChooseSlicesTest, SlicesStayWithinLimits) {
  for (int64_t percent : {100, 60, 40}) {
    graph_ =
        *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
    PlanOptions options = automatic();
    Planner planner(*graph_);
    const auto most = *planner.largestDynamicBytes(options, true);
    const auto least = *planner.leastDynamicBytes(options, true);
    for (size_t rank = 0; rank < most.size(); ++rank)
      options.dynamicLimits.push_back(
          std::max(least[rank], most[rank] * percent / 100 / 64 * 64));
    const plan::Plan plan =
        planOf("pp=2,layers=3+2", {16384, 9000, 30, 500}, options);
    for (int rank = 0; rank < plan.rankCount(); ++rank)
      EXPECT_LE(plan.ranks[rank].dynamicBytes, options.dynamicLimits[rank]);
  }
}

TEST_F(ChooseSlicesTest, ModelsThatLookAheadStayWhole) {
  const Model model = attendingModel(/*isCausal=*/false);
  const ExecutableGraph graph =
      *ExecutableGraph::create(model, *parseStrategy("pp=2,layers=3+2"));
  PlanOptions options = automatic();
  auto plan = Planner(graph).training({8192}, 8192, options);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_FALSE(isSliced(*plan));
  options.slices = {};
  options.slices.count = 4;
  EXPECT_THAT(Planner(graph).training({8192}, 8192, options).status().message(),
              HasSubstr("--slices needs causal attention"));
}

/// What the pass does with micro-batches that are there already.
TEST_F(ChooseSlicesTest, CutsAreSlicedOnce) {
  graph_ = *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
  const Planner planner(*graph_);
  PlanOptions options = automatic();
  const PlanOptions chosen = options;
  options.slices = {};
  const plan::Plan whole = *planner.cut({8192, 100}, 8292, options, true);
  auto sliced = planner.slice(whole, chosen, true);
  ASSERT_TRUE(sliced.isOk()) << sliced.status().message();
  EXPECT_TRUE(isSliced(*sliced));
  EXPECT_THAT(planner.slice(*sliced, chosen, true).status().message(),
              HasSubstr("slices are cut from whole samples"));
  EXPECT_EQ(planner.slice(whole, options, true)->microBatches,
            whole.microBatches);
}

} // namespace
