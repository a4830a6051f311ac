//===- CutClockTest.cpp - Times of cuts, and cuts within memory -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/divide/CutClock.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/divide/FindSlices.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "test/runtime/executor/TinyModel.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::ElementsAre;

namespace {

Model sliceableModel() {
  plan::Manifest manifest = tinyManifest();
  manifest.mutable_facts()->set_positions(1 << 14);
  plan::LayerKind *block = manifest.mutable_kinds(1);
  block->set_attention_flops_per_pair(64);
  block->set_causal(true);
  block->set_key_bytes(64);
  block->set_key_gradient_bytes(64);
  manifest.set_hash(manifestHash(manifest));
  return *Model::create(manifest);
}

class CutClockTest : public testing::Test {
protected:
  CutClockTest() {
    options_.maxTokensPerMicroBatch = 4096;
    options_.longestSample = 1 << 14;
    options_.schedule = Schedule::OneForwardOneBackward;
    options_.inFlight = 8;
  }
  ExecutableGraph graphOf(const std::string &strategy) const {
    return *ExecutableGraph::create(model_, *parseStrategy(strategy));
  }
  StageTables tablesOf(const ExecutableGraph &graph,
                       const PlanOptions &options) const {
    return {graph, costs_, options, /*trains=*/true, 1 << 14};
  }

