//===- AdaptiveScheduleTest.cpp - Schedules by costs and memory -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/PipelineBounds.h"
#include "runtime/planner/order/schedules/CyclicOrders.h"
#include "runtime/planner/order/schedules/OrderSearch.h"
#include "test/runtime/planner/DrawnPipelines.h"
#include "test/runtime/planner/TimedOrders.h"

#include <gmock/gmock.h>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

using namespace dyna;
using testing::HasSubstr;

namespace {

std::string textOf(const std::vector<PipelineItem> &items) {
  std::string text;
  for (const PipelineItem &item : items) {
    text += "FBW"[static_cast<int>(item.kind)];
    text += std::to_string(item.microBatch) + " ";
  }
  return text;
}

//===----------------------------------------------------------------------===//
// An independent replay
//===----------------------------------------------------------------------===//

/// Plays the items by nothing but their definition, and expects each to be once
/// and in its place, and memory to be within the limits before and after every
/// one of them. The makespan.
double replay(const PipelineProblem &problem, const StageOrders &orders) {
  const int stages = problem.stages(), count = problem.microBatches();
  using Key = std::tuple<int, ItemKind, int>;
  std::map<Key, double> ends;
  std::vector<size_t> next(orders.size(), 0);
  std::vector<double> free(orders.size(), 0);
  std::vector<int64_t> bytes(orders.size(), 0);
  bool split = problem.splitsBackward();
  auto endOf = [&](int s, ItemKind kind, int m) -> std::optional<double> {
    auto found = ends.find({s, kind, m});
    return found == ends.end() ? std::nullopt : std::optional(found->second);
  };
  double makespan = 0;
  for (bool progress = true; progress;) {
    progress = false;
    for (int s = 0; s < stages; ++s) {
      size_t at = static_cast<size_t>(s);
      while (next[at] < orders[at].size()) {
        const PipelineItem &item = orders[at][next[at]];
        int m = item.microBatch;
        auto forward = endOf(s, ItemKind::Forward, m);
        auto backward = endOf(s, ItemKind::Backward, m);
        std::optional<double> input;
        double head = 0, seconds = 0;
        int64_t kept = problem.kept[at][static_cast<size_t>(m)];
        int64_t late = problem.lateBytes(s, m), change = 0;
        if (item.isForward()) {
          EXPECT_FALSE(forward);
          input = 0;
          if (s > 0 && (input = endOf(s - 1, ItemKind::Forward, m)))
            *input += problem.links[0].seconds;
          seconds = problem.forward[at][static_cast<size_t>(m)];
          change = kept;
        } else if (item.isBackward()) {
          EXPECT_TRUE(forward) << "backward before forward";
          EXPECT_FALSE(backward);
          input = forward;
          if (s + 1 < stages && (input = endOf(s + 1, ItemKind::Backward, m)))
            *input += problem.links[0].seconds;
          head = problem.recomputeOf(s, m);
          seconds = problem.backward[at][static_cast<size_t>(m)] - head -
                    problem.weightOf(s, m);
          change = late - kept;
        } else {
          EXPECT_TRUE(backward) << "weight gradient before backward";
          input = backward;
          seconds = problem.weightOf(s, m);
          change = -late;
        }
        if (!input)
          break;
        double begin = std::max(free[at] + head, *input);
        free[at] = begin + seconds;
        EXPECT_EQ(item.end, free[at]);
        bytes[at] += change;
        if (!problem.limits.empty())
          EXPECT_LE(bytes[at], problem.limits[at]);
        EXPECT_TRUE(ends.insert({{s, item.kind, m}, free[at]}).second);
        makespan = std::max(makespan, free[at]);
        ++next[at];
        progress = true;
      }
    }
  }
  for (int s = 0; s < stages; ++s) {
    size_t at = static_cast<size_t>(s);
    EXPECT_EQ(next[at], orders[at].size()) << "stage " << s << " is stuck";
    EXPECT_EQ(orders[at].size(), static_cast<size_t>(count * (split ? 3 : 2)));
    EXPECT_EQ(bytes[at], 0);
  }
  return makespan;
}

TEST(AdaptiveScheduleTest, HoldsOnRandomProblems) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    int stages = 1 + draw.below(6), count = 1 + draw.below(12);
    PipelineProblem problem = drawn(draw, stages, count, seed % 4 != 0);
    StageOrders orders = adaptive(problem);
    double makespan = replay(problem, orders);
    EXPECT_EQ(makespan, makespanOf(orders));
    EXPECT_GE(makespan, boundPipeline(problem).seconds() * (1 - 1e-9));
    std::vector<int64_t> peaks = peakBytesOf(orders, problem);
    for (int s = 0; s < stages; ++s) {
      size_t at = static_cast<size_t>(s);
      EXPECT_GE(peaks[at], boundPipeline(problem).bytes[at]);
      if (!problem.limits.empty())
        EXPECT_LE(peaks[at], problem.limits[at]);
      EXPECT_EQ(textOf(orders[at]), textOf(adaptive(problem)[at]));
    }
    if (testing::Test::HasFailure())
      return;
  }
}

