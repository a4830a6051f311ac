//===- SlicedRegionsTest.cpp - Regions have room for sliced steps ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/planner/graph/Planner.h"
#include "test/runtime/planner/AttendingModel.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace dyna;

namespace {

int64_t pick(Draw &draw, int64_t least, int64_t most) {
  return least + draw.below(static_cast<int>(most - least + 1));
}

struct Case {
  const char *strategy;
  Schedule schedule;
  std::string slices;
  int64_t tokens;  ///< of a micro-batch
  int64_t longest; ///< of a sample; 0: `tokens`
};

PlanOptions optionsOf(const Case &drawn) {
  PlanOptions options;
  options.schedule = drawn.schedule;
  options.slices = *parseSlices(drawn.slices);
  options.maxTokensPerMicroBatch = drawn.tokens;
  options.longestSample = drawn.longest;
  options.inFlight = 40;
  return options;
}

/// Draws a step that fills micro-batches, or one of a few samples.
std::vector<int64_t> drawLengths(Draw &draw, const Case &drawn) {
  std::vector<int64_t> lengths;
  const int64_t longest = std::max(drawn.tokens, drawn.longest);
  const bool isFull = pick(draw, 0, 1) == 0;
  for (int64_t count = pick(draw, 1, isFull ? 24 : 6); count > 0; --count)
    lengths.push_back(isFull ? longest : pick(draw, 1, longest));
  return lengths;
}

class SlicedRegionsTest : public testing::Test {
protected:
  /// Plans `steps` drawn steps without a limit, and compares what they need with the regions.
  void check(const Case &drawn, int steps, uint64_t seed) {
    SCOPED_TRACE(formatText("%s %s --slices %s, %d tokens, longest %d",
                            drawn.strategy, ruleOf(drawn.schedule).name,
                            drawn.slices, drawn.tokens, drawn.longest));
    const auto created =
        ExecutableGraph::create(model_, *parseStrategy(drawn.strategy));
    ASSERT_TRUE(created.isOk()) << created.status().message();
    const ExecutableGraph &graph = *created;
    const Planner planner(graph);
    const PlanOptions options = optionsOf(drawn);
    const auto most = planner.largestDynamicBytes(options, true);
    ASSERT_TRUE(most.isOk()) << most.status().message();
    Draw draw(seed);
    std::vector<int64_t> needed(most->size(), 0);
    for (int step = 0; step < steps; ++step) {
      const std::vector<int64_t> lengths = drawLengths(draw, drawn);
      const auto plan = planner.training(
          lengths, std::accumulate(lengths.begin(), lengths.end(), INT64_C(0)),
          options);
      ASSERT_TRUE(plan.isOk()) << plan.status().message();
      for (size_t rank = 0; rank < needed.size(); ++rank)
        needed[rank] = std::max(needed[rank], plan->ranks[rank].dynamicBytes);
    }
    for (size_t rank = 0; rank < needed.size(); ++rank)
      EXPECT_LE(needed[rank], (*most)[rank]) << "rank " << rank;
  }

  const Model model_ = attendingModel();
};

TEST_F(SlicedRegionsTest, HaveRoomForDrawnSteps) {
  Draw draw(38);
  const char *strategies[] = {"pp=2,layers=3+2", "pp=3,layers=2+2+1",
                              "pp=4,layers=2+1+1+1", "pp=5,layers=1+1+1+1+1"};
  const Schedule schedules[] = {Schedule::GPipe,
                                Schedule::OneForwardOneBackward,
                                Schedule::Cyclic, Schedule::Adaptive};
  const char *slices[] = {"2", "3", "5", "9", "16", "33", "70", "100+7", "60"};
  for (int count = 0; count < 30; ++count) {
    const int64_t tokens = pick(draw, 100, 700);
    const Case drawn = {strategies[pick(draw, 0, 3)],
                        schedules[pick(draw, 0, 3)], slices[pick(draw, 0, 8)],
                        tokens,
                        pick(draw, 0, 2) == 0 ? pick(draw, tokens, 1500) : 0};
    check(drawn, 4, static_cast<uint64_t>(count));
  }
}

// Of more than 64 slices the first ones are placed, and each other takes the same bytes
// more. All slices of a list are placed.
TEST_F(SlicedRegionsTest, ManySlicesTakeWhatAllOfThemTake) {
  const Case cases[] = {
      {"pp=2,layers=3+2", Schedule::OneForwardOneBackward, "150", 1050, 0},
      {"pp=4,layers=2+1+1+1", Schedule::GPipe, "97", 970, 0},
      {"pp=3,layers=2+2+1", Schedule::Adaptive, "128", 960, 0},
      {"pp=2,layers=3+2", Schedule::Cyclic, "71", 750, 0},
  };
  for (const Case &one : cases) {
    SCOPED_TRACE(formatText("%s %s --slices %s", one.strategy,
                            ruleOf(one.schedule).name, one.slices));
    const auto graph =
        ExecutableGraph::create(model_, *parseStrategy(one.strategy));
    const Planner planner(*graph);
    const PlanOptions many = optionsOf(one);
    PlanOptions listed = many;
    listed.slices = {};
    listed.slices.lengths = many.slices.cut(many.mostTokens());
    for (bool isLeast : {false, true}) {
      auto bytesOf = [&](const PlanOptions &options) {
        return isLeast ? *planner.leastDynamicBytes(options, true)
                       : *planner.largestDynamicBytes(options, true);
      };
      const auto found = bytesOf(many), all = bytesOf(listed);
      for (size_t rank = 0; rank < all.size(); ++rank) {
        const auto expected = static_cast<double>(all[rank]);
        EXPECT_NEAR(static_cast<double>(found[rank]), expected, 0.02 * expected)
            << "rank " << rank;
        if (isLeast) // plans rely on these
          EXPECT_GE(found[rank], all[rank]) << "rank " << rank;
      }
    }
  }
}

} // namespace
