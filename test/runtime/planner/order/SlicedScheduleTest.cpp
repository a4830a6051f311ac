//===- SlicedScheduleTest.cpp - Slices, and schedules that keep their order ===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/order/PipelineBounds.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/order/schedules/BackwardOrder.h"
#include "runtime/planner/order/schedules/OrderSimulator.h"
#include "runtime/planner/order/schedules/Schedules.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>
#include <map>
#include <numeric>
#include <set>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

SliceChoice choiceOf(const std::string &text) { return *parseSlices(text); }

TEST(SliceChoiceTest, EqualSlicesDifferByOneToken) {
  EXPECT_THAT(choiceOf("4").cut(10), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(choiceOf("4").cut(3), ElementsAre(1, 1, 1));
  EXPECT_THAT(choiceOf("1").cut(10), ElementsAre(10));
  EXPECT_THAT(choiceOf("none").cut(10), ElementsAre(10));
  EXPECT_THAT(choiceOf("4").cut(0), ElementsAre(0));
}

TEST(SliceChoiceTest, TheLastLengthRepeats) {
  EXPECT_THAT(choiceOf("4+2").cut(9), ElementsAre(4, 2, 2, 1));
  EXPECT_THAT(choiceOf("4+2").cut(3), ElementsAre(3));
  EXPECT_THAT(choiceOf("4+8+1").cut(20),
              ElementsAre(4, 8, 1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(SliceChoiceTest, TheLargestSliceIsABound) {
  Draw draw(7);
  for (int round = 0; round < 2000; ++round) {
    SliceChoice choice;
    if (draw.below(2)) {
      choice.count = 1 + draw.below(9);
    } else {
      for (int n = 1 + draw.below(4); n > 0; --n)
        choice.lengths.push_back(1 + draw.below(20));
    }
    const int64_t most = draw.below(100);
    for (int64_t tokens = 0; tokens <= most; ++tokens) {
      const auto slices = choice.cut(tokens);
      EXPECT_EQ(std::accumulate(slices.begin(), slices.end(), INT64_C(0)),
                tokens);
      EXPECT_EQ(choice.slicesOf(tokens), static_cast<int64_t>(slices.size()));
      for (int64_t slice : slices) {
        EXPECT_LE(slice, choice.largest(most));
        EXPECT_TRUE(slice > 0 || tokens == 0);
      }
    }
  }
}

/// A choice is refused exactly if a micro-batch of the largest size has too few tokens
/// for all that it says. `within` changes no other choice.
TEST(SliceChoiceTest, MicroBatchesHaveTokensForAllSlices) {
  int refused = 0;
  for (const char *text :
       {"1", "2", "5", "9", "1+1", "4+1", "1+2+3", "5+5+1", "16777216+1",
        "exact", "uniform:6", "seq1f1b:3", "chunkflow:4", "auto"})
    for (int64_t longest = 1; longest <= 12; ++longest)
      for (int64_t joined = 1; joined <= longest; ++joined) {
        SCOPED_TRACE(testing::Message()
                     << text << ", " << joined << " of " << longest);
        const SliceChoice choice = choiceOf(text);
        int64_t needed = 1;
        if (choice.policy == SlicePolicy::None)
          needed = std::max<int64_t>(choice.count, 1);
        else if (choice.policy != SlicePolicy::Chunks)
          needed = std::max<int64_t>(choice.number, 1);
        for (size_t i = 0; i + 1 < choice.lengths.size(); ++i)
          needed += choice.lengths[i];
        bool fits = needed <= longest;
        if (choice.policy == SlicePolicy::Chunks)
          fits = choice.number <= joined;
        EXPECT_EQ(choice.check(joined, longest).isOk(), fits);
        refused += !fits;
        const SliceChoice within = choice.within(joined, longest);
        EXPECT_TRUE(within.check(joined, longest).isOk());
        if (fits) {
          EXPECT_EQ(describeSlices(within), describeSlices(choice));
          EXPECT_EQ(within.cut(longest), choice.cut(longest));
        }
        if (choice.isFixed() && within.isFixed())
          EXPECT_LE(within.largest(longest), longest);
      }
  EXPECT_GT(refused, 100);
}

TEST(SliceChoiceTest, OtherTextsAreRefused) {
  for (const char *text :
       {"", "0", "-1", "2+0", "+", "1+", "x", "1.5", "0x4",
        "99999999999999999999", "16777217", " 2", "none+1", "auto:2",
        "seq1f1b:", "uniform:0", "chunkflow:", "exact+2"})
    EXPECT_THAT(
        parseSlices(text).status().message(),
        HasSubstr("expects none, auto, exact, a number of equal slices"))
        << text;
}

/// Slices have the tokens of the micro-batch in order, as many as were asked for.
TEST(SliceMicroBatchesTest, KeepEveryToken) {
  Draw draw(8);
  for (int round = 0; round < 2000; ++round) {
    std::vector<plan::MicroBatch> whole(1 + draw.below(3));
    int64_t sample = 0;
    for (size_t m = 0; m < whole.size(); ++m) {
      whole[m].replica = static_cast<int>(m % 2);
      for (int n = 1 + draw.below(4); n > 0; --n)
        whole[m].segments.push_back({sample++, 0, draw.below(12)});
    }
    const SliceChoice choice =
        choiceOf(draw.below(2) ? std::to_string(2 + draw.below(6)) : "3+1+5");
    const auto sliced = sliceMicroBatches(whole, choice);
    size_t next = 0;
    for (const plan::MicroBatch &microBatch : whole) {
      int64_t tokens = 0;
      std::vector<std::pair<int64_t, int64_t>> expected, found;
      for (const plan::Segment &segment : microBatch.segments) {
        tokens += segment.length;
        for (int64_t token = 0; token < segment.length; ++token)
          expected.emplace_back(segment.sample, token);
      }
      std::set<int64_t> named;
      for (int64_t length : choice.cut(tokens)) {
        ASSERT_LT(next, sliced.size());
        const plan::MicroBatch &slice = sliced[next++];
        EXPECT_EQ(slice.replica, microBatch.replica);
        int64_t inSlice = 0;
        for (const plan::Segment &segment : slice.segments) {
          named.insert(segment.sample);
          inSlice += segment.length;
          for (int64_t token = 0; token < segment.length; ++token)
            found.emplace_back(segment.sample, segment.begin + token);
        }
        EXPECT_EQ(inSlice, length);
      }
      EXPECT_EQ(found, expected);
      EXPECT_EQ(named.size(), microBatch.segments.size());
    }
    EXPECT_EQ(next, sliced.size());
  }
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

PipelineProblem even(int stages, int microBatches, double forward = 1,
                     double backward = 2) {
  PipelineProblem problem;
  problem.forward.assign(stages, std::vector<double>(microBatches, forward));
  problem.backward.assign(stages, std::vector<double>(microBatches, backward));
  return problem;
}

/// Samples of so many slices, one behind the other.
PipelineProblem chained(int stages, const std::vector<int> &slices) {
  PipelineProblem problem =
      even(stages, std::accumulate(slices.begin(), slices.end(), 0));
  for (int count : slices)
    for (int slice = 0; slice < count; ++slice)
      problem.previous.push_back(
          slice == 0 ? -1 : static_cast<int>(problem.previous.size()) - 1);
  return problem;
}

TEST(BackwardOrderTest, ChainsComeInReverse) {
  const BackwardOrder order(chained(2, {3, 1, 2}));
  EXPECT_THAT(order.sequence, ElementsAre(2, 1, 0, 3, 5, 4));
  EXPECT_THAT(order.forwards, ElementsAre(3, 3, 4, 5, 6, 6));
  EXPECT_THAT(order.unitEnds, ElementsAre(3, 4, 6));
}

TEST(BackwardOrderTest, WithoutChainsPlacesAreNumbers) {
  const BackwardOrder order(even(3, 4));
  EXPECT_THAT(order.sequence, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(order.forwards, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(order.unitEnds, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(BackwardOrder(even(3, 0)).unitEnds, IsEmpty());
}

/// Slices of two samples in turn are one unit.
TEST(BackwardOrderTest, InterleavedChains) {
  PipelineProblem problem = even(1, 5);
  problem.previous = {-1, -1, 0, 1, -1};
  const BackwardOrder order(problem);
  EXPECT_THAT(order.sequence, ElementsAre(2, 0, 3, 1, 4));
  EXPECT_THAT(order.forwards, ElementsAre(3, 3, 4, 4, 5));
  EXPECT_THAT(order.unitEnds, ElementsAre(4, 5));
}

/// Items of all schedules run, each once, whatever follows what.
TEST(SlicedScheduleTest, EveryScheduleKeepsTheOrder) {
  Draw draw(9);
  for (int round = 0; round < 400; ++round) {
    std::vector<int> slices;
    for (int n = 1 + draw.below(5); n > 0; --n)
      slices.push_back(1 + draw.below(5));
    PipelineProblem problem = chained(1 + draw.below(5), slices);
    for (auto *table : {&problem.forward, &problem.backward})
      for (auto &stage : *table)
        for (double &seconds : stage)
          seconds = 1 + draw.below(9);
    problem.inFlight = 1 + draw.below(4);
    if (draw.below(2))
      problem.weight.assign(problem.stages(),
                            std::vector<double>(problem.microBatches(), 0.5));
    for (Schedule schedule : allSchedules()) {
      SCOPED_TRACE(ruleOf(schedule).name);
      auto orders = ruleOf(schedule).order(problem);
      ASSERT_TRUE(orders.isOk()) << orders.status().message();
      ClockOptions clock;
      clock.fillsGaps = ruleOf(schedule).adapts;
      const Status status = timeItems(*orders, problem, clock);
      EXPECT_TRUE(status.isOk()) << status.message();
      for (const auto &items : *orders) {
        std::map<std::pair<ItemKind, int>, int> times;
        for (const PipelineItem &item : items)
          ++times[{item.kind, item.microBatch}];
        const bool apart = clock.fillsGaps && problem.splitsBackward();
        EXPECT_EQ(times.size(), (apart ? 3u : 2u) * problem.microBatches());
        for (const auto &[item, count] : times)
          EXPECT_EQ(count, 1);
      }
    }
  }
}

/// Under 1F1B stage s of p keeps at most p - s - 1 + k of a sample's k slices.
TEST(SlicedScheduleTest, OneForwardOneBackwardKeepsFewSlices) {
  for (int stages = 1; stages <= 6; ++stages)
    for (int count = 1; count <= 8; ++count) {
      const PipelineProblem problem =
          chained(stages, std::vector<int>(9, count));
      auto orders = ruleOf(Schedule::OneForwardOneBackward).order(problem);
      ASSERT_TRUE(orders.isOk());
      for (int s = 0; s < stages; ++s) {
        int kept = 0, most = 0;
        for (const PipelineItem &item : (*orders)[s])
          most = std::max(most, kept += item.isForward() ? 1 : -1);
        EXPECT_EQ(most, std::min(stages - s - 1 + count, 9 * count));
      }
    }
}

/// Equal stages take sum(f + b) + (K - 1) (max f + max b) (TeraPipe, equation 5, with
/// costs of their own for both directions), if all forwards run first.
TEST(SlicedScheduleTest, GPipeTakesTheClosedForm) {
  Draw draw(10);
  for (int round = 0; round < 2000; ++round) {
    PipelineProblem problem = chained(1 + draw.below(6), {1 + draw.below(8)});
    double sum = 0, mostForward = 0, mostBackward = 0;
    for (int m = 0; m < problem.microBatches(); ++m) {
      const double forward = 1 + draw.below(50), backward = 1 + draw.below(50);
      sum += forward + backward;
      mostForward = std::max(mostForward, forward);
      mostBackward = std::max(mostBackward, backward);
      for (int s = 0; s < problem.stages(); ++s) {
        problem.forward[s][m] = forward;
        problem.backward[s][m] = backward;
      }
    }
    auto orders = ruleOf(Schedule::GPipe).order(problem);
    ASSERT_TRUE(orders.isOk());
    ASSERT_TRUE(timeItems(*orders, problem, {}).isOk());
    EXPECT_NEAR(makespanOf(*orders),
                sum + (problem.stages() - 1) * (mostForward + mostBackward),
                1e-9 * sum);
  }
}

double makespanBy(Schedule schedule, const PipelineProblem &problem) {
  auto orders = ruleOf(schedule).order(problem);
  EXPECT_TRUE(orders.isOk()) << orders.status().message();
  ClockOptions clock;
  clock.fillsGaps = true;
  EXPECT_TRUE(timeItems(*orders, problem, clock).isOk());
  return makespanOf(*orders);
}

/// The shortest makespan of all orders in which samples, whole, are dispatched.
double bestOfSamples(const PipelineProblem &problem,
                     const std::vector<int> &slices) {
  std::vector<int> turns(slices.size()), first(slices.size(), 0);
  std::iota(turns.begin(), turns.end(), 0);
  for (size_t i = 1; i < slices.size(); ++i)
    first[i] = first[i - 1] + slices[i - 1];
  OrderSimulator simulator(
      problem, std::vector<int>(problem.stages(), problem.microBatches()));
  double best = OrderSimulator::never;
  do {
    MicroBatchOrder order;
    for (int sample : turns)
      for (int slice = 0; slice < slices[sample]; ++slice) {
        order.forwards.push_back(first[sample] + slice);
        order.backwards.push_back(first[sample] + slices[sample] - 1 - slice);
      }
    for (bool fillsFirst : {false, true}) {
      simulator.setRule({fillsFirst});
      best = std::min(best, simulator.evaluate(order, best));
    }
  } while (std::next_permutation(turns.begin(), turns.end()));
  return best;
}

/// Adaptive orders of chains are never longer than cycles and 1F1B, and mostly as short
/// as the best of all orders of the samples, in memory for half of them.
TEST(SlicedScheduleTest, OrdersOfChainsAreSearched) {
  Draw draw(11);
  int shorter = 0, near = 0;
  constexpr int rounds = 150;
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> slices;
    for (int n = 2 + draw.below(4); n > 0; --n)
      slices.push_back(1 + draw.below(4));
    PipelineProblem problem = chained(2 + draw.below(3), slices);
    for (int m = 0; m < problem.microBatches(); ++m) {
      const double seconds = 1 + draw.below(9);
      for (int s = 0; s < problem.stages(); ++s) {
        problem.forward[s][m] = seconds;
        problem.backward[s][m] = 2 * seconds + 0.1 * draw.below(9);
      }
    }
    if (draw.below(2)) {
      problem.kept.assign(problem.stages(),
                          std::vector<int64_t>(problem.microBatches(), 1));
      problem.limits.assign(problem.stages(), 4 + problem.microBatches() / 2);
    } else {
      // As many as the search below may keep.
      problem.limits.assign(problem.stages(), 1);
    }
    const double found = makespanBy(Schedule::Adaptive, problem);
    PipelineProblem unlimited = problem;
    if (problem.kept.empty())
      unlimited.limits.clear();
    double simple = makespanBy(Schedule::Cyclic, unlimited);
    if (problem.kept.empty()) {
      simple = std::min(simple,
                        makespanBy(Schedule::OneForwardOneBackward, unlimited));
      EXPECT_LE(found, simple * (1 + 1e-12));
    }
    shorter += found < simple * (1 - 1e-9);
    near += found <= 1.01 * bestOfSamples(problem, slices);
    EXPECT_GE(found, boundPipeline(problem).seconds() * (1 - 1e-9));
  }
  EXPECT_GT(shorter, rounds / 4);
  EXPECT_GT(near, rounds * 9 / 10);
}

/// Slices that follow each other must fit together; more samples wait.
TEST(SlicedScheduleTest, MemoryHoldsWholeSamples) {
  PipelineProblem problem = chained(2, {3, 3, 3});
  problem.kept.assign(2, std::vector<int64_t>(9, 10));
  problem.limits = {29, 30};
  auto refusal = [&] {
    return ruleOf(Schedule::Adaptive).order(problem).status().message();
  };
  EXPECT_EQ(refusal(),
            "the 3 slices, micro-batches 0 to 2, keep 30 B on stage 0, but "
            "there are 29 B: all slices of a sample are kept until its "
            "backward; use shorter samples, more recomputation or more stages");
  // With names of samples, and what would fit.
  for (int64_t m = 0; m < 9; ++m)
    problem.contents.push_back({m / 3, m / 3, 100});
  EXPECT_THAT(refusal(), HasSubstr("the 3 slices of sample 0 (300 tokens), "
                                   "micro-batches 0 to 2, keep 30 B on stage "
                                   "0, but there are 29 B, enough for about "
                                   "290 tokens: all slices"));
  problem.contents[2].lastSample = 1; // a bundle of two
  EXPECT_THAT(refusal(), HasSubstr("of samples 0 to 1 (300 tokens)"));
  for (int64_t limit : {30, 35, 50, 60, 90}) {
    problem.limits = {limit, limit};
    auto orders = ruleOf(Schedule::Adaptive).order(problem);
    ASSERT_TRUE(orders.isOk()) << orders.status().message();
    ASSERT_TRUE(timeItems(*orders, problem, {}).isOk());
    for (int64_t peak : peakBytesOf(*orders, problem))
      EXPECT_LE(peak, limit);
  }
}

} // namespace