  const Model model_ = sliceableModel();
  const CostModel costs_ =
      *CostModel::create(model_, *CostTable::described("a100-40g:1x2"));
  PlanOptions options_;
};

// The slowest replica counts, wherever it is, unless one is asked for.
TEST_F(CutClockTest, ReplicasAreTimedApart) {
  const ExecutableGraph graph = graphOf("dp=2,pp=2,layers=3+2");
  const StageTables tables = tablesOf(graph, options_);
  const CutClock clock(graph, costs_, tables, options_, true);
  for (int longer : {0, 1}) {
    const MicroBatches cut = {{{{0, 0, longer == 0 ? 4000 : 300}}, 0},
                              {{{1, 0, longer == 1 ? 4000 : 300}}, 1}};
    const CutTime first = clock.timeOf(cut, false, 0),
                  second = clock.timeOf(cut, false, 1);
    EXPECT_EQ(first > second, longer == 0);
    EXPECT_EQ(clock.timeOf(cut, false), std::max(first, second));
  }
}

// Slices of a sample follow each other; each takes what tables say, and messages count
// if they are asked for.
TEST_F(CutClockTest, PipelinesKnowSlicesAndMessages) {
  const ExecutableGraph graph = graphOf("pp=2,layers=3+2");
  const StageTables tables = tablesOf(graph, options_);
  CutClock clock(graph, costs_, tables, options_, true);
  plan::Plan plan;
  plan.microBatches = {
      {{{0, 0, 64}}, 0}, {{{1, 0, 96}}, 0}, {{{0, 64, 32}}, 0}};
  const PipelineProblem pipeline = clock.pipelineOf(plan, {0, 1, 2});
  EXPECT_THAT(pipeline.previous, ElementsAre(-1, -1, 0));
  for (int stage : {0, 1})
    for (int m : {0, 1, 2}) {
      const Load load = loadOf(plan.microBatches[m]);
      EXPECT_EQ(pipeline.forward[stage][m], tables.forward(stage, load));
      EXPECT_EQ(pipeline.backward[stage][m], tables.backward(stage, load));
    }
  const double seconds = clock.timeOf(plan.microBatches, false).second;
  clock.countMessages();
  EXPECT_GT(clock.timeOf(plan.microBatches, false).second, seconds);
  const Load load = loadOf(plan.microBatches[1]);
  const double message = clock.sliceTimes().message(load);
  EXPECT_GT(message, 0);
  EXPECT_EQ(message, messageSeconds(graph, costs_, {load}));
}

// One stage stands for all with the same layers in the same modes.
TEST_F(CutClockTest, StagesThatDifferAreKnown) {
  const ExecutableGraph graph = graphOf("pp=4,layers=2+1+1+1");
  const StageTables tables = tablesOf(graph, options_);
  const CutClock clock(graph, costs_, tables, options_, true);
  EXPECT_THAT(clock.sliceTimes().stages, ElementsAre(0, 1, 3));
  options_.recompute.assign(model_.layers(), plan::RECOMPUTE_NONE);
  options_.recompute[3] = plan::RECOMPUTE_FULL;
  EXPECT_THAT(clock.sliceTimes().stages, ElementsAre(0, 1, 2, 3));
}

// Cuts and modes that are chosen together recompute no more than memory asks for, and as
// much as it does.
TEST_F(CutClockTest, JointCutsRecomputeAsMuchAsMemoryAsksFor) {
  const ExecutableGraph graph = graphOf("pp=2,layers=3+2");
  options_.schedule = Schedule::Adaptive;
  options_.chooseRecompute = true;
  options_.slices.policy = SlicePolicy::Auto;
  const MicroBatches whole = {{{{0, 0, 16384}}, 0}, {{{1, 0, 9000}}, 0}};
  const auto modesWithin = [&](int64_t bytes) {
    options_.dynamicLimits.assign(2, bytes);
    auto cuts = fasterSlices(graph, costs_, whole, options_, true, 2);
    EXPECT_TRUE(cuts.isOk()) << cuts.status().message();
    EXPECT_FALSE(cuts->empty());
    return cuts->empty() ? SlicedCut() : cuts->back();
  };
  const SlicedCut free = modesWithin(INT64_C(1) << 50);
  ASSERT_FALSE(free.modes.empty());
  EXPECT_EQ(free.modes.size(), free.microBatches.size());
  for (plan::Recompute mode : free.modes)
    EXPECT_EQ(mode, plan::RECOMPUTE_NONE);
  PlanOptions full = options_;
  full.recompute = {plan::RECOMPUTE_FULL};
  const int64_t some =
      2 * HeldBytes(graph, full).of(loadOfSample(16384 + 9000));
  const SlicedCut scarce = modesWithin(some);
  ASSERT_FALSE(scarce.modes.empty());
  EXPECT_EQ(scarce.modes.size(), scarce.microBatches.size());
  EXPECT_GT(std::count(scarce.modes.begin(), scarce.modes.end(),
                       plan::RECOMPUTE_NONE),
            0);
  EXPECT_LT(std::count(scarce.modes.begin(), scarce.modes.end(),
                       plan::RECOMPUTE_NONE),
            static_cast<std::ptrdiff_t>(scarce.modes.size()));
  // Where not even full recomputation fits, there is no such cut.
  EXPECT_TRUE(modesWithin(64).modes.empty());
}

// Stores of keys count for every token if samples may be sliced.
TEST_F(CutClockTest, HeldBytesCountStores) {
  const ExecutableGraph graph = graphOf("dp=1");
  options_.dynamicLimits = {INT64_C(1) << 40};
  const Load load = loadOfSample(1024);
  const int64_t whole = HeldBytes(graph, options_).of(load);
  options_.slices.count = 2;
  int64_t keys = 0;
  for (int layer = 0; layer < model_.layers(); ++layer)
    keys += model_.kind(layer).key_bytes() * 1024;
  EXPECT_GT(keys, 0);
  EXPECT_EQ(HeldBytes(graph, options_).of(load), whole + keys);
}

/// Cuts come in the order of the clock, and those that are not faster are left out. The
/// formula of equal stages orders them otherwise.
TEST_F(CutClockTest, CutsComeInTheOrderOfTheClock) {
  const ExecutableGraph graph = graphOf("pp=3,layers=3+1+1");
  const CostModel costs(model_); // of a host, on which slices gain
  int unlikeFormula = 0;
  for (Schedule schedule :
       {Schedule::OneForwardOneBackward, Schedule::GPipe, Schedule::Adaptive}) {
    options_.schedule = schedule;
    const bool searched = schedule == Schedule::Adaptive;
    const StageTables tables(graph, costs, options_, /*trains=*/true, 1 << 14);
    CutClock clock(graph, costs, tables, options_, true);
    clock.countMessages();
    const std::vector<std::vector<int64_t>> steps = {
        {9000}, {16000, 300}, {5000, 4100, 700, 12000}};
    for (const std::vector<int64_t> &lengths : steps) {
      MicroBatches whole;
      for (size_t sample = 0; sample < lengths.size(); ++sample)
        whole.push_back(
            {{{static_cast<int64_t>(sample), 0, lengths[sample]}}, 0});
      const auto all = slicesByCost(whole, clock.sliceTimes(), 1);
      ASSERT_TRUE(all.isOk());
      const CutTime limit = clock.timeOf(whole, searched);
      std::vector<CutTime> byFormula;
      for (const TimedCut &cut : *all)
        if (const CutTime time = clock.timeOf(cut.cut, searched); time < limit)
          byFormula.push_back(time);
      unlikeFormula += !std::is_sorted(byFormula.begin(), byFormula.end());
      const auto found = fasterSlices(graph, costs, whole, options_,
                                      /*trains=*/true, all->size());
      ASSERT_TRUE(found.isOk());
      ASSERT_EQ(found->size(), byFormula.size());
      ASSERT_GT(byFormula.size(), 2u);
      CutTime before = {false, 0};
      for (const SlicedCut &cut : *found) {
        const CutTime time = clock.timeOf(cut.microBatches, searched);
        EXPECT_LE(before, time);
        before = time;
      }
    }
  }
  EXPECT_GT(unlikeFormula, 0);
}

} // namespace