/// In the limits, and no cycle: Algorithm 1, for any limits.
TEST(CyclicOrdersTest, HoldOnRandomProblems) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    int stages = 1 + draw.below(6), count = 1 + draw.below(12);
    PipelineProblem problem = drawn(draw, stages, count, true);
    problem.weight.clear();
    problem.late.clear();
    problem.recompute.clear();
    std::vector<int> injected(static_cast<size_t>(count));
    std::iota(injected.begin(), injected.end(), 0);
    for (int m = count - 1; m > 0; --m)
      std::swap(injected[static_cast<size_t>(m)],
                injected[static_cast<size_t>(draw.below(m + 1))]);
    StageOrders orders = cyclicOrders(problem, injected);
    ASSERT_TRUE(timeItems(orders, problem, {}).isOk());
    EXPECT_EQ(replay(problem, orders), makespanOf(orders));
    if (testing::Test::HasFailure())
      return;
  }
}

//===----------------------------------------------------------------------===//
// The optimum of small problems
//===----------------------------------------------------------------------===//

/// The least makespan of all orders of items, whatever each stage does. A
/// micro-batch has a chain of forwards and backwards, and weight gradients behind
/// its backwards. Of what has run, only when stages are free and chains go on
/// matters; times that others are not worse than are dropped.
class Optimum {
public:
  explicit Optimum(const PipelineProblem &problem)
      : problem_(problem), stages_(problem.stages()),
        count_(problem.microBatches()) {}

  double run() {
    std::map<State, std::vector<Times>> layer;
    layer[State(static_cast<size_t>(count_))] = {
        Times(static_cast<size_t>(stages_ + count_), 0)};
    int items = stages_ * count_ * (problem_.splitsBackward() ? 3 : 2);
    for (int item = 0; item < items; ++item) {
      std::map<State, std::vector<Times>> next;
      for (const auto &[state, front] : layer)
        for (const Times &times : front)
          extend(state, times, next);
      layer = std::move(next);
    }
    double best = 1e300;
    for (const auto &[state, front] : layer)
      for (const Times &times : front)
        best = std::min(
            best, *std::max_element(times.begin(), times.begin() + stages_));
    return best;
  }

private:
  struct Progress {
    int chain = 0;   ///< items of the chain that have run
    int weights = 0; ///< a bit for each stage
    bool operator<(const Progress &o) const {
      return std::tie(chain, weights) < std::tie(o.chain, o.weights);
    }
  };
  using State = std::vector<Progress>;
  /// Of stages, then of micro-batches.
  using Times = std::vector<double>;

  int64_t heldOn(const State &state, int s) const {
    int64_t bytes = 0;
    for (int m = 0; m < count_; ++m) {
      const Progress &progress = state[static_cast<size_t>(m)];
      bool forward = progress.chain > s;
      bool backward = progress.chain > 2 * stages_ - 1 - s;
      bool weight = progress.weights >> s & 1;
      if (forward && !backward)
        bytes += problem_.kept[static_cast<size_t>(s)][static_cast<size_t>(m)];
      else if (backward && problem_.splitsBackward() && !weight)
        bytes += problem_.lateBytes(s, m);
    }
    return bytes;
  }

  void extend(const State &state, const Times &times,
              std::map<State, std::vector<Times>> &next) const {
    for (int m = 0; m < count_; ++m) {
      size_t at = static_cast<size_t>(m);
      size_t chainTime = static_cast<size_t>(stages_ + m);
      const Progress &progress = state[at];
      if (int step = progress.chain; step < 2 * stages_) {
        bool forward = step < stages_;
        int s = forward ? step : 2 * stages_ - 1 - step;
        size_t stage = static_cast<size_t>(s);
        State then = state;
        ++then[at].chain;
        if (problem_.limits.empty() ||
            heldOn(then, s) <= problem_.limits[stage]) {
          Times after = times;
          double head = forward ? 0 : problem_.recomputeOf(s, m);
          double seconds = forward ? problem_.forward[stage][at]
                                   : problem_.backward[stage][at] - head -
                                         problem_.weightOf(s, m);
          double message =
              step == 0 || step == stages_ ? 0 : problem_.links[0].seconds;
          after[stage] =
              std::max(times[stage] + head, times[chainTime] + message) +
              seconds;
          after[chainTime] = after[stage];
          insert(next[then], after);
        }
      }
      for (int s = 0; problem_.splitsBackward() && s < stages_; ++s)
        if (progress.chain > 2 * stages_ - 1 - s &&
            !(progress.weights >> s & 1)) {
          State then = state;
          then[at].weights |= 1 << s;
          Times after = times;
          after[static_cast<size_t>(s)] += problem_.weightOf(s, m);
          insert(next[then], after);
        }
    }
  }

  static bool isNotLater(const Times &a, const Times &b) {
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] > b[i])
        return false;
    return true;
  }
  static void insert(std::vector<Times> &front, const Times &times) {
    for (const Times &other : front)
      if (isNotLater(other, times))
        return;
    front.erase(std::remove_if(front.begin(), front.end(),
                               [&](const Times &other) {
                                 return isNotLater(times, other);
                               }),
                front.end());
    front.push_back(times);
  }

  const PipelineProblem &problem_;
  int stages_, count_;
};

