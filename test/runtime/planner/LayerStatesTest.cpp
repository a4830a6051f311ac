//===- LayerStatesTest.cpp - Plans of layers that differ ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whatever adds up seconds of layers keeps those of a kind, and looks them up again. With
// states, layers of one kind differ: each sum is compared with one that asks the cost model
// for every layer.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/StateBytes.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageTables.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "runtime/planner/graph/RankMemory.h"
#include "runtime/sim/PlanTimes.h"
#include "test/runtime/executor/TinyModel.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace dyna;
using testing::DoubleNear;
using testing::ElementsAre;

namespace {

const char *const hardware =
    "device { f64_flops: 1e9 f32_flops: 1e9 bf16_flops: 1e9 "
    "bytes_per_second: 1e12 launch_seconds: 1e-6 } cluster {} "
    "sparse { points { sparsity: 0.5 forward: 1.5 } points { sparsity: 0.9 "
    "forward: 0.3 input_gradient: 0.4 weight_gradient: 0.6 } }";

Model blocks(int count) {
  TinyOptions options;
  options.blocks = count;
  options.hidden = 60;
  return *Model::create(tinyManifest(options));
}

/// Every block differs: sparse, frozen, or both.
CostModel costsOf(const Model &model) {
  CostModel costs =
      *CostModel::create(model, *CostTable::parse(hardware, "costs"));
  LayerStates states(model.layers());
  for (int l = 1; l + 1 < model.layers(); ++l) {
    states[l].sparsity = 0.1 * (l % 10);
    states[l].frozen = l % 3 == 0;
  }
  Status status = costs.setStates(states);
  EXPECT_TRUE(status.isOk()) << status.message();
  return costs;
}

/// Seconds of a stage, layer by layer.
std::pair<double, double> secondsOf(const ExecutableGraph &graph,
                                    const CostModel &costs, int stage,
                                    bool split, const Load &load) {
  const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
  double forward = 0, backward = 0;
  for (int l = view.firstLayer(); l < view.endLayer(); ++l)
    for (cost::Direction pass :
         trainingPasses(view.kind(l), plan::RECOMPUTE_NONE, split))
      (pass == cost::FORWARD ? forward : backward) +=
          costs.seconds(costs.at(l, graph.strategy()), pass, load);
  return {forward, backward};
}

TEST(LayerStatesTest, StagesAreSumsOfTheirLayers) {
  Model model = blocks(9);
  CostModel costs = costsOf(model);
  auto graph =
      *ExecutableGraph::create(model, *parseStrategy("pp=3,layers=3+5+3"));
  plan::Plan plan;
  plan.microBatches.emplace_back().segments.push_back({0, 0, 64});
  const Load load = callLoad(64, 64 * 65 / 2, 64);
  std::vector<double> sums;
  for (bool split : {false, true}) {
    PlanOptions options;
    options.splitBackward = split;
    options.schedule = Schedule::Adaptive;
    const StageTables tables(graph, costs, options, true, 4096);
    const PipelineProblem problem =
        estimateStages(graph, costs, plan, {0}, options);
    for (int stage = 0; stage < 3; ++stage) {
      const auto [forward, backward] =
          secondsOf(graph, costs, stage, split, load);
      EXPECT_NEAR(problem.forward[stage][0] / forward, 1, 1e-9);
      EXPECT_NEAR(problem.backward[stage][0] / backward, 1, 1e-9);
      EXPECT_NEAR(tables.forward(stage, load) / forward, 1, 1e-9);
      EXPECT_NEAR(tables.backward(stage, load) / backward, 1, 1e-9);
      sums.push_back(forward);
    }
  }
  EXPECT_NE(sums[0], sums[2]); // as many layers of the same kinds
}

TEST(LayerStatesTest, SimulatedRanksAreSumsOfTheirInstructions) {
  Model model = blocks(6);
  CostModel costs = costsOf(model);
  auto graph =
      *ExecutableGraph::create(model, *parseStrategy("pp=2,layers=4+4"));
  Planner planner(graph, costs);
  PlanOptions options;
  options.maxTokensPerMicroBatch = 32;
  options.schedule = Schedule::OneForwardOneBackward;
  const plan::Plan plan = *planner.training({32, 32, 16}, 80, options);
  PlanWork work(graph, plan, costs);
  const PlanTimes times = *playPlan(work);
  for (int rank = 0; rank < 2; ++rank) {
    double sum = 0;
    const auto &program = plan.ranks[rank].instructions;
    for (const plan::Instruction &i : program) {
      const int role = roleOf(i);
      const cost::Direction direction = directionOf(role);
      if (direction == cost::DIRECTION_UNKNOWN)
        continue;
      Load load;
      if (isPerMicroBatch(i.op)) {
        load = loadOfSample(plan.microBatches[i.microBatch].segments[0].length);
        load.targets = load.queries;
      }
      sum +=
          costs.seconds(costs.at(i.layer, graph.strategy()), direction, load);
    }
    EXPECT_NEAR(times.ranks[rank].busy / sum, 1, 1e-9);
  }
}

// The pruned half of the blocks moves together.
TEST(LayerStatesTest, CutsAreBalancedBySeconds) {
  Model model = blocks(10);
  CostModel costs =
      *CostModel::create(model, *CostTable::parse(hardware, "costs"));
  const Strategy strategy = *parseStrategy("pp=2");
  const std::vector<int> before =
      chooseLayers(costs, strategy)->strategy.layers;
  LayerStates states(model.layers());
  for (int l = 6; l <= 10; ++l)
    states[l].sparsity = 0.9;
  ASSERT_TRUE(costs.setStates(states).isOk());
  const std::vector<int> after = chooseLayers(costs, strategy)->strategy.layers;
  EXPECT_EQ(after, partitionLayers(
                       layerCosts(costs, strategy, {plan::RECOMPUTE_NONE}), 2));
  EXPECT_LT(after[0], before[0]);
  // Frozen in front, the first stage has nothing to do backward, and takes more.
  for (int l = 0; l < model.layers(); ++l)
    states[l] = {};
  states.front().frozen = states.back().frozen = true; // tied
  for (int l = 1; l <= 4; ++l)
    states[l].frozen = true;
  ASSERT_TRUE(costs.setStates(states).isOk());
  EXPECT_GT(chooseLayers(costs, strategy)->strategy.layers[0], before[0]);
}

TEST(LayerStatesTest, WhatPruningFreesIsRoomForMicroBatches) {
  Model model = blocks(6);
  CostModel costs =
      *CostModel::create(model, *CostTable::parse(hardware, "costs"));
  auto graph =
      *ExecutableGraph::create(model, *parseStrategy("pp=2,layers=4+4"));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 64;
  options.inFlight = 8;
  auto roomOf = [&](const CostModel &own) {
    Planner planner(graph, own);
    // Less than plans can use, and more than they need.
    const int64_t bytes = persistentLayout(graph.rankView(1)).bytes +
                          planner.leastDynamicBytes(options, true)->at(1) + 64;
    return sizeDynamicRegions(planner, options, Persistent::Training, bytes)
        ->bytes[1];
  };
  const int64_t before = roomOf(costs);
  LayerStates states(model.layers());
  states[6].sparsity = 0.9;
  ASSERT_TRUE(costs.setStates(states).isOk());
  ASSERT_EQ(costs.layerStates()[6].form, WeightForm::Csr);
  const RankView view = graph.rankView(1);
  const int64_t freed =
      persistentLayout(view).bytes - persistentBytes(view, costs.layerStates());
  EXPECT_GT(freed, 0);
  EXPECT_EQ(
      roomOf(costs),
      std::min(
          before + freed,
          Planner(graph, costs).largestDynamicBytes(options, true)->at(1)));
  EXPECT_GT(roomOf(costs), before);
}

} // namespace
