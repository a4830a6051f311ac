//===- LongSamplesTest.cpp - Samples longer than micro-batches of several -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/graph/RankMemory.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

using namespace dyna;
using testing::HasSubstr;

namespace {

using Lengths = std::vector<int64_t>;

int64_t pick(Draw &draw, int least, int most) {
  return least + draw.below(most - least + 1);
}

const Model &model() {
  static const Model model = [] {
    plan::Manifest manifest = tinyManifest();
    manifest.mutable_facts()->set_positions(0); // memory alone limits samples
    manifest.set_hash(manifestHash(manifest));
    return *Model::create(manifest);
  }();
  return model;
}

ExecutableGraph graphOf(const std::string &strategy) {
  return *ExecutableGraph::create(model(), *parseStrategy(strategy));
}

PlanOptions optionsOf(const ExecutableGraph &graph, Batching batching) {
  PlanOptions options;
  options.batching = batching;
  options.maxTokensPerMicroBatch = 100;
  options.longestSample = 300;
  options.schedule = graph.stages() > 1 ? Schedule::Adaptive : Schedule::GPipe;
  options.inFlight = 2;
  return options;
}

int64_t tokensOf(const plan::MicroBatch &microBatch) {
  int64_t tokens = 0;
  for (const plan::Segment &segment : microBatch.segments)
    tokens += segment.length;
  return tokens;
}

TEST(LongSamplesTest, AreAloneByEveryRule) {
  for (Batching batching : allBatchings())
    for (const char *strategy :
         {"dp=1", "dp=2,zero=1", "pp=2,layers=3+2", "dp=2,pp=3,layers=2+2+1"})
      for (uint64_t seed = 0; seed < 4; ++seed) {
        SCOPED_TRACE(std::string(ruleOf(batching).name) + " " + strategy + " " +
                     std::to_string(seed));
        ExecutableGraph graph = graphOf(strategy);
        Planner planner(graph);
        PlanOptions options = optionsOf(graph, batching);
        Draw draw(seed);
        Lengths lengths = {300, 101, 100};
        for (int64_t count = pick(draw, 0, 20); count > 0; --count)
          lengths.push_back(pick(draw, 1, 300));
        lengths = joinedLengths(model(), lengths, options);
        // All that can be used, and the least that is promised to do.
        for (const auto &limits : {*planner.largestDynamicBytes(options, true),
                                   *planner.leastDynamicBytes(options, true)})
          for (bool trains : {true, false}) {
            options.dynamicLimits = limits;
            auto plan = trains ? planner.training(lengths, 1, options)
                               : planner.evaluation(lengths, 1, options);
            ASSERT_TRUE(plan.isOk()) << plan.status().message();
            Status status = verifyPlan(graph, *plan, lengths, {});
            EXPECT_TRUE(status.isOk()) << status.message();
            for (int rank = 0; rank < graph.ranks(); ++rank)
              EXPECT_LE(plan->ranks[rank].dynamicBytes,
                        options.dynamicLimits[rank]);
            int longer = 0;
            for (const plan::MicroBatch &microBatch : plan->microBatches) {
              EXPECT_TRUE(tokensOf(microBatch) <= 100 ||
                          microBatch.segments.size() == 1);
              longer += tokensOf(microBatch) > 100;
            }
            EXPECT_GE(longer, 2);
          }
      }
}

TEST(LongSamplesTest, AboveThatTheyAreNamed) {
  ExecutableGraph graph = graphOf("pp=2,layers=3+2");
  for (Batching batching : allBatchings()) {
    PlanOptions options = optionsOf(graph, batching);
    auto plan = Planner(graph).training({5, 301}, 1, options);
    ASSERT_FALSE(plan.isOk());
    EXPECT_EQ(plan.status().message(),
              "sample 1 has 301 tokens, but a micro-batch holds at most 300");
  }
}

// Room for long samples is that for micro-batches of their size; one that is
// never longer than a micro-batch takes nothing, nor do more than a step has.
TEST(LongSamplesTest, RegionsFollowTheLongest) {
  ExecutableGraph graph = graphOf("pp=2,layers=3+2");
  Planner planner(graph);
  PlanOptions options = optionsOf(graph, Batching::Ragged);
  options.schedule = Schedule::Cyclic;
  auto bytesOf = [&](int64_t longest) {
    options.longestSample = longest;
    return std::pair(*planner.leastDynamicBytes(options, true),
                     *planner.largestDynamicBytes(options, true));
  };
  const auto none = bytesOf(0);
  EXPECT_EQ(bytesOf(100), none);
  for (int64_t longest : {300, 4000}) {
    options.maxTokensPerMicroBatch = longest;
    const auto full = bytesOf(0);
    options.maxTokensPerMicroBatch = 100;
    const auto [least, most] = bytesOf(longest);
    options.tokensPerStep = 1;
    const auto few = bytesOf(longest).second;
    options.tokensPerStep = 0;
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_GT(least[rank], none.first[rank]);
      EXPECT_GT(most[rank], least[rank] * 3 / 2);
      // Less, as it counts fewer samples.
      EXPECT_LE(most[rank], full.second[rank]);
      EXPECT_GT(most[rank], full.second[rank] / 2);
      EXPECT_GE(few[rank], least[rank]);
      EXPECT_LT(few[rank], most[rank]);
    }
  }
}