// Up to 3 stages x 4 micro-batches in one piece, 2 x 3 with weight gradients
// apart.
TEST(AdaptiveScheduleTest, IsNearTheOptimumOfSmallProblems) {
  double worst = 1, sum = 0;
  int optimal = 0, problems = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed + 10000);
    int stages = 1 + draw.below(3), count = 1 + draw.below(4);
    PipelineProblem problem = drawn(draw, stages, count, seed % 3 != 0);
    if (problem.splitsBackward() && stages * count > 6)
      continue;
    // Without limits the schedule bounds its memory, the optimum does not.
    if (problem.limits.empty())
      for (int s = 0; s < stages; ++s)
        problem.limits.push_back(1 << 30);
    double optimum = Optimum(problem).run();
    double makespan = makespanOf(adaptive(problem));
    ASSERT_GE(makespan, optimum);
    ASSERT_LE(boundPipeline(problem).seconds(), optimum * (1 + 1e-9));
    worst = std::max(worst, makespan / optimum);
    sum += makespan / optimum;
    optimal += makespan == optimum;
    ++problems;
  }
  EXPECT_GE(problems, 200);
  EXPECT_LE(worst, 1.5);
  EXPECT_LE(sum / problems, 1.01);
  EXPECT_GE(optimal, problems * 9 / 10);
}

//===----------------------------------------------------------------------===//
// Memory, safety stock, gaps
//===----------------------------------------------------------------------===//

// DynaPipe, figure 11c: room for three delays all behind them.
TEST(CyclicOrdersTest, MemoryDelaysMicroBatches) {
  std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  PipelineProblem problem = even(4, 8);
  StageOrders free = cyclicOrders(problem, all);
  EXPECT_EQ(textOf(free[0]),
            "F0 F1 F2 F3 F4 F5 F6 B0 F7 B1 B2 B3 B4 B5 B6 B7 ");
  problem.limits.assign(4, 3);
  StageOrders limited = cyclicOrders(problem, all);
  EXPECT_EQ(textOf(limited[0]),
            "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 B6 B7 ");
  EXPECT_THAT(peakBytesOf(timed(limited, problem), problem),
              testing::Each(testing::Le(3)));
  // Large ones wait for all before them.
  problem.kept.assign(4, {1, 1, 1, 3, 1, 1, 3, 1});
  limited = cyclicOrders(problem, all);
  EXPECT_EQ(textOf(limited[0]),
            "F0 F1 F2 B0 B1 B2 F3 B3 F4 F5 B4 B5 F6 B6 F7 B7 ");
}

// The limit is tested for the first one too.
TEST(AdaptiveScheduleTest, RefusesWhatDoesNotFitAlone) {
  PipelineProblem problem = even(3, 4);
  problem.limits.assign(3, 2048);
  problem.kept[1][0] = 4096;
  EXPECT_EQ(
      ruleOf(Schedule::Adaptive).order(problem).status().message(),
      "micro-batch 0 alone keeps 4.0 KiB on stage 1, but there are 2.0 KiB: "
      "use smaller micro-batches or more recomputation");
  for (int64_t m = 0; m < 4; ++m)
    problem.contents.push_back({m, m, 512});
  EXPECT_THAT(ruleOf(Schedule::Adaptive).order(problem).status().message(),
              HasSubstr("micro-batch 0 with sample 0 (512 tokens) alone keeps "
                        "4.0 KiB on stage 1, but there are 2.0 KiB, enough for "
                        "about 256 tokens: use smaller"));
  problem.contents.clear();
  problem.kept[1][0] = 2048;
  EXPECT_TRUE(ruleOf(Schedule::Adaptive).order(problem).isOk());
  // What stays for weight gradients counts too.
  problem.weight = problem.forward;
  problem.late = problem.kept;
  problem.late[2][3] = 3072;
  EXPECT_THAT(ruleOf(Schedule::Adaptive).order(problem).status().message(),
              HasSubstr("micro-batch 3 alone keeps 3.0 KiB on stage 2"));
}

// What needs no gradient is done before it comes.
TEST(AdaptiveScheduleTest, ComputesAgainBeforeTheGradientComes) {
  PipelineProblem problem = even(2, 1);
  problem.recompute = problem.forward;
  for (auto &row : problem.backward)
    row[0] += 1;
  StageOrders orders = adaptive(problem);
  // F0 F1, R1 B1, B0, with R0 beside stage 1.
  EXPECT_DOUBLE_EQ(makespanOf(orders), 1 + 1 + 1 + 2 + 2);
  EXPECT_DOUBLE_EQ(orders[0][1].start, 1);
  EXPECT_DOUBLE_EQ(orders[0][1].inputs, 5);
  EXPECT_DOUBLE_EQ(makespanOf(timed(orders, problem)), 1 + 1 + 3 + 3);
}

} // namespace
