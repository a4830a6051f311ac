//===- StageTablesTest.cpp - Tables beside the cost model -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/StageTables.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "test/runtime/planner/AttentiveModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace dyna;

namespace {

/// Expects that tables of two stages are near the cost model for one slice, whose load it
/// returns.
Load expectNear(const StageTables &tables, const ExecutableGraph &graph,
                const CostModel &costs, const PlanOptions &options,
                int64_t begin, int64_t tokens, double error) {
  plan::Plan plan;
  plan.microBatches.emplace_back().segments.push_back({0, begin, tokens});
  PipelineProblem exact = estimateStages(graph, costs, plan, {0}, options);
  const Load load = loadOf(plan.microBatches[0]);
  for (int stage = 0; stage < 2; ++stage) {
    EXPECT_NEAR(tables.forward(stage, load) / exact.forward[stage][0], 1, error)
        << tokens << " tokens behind " << begin;
    EXPECT_NEAR(tables.backward(stage, load) / exact.backward[stage][0], 1,
                error)
        << tokens << " tokens behind " << begin;
  }
  return load;
}

// Late slices see many keys: none of them costs as little as an earlier one.
TEST(StageTablesTest, MeetTheCostModelInSlices) {
  ExecutableGraph graph = graphOf("pp=2,layers=3+2");
  CostModel known = costs();
  PlanOptions options = optionsOf(Batching::Ragged, 4096);
  StageTables tables(graph, known, options, true, 4096);
  for (int64_t tokens : {64, 512, 1000})
    for (int64_t begin = 0; begin + tokens <= 4096; begin += tokens) {
      expectNear(tables, graph, known, options, begin, tokens, 0.01);
    }
}

/// Compares the tables for samples of any length.
const Model &longModel() {
  static const Model model = [] {
    plan::Manifest manifest = attentive();
    manifest.mutable_facts()->set_positions(0);
    manifest.set_hash(manifestHash(manifest));
    return *Model::create(std::move(manifest));
  }();
  return model;
}

/// Blocks cost 0.1 us for a token and 3 ns for a pair. With `factors`, slices take up to
/// three times as much.
CostModel measuredCosts(bool factors) {
  std::string text;
  auto add = [&](const Load &load, double factor) {
    text += formatText(
        "points { tokens: %d pairs: %d context: %d seconds: %.12g }\n",
        load.queries, load.pairs, load.context,
        factor * (1e-7 * static_cast<double>(load.queries) +
                  3e-9 * static_cast<double>(load.pairs)));
  };
  for (const char *direction : {"FORWARD", "BACKWARD"}) {
    text += formatText("entries { kind: \"block\" direction: %s\n", direction);
    for (int64_t tokens : {8, 64, 512, 4096})
      for (int64_t length : {8, 64, 512, 4096})
        if (length <= tokens)
          add(callLoad(tokens, tokens / length * length * (length + 1) / 2, 0),
              1);
    for (int64_t tokens = 1; factors && tokens <= 4096; tokens *= 8)
      for (int64_t context = 1; context <= 4096; context *= 4)
        add(sliceLoad(tokens, context),
            1 + (direction[0] == 'F' ? 2 : 1) / (1 + std::log2(tokens)) +
                0.02 * std::log2(context));
    text += "}\n";
  }
  auto table = CostTable::parse(text, "measured");
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return *CostModel::create(longModel(), *table);
}

// Tables and the cost model see the context of a slice in the same way.
TEST(StageTablesTest, MeetMeasuredCostsOfSlices) {
  ExecutableGraph graph =
      *ExecutableGraph::create(longModel(), *parseStrategy("pp=2,layers=3+2"));
  const CostModel whole = measuredCosts(false), known = measuredCosts(true);
  PlanOptions options = optionsOf(Batching::Ragged, 4096);
  StageTables tables(graph, known, options, true, 4096),
      without(graph, whole, options, true, 4096);
  double largest = 1;
  for (int64_t tokens : {8, 64, 512, 1000})
    for (int64_t begin = 0; begin + tokens <= 4096; begin += tokens) {
      const Load load =
          expectNear(tables, graph, known, options, begin, tokens, 0.03);
      const double factor = tables.slowest(load) / without.slowest(load);
      largest = std::max(largest, factor);
      // Whole samples, and first slices, cost what they did.
      if (begin == 0)
        EXPECT_EQ(factor, 1);
    }
  EXPECT_GT(largest, 1.3);
  // Several slices in one micro-batch count as slices of mean size, in both.
  for (int64_t count : {2, 3, 5}) {
    plan::Plan plan;
    plan::MicroBatch &microBatch = plan.microBatches.emplace_back();
    for (int64_t sample = 0; sample < count; ++sample)
      microBatch.segments.push_back({sample, 1500, 60});
    const Load load = loadOf(microBatch);
    PipelineProblem exact = estimateStages(graph, known, plan, {0}, options);
    for (int stage = 0; stage < 2; ++stage) {
      EXPECT_NEAR(tables.forward(stage, load) / exact.forward[stage][0], 1,
                  0.03);
      EXPECT_NEAR(tables.backward(stage, load) / exact.backward[stage][0], 1,
                  0.03);
    }
  }
}

TEST(StageTablesTest, MeetTheCostModel) {
  ExecutableGraph graph = graphOf("pp=2,layers=3+2");
  CostModel known = costs();
  PlanOptions options = optionsOf(Batching::Ragged, 4096);
  options.recompute = {plan::RECOMPUTE_SELECTIVE};
  StageTables tables(graph, known, options, true, 4096);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    plan::Plan plan;
    plan::MicroBatch &microBatch = plan.microBatches.emplace_back();
    for (int64_t length : randomLengths(seed, 1 + static_cast<int>(seed % 60),
                                        seed % 2 ? 64 : 8))
      microBatch.segments.push_back({0, 0, length});
    PipelineProblem exact = estimateStages(graph, known, plan, {0}, options);
    const Load load = loadOf(microBatch);
    double slowest = 0;
    for (int stage = 0; stage < 2; ++stage) {
      EXPECT_NEAR(tables.forward(stage, load) / exact.forward[stage][0], 1,
                  0.01);
      EXPECT_NEAR(tables.backward(stage, load) / exact.backward[stage][0], 1,
                  0.01);
      slowest =
          std::max(slowest, exact.forward[stage][0] + exact.backward[stage][0]);
    }
    EXPECT_NEAR(tables.slowest(load) / slowest, 1, 0.01);
  }
}

} // namespace