/// Seconds of the slowest replica, by what the costs expect.
double secondsOf(const Planner &planner, const plan::Plan &plan,
                 const PlanOptions &options) {
  auto pipelines = planner.expect(plan, options);
  EXPECT_TRUE(pipelines.isOk()) << pipelines.status().message();
  double slowest = 0;
  for (const ExpectedPipeline &pipeline : *pipelines)
    slowest = std::max(slowest, makespanOf(pipeline.schedule.stages));
  return slowest;
}

// In all the memory that plans can use, every order that is asked for fits,
// however small micro-batches of several samples are.
TEST(LongSamplesTest, TakeNoOrderItsMemory) {
  auto table = CostTable::parse("device { name: \"even\" f64_flops: 1e9 "
                                "f32_flops: 1e9 bf16_flops: 1e9 "
                                "bytes_per_second: 1e15 launch_seconds: 0 }",
                                "test");
  ASSERT_TRUE(table.isOk()) << table.status().message();
  for (Schedule schedule : allSchedules())
    for (Batching batching : allBatchings())
      for (const char *strategy : {"pp=2,layers=3+2", "dp=2,pp=3,layers=2+2+1",
                                   "pp=5,layers=1+1+1+1+1"})
        for (uint64_t seed = 0; seed < 4; ++seed) {
          ExecutableGraph graph = graphOf(strategy);
          Planner planner(graph, *CostModel::create(model(), *table));
          Draw draw(seed);
          PlanOptions options = optionsOf(graph, batching);
          options.schedule = schedule;
          options.maxTokensPerMicroBatch = pick(draw, 10, 250);
          SCOPED_TRACE(
              std::string(ruleOf(batching).name) + " " + ruleOf(schedule).name +
              " " + strategy + " " + std::to_string(seed) +
              " tokens=" + std::to_string(options.maxTokensPerMicroBatch));
          Lengths lengths = {300};
          for (int64_t count = pick(draw, 20, 50); count > 0; --count)
            lengths.push_back(pick(draw, 1, pick(draw, 1, 300)));
          const int64_t tokens =
              std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
          lengths = joinedLengths(model(), lengths, options);
          options.tokensPerStep = seed % 2 ? tokens : 0;
          options.inFlight = static_cast<int>(
              tokens / graph.strategy().dp / options.maxTokensPerMicroBatch +
              2);
          double seconds[2];
          for (double &taken : seconds) {
            options.dynamicLimits = *planner.largestDynamicBytes(options, true);
            auto plan = planner.training(lengths, 1, options);
            ASSERT_TRUE(plan.isOk()) << plan.status().message();
            // One that adapts may be one of the simple orders.
            if (ruleOf(schedule).adapts)
              EXPECT_NE(plan->fallback, "sequential");
            else
              EXPECT_EQ(plan->fallback, "");
            taken = secondsOf(planner, *plan, options);
            options.maxTokensPerMicroBatch = 300;
          }
          EXPECT_LT(seconds[0], 1.3 * seconds[1]);
        }
}

TEST(LongSamplesTest, TheLongestThatFitsIsFound) {
  for (const char *strategy :
       {"dp=1", "dp=2,pp=2,layers=3+2,zero=1", "pp=2,layers=1+4"}) {
    ExecutableGraph graph = graphOf(strategy);
    Planner planner(graph);
    PlanOptions options = optionsOf(graph, Batching::Ragged);
    options.longestSample = 900;
    auto fits = [&](int64_t tokens, int64_t bytes) {
      PlanOptions own = options;
      own.longestSample = tokens;
      return sizeDynamicRegions(planner, own, Persistent::Training, bytes)
          .isOk();
    };
    int64_t before = 0;
    for (int64_t bytes = 0; bytes < 900000; bytes += 41000) {
      auto found =
          longestSampleWithin(planner, options, Persistent::Training, bytes);
      ASSERT_TRUE(found.isOk());
      ASSERT_TRUE(*found >= 100 && *found <= 900);
      if (*found > 100)
        EXPECT_TRUE(fits(*found, bytes)) << bytes;
      if (*found < 900)
        EXPECT_FALSE(fits(*found + 1, bytes)) << bytes;
      EXPECT_GE(*found, before);
      before = *found;
    }
    EXPECT_EQ(before, 900);
  }
}

TEST(LongSamplesTest, TheLargestMicroBatchThatFitsIsFound) {
  for (const char *strategy : {"dp=1", "dp=2,pp=2,layers=3+2,zero=1"}) {
    ExecutableGraph graph = graphOf(strategy);
    Planner planner(graph);
    PlanOptions options = optionsOf(graph, Batching::Ragged);
    options.maxTokensPerMicroBatch = 900;
    auto fits = [&](int64_t tokens, int64_t bytes) {
      PlanOptions own = options;
      own.maxTokensPerMicroBatch = tokens;
      own.longestSample = 0;
      return sizeDynamicRegions(planner, own, Persistent::Training, bytes)
          .isOk();
    };
    int64_t before = 0, between = 0;
    for (int64_t bytes = 0; bytes < 2000000; bytes += 41000) {
      auto found = largestMicroBatchWithin(planner, options,
                                           Persistent::Training, bytes);
      ASSERT_TRUE(found.isOk()) << found.status().message();
      ASSERT_TRUE(*found >= before && *found <= 900) << *found;
      if (*found > 0)
        EXPECT_TRUE(fits(*found, bytes)) << bytes;
      if (*found < 900)
        EXPECT_FALSE(fits(*found + 1, bytes)) << bytes;
      between += *found > 0 && *found < 900;
      before = *found;
    }
    EXPECT_EQ(before, 900);
    EXPECT_GT(between, 4);
  }
}

} // namespace
