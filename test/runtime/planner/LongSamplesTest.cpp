//===- LongSamplesTest.cpp - Samples longer than micro-batches of several -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanVerifier.h"
#include "runtime/planner/CutMiniBatch.h"
#include "runtime/planner/RankMemory.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

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
            Status status = verifyPlan(graph, *plan, lengths,
                                       {std::numeric_limits<int64_t>::max()});
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

// A region for a long sample is no larger than it needs alone: one that is never
// longer than a micro-batch takes nothing.
TEST(LongSamplesTest, RegionsFollowTheLongest) {
  ExecutableGraph graph = graphOf("pp=2,layers=3+2");
  Planner planner(graph);
  PlanOptions options = optionsOf(graph, Batching::Ragged);
  auto bytesOf = [&](int64_t longest) {
    options.longestSample = longest;
    return std::pair(*planner.leastDynamicBytes(options, true),
                     *planner.largestDynamicBytes(options, true));
  };
  const auto none = bytesOf(0);
  EXPECT_EQ(bytesOf(100), none);
  for (int64_t longest : {300, 4000})
    for (int rank = 0; rank < 2; ++rank) {
      const auto [least, most] = bytesOf(longest);
      EXPECT_GT(least[rank], none.first[rank]);
      EXPECT_GE(most[rank], least[rank]);
      // Several of the others in flight may take more than a long one alone.
      EXPECT_EQ(most[rank], std::max(least[rank], none.second[rank]));
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

} // namespace
