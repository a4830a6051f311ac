//===- StageGraphTest.cpp - Pipelines whose stages are no chain -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/plan/verify/ExchangeChecker.h"
#include "runtime/plan/verify/OrderChecker.h"
#include "runtime/planner/order/GraphLinks.h"
#include "runtime/planner/order/PipelineBounds.h"
#include "runtime/planner/order/schedules/OrderSimulator.h"
#include "runtime/planner/write/ProgramWriter.h"
#include "test/runtime/plan/SkippingModel.h"
#include "test/runtime/planner/Draw.h"
#include "test/runtime/planner/TimedOrders.h"

#include <gmock/gmock.h>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

//===----------------------------------------------------------------------===//
// Random graphs
//===----------------------------------------------------------------------===//

std::vector<int> shuffled(Draw &draw, int count) {
  std::vector<int> list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), 0);
  for (int k = count - 1; k > 0; --k)
    std::swap(list[static_cast<size_t>(k)],
              list[static_cast<size_t>(draw.below(k + 1))]);
  return list;
}

/// Stages in any order, with skips, several links into and out of a stage, and some
/// pairs of stages with two links. Whole numbers, so that sums are exact.
PipelineProblem randomGraph(Draw &draw, int stages, int microBatches) {
  PipelineProblem problem;
  const bool split = draw.below(2), recompute = draw.below(2);
  for (int s = 0; s < stages; ++s) {
    std::vector<double> forward, backward, weight, again;
    for (int m = 0; m < microBatches; ++m) {
      forward.push_back(1 + draw.below(20));
      weight.push_back(1 + draw.below(20));
      again.push_back(recompute ? draw.below(10) : 0);
      backward.push_back(1 + draw.below(20) + weight.back() + again.back());
    }
    problem.forward.push_back(forward);
    problem.backward.push_back(backward);
    if (split)
      problem.weight.push_back(weight);
    if (recompute)
      problem.recompute.push_back(again);
  }
  const std::vector<int> order = shuffled(draw, stages);
  for (size_t to = 1; to < order.size(); ++to)
    for (size_t from = 0; from < to; ++from)
      for (int times = draw.below(3); times > 0; --times)
        problem.links.push_back({order[from], order[to],
                                 static_cast<double>(draw.below(6)),
                                 static_cast<int>(problem.links.size())});
  // Without links the problem would be a chain.
  if (problem.links.empty() && stages > 1)
    problem.links.push_back({order[0], order[1], 1, 0});
  return problem;
}

/// Runs the items by nothing but the links of the problem. Expects that every item is
/// there once, and ends as it says. Returns the makespan.
class Replay {
public:
  Replay(const PipelineProblem &problem, bool fillsGaps)
      : problem_(problem), fillsGaps_(fillsGaps) {}

  double run(const StageOrders &orders) {
    std::vector<size_t> next(orders.size(), 0);
    std::vector<double> free(orders.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t s = 0; s < orders.size(); ++s)
        while (next[s] < orders[s].size()) {
          const PipelineItem &item = orders[s][next[s]];
          const std::optional<double> inputs =
              inputsOf(static_cast<int>(s), item);
          if (!inputs)
            break;
          auto [head, seconds] = secondsOf(static_cast<int>(s), item);
          free[s] = std::max(free[s] + head, *inputs) + seconds;
          EXPECT_EQ(item.end, free[s]);
          EXPECT_TRUE(
              ends_
                  .insert({{static_cast<int>(s), item.kind, item.microBatch},
                           free[s]})
                  .second);
          ++next[s];
          progress = true;
        }
    }
    double makespan = 0;
    for (size_t s = 0; s < orders.size(); ++s) {
      EXPECT_EQ(next[s], orders[s].size()) << "stage " << s << " is stuck";
      makespan = std::max(makespan, free[s]);
    }
    return makespan;
  }

private:
  /// Time at which all that the item runs after has come; none: not known yet.
  std::optional<double> inputsOf(int s, const PipelineItem &item) const {
    double latest = 0;
    auto await = [&](int stage, ItemKind kind, double seconds) {
      auto found = ends_.find({stage, kind, item.microBatch});
      latest = found == ends_.end() ? 1e300
                                    : std::max(latest, found->second + seconds);
    };
    bool isLast = true;
    for (const StageLink &link : problem_.links) {
      if (item.isForward() && link.to == s)
        await(link.from, ItemKind::Forward, link.seconds);
      if (item.isBackward() && link.from == s)
        await(link.to, ItemKind::Backward, link.seconds);
      isLast &= link.from != s;
    }
    if (item.isBackward() && isLast)
      await(s, ItemKind::Forward, 0);
    if (item.kind == ItemKind::Weight)
      await(s, ItemKind::Backward, 0);
    return latest < 1e300 ? std::optional(latest) : std::nullopt;
  }

  std::pair<double, double> secondsOf(int s, const PipelineItem &item) const {
    const int m = item.microBatch;
    const size_t stage = static_cast<size_t>(s), at = static_cast<size_t>(m);
    if (item.isForward())
      return {0, problem_.forward[stage][at]};
    if (item.kind == ItemKind::Weight)
      return {0, problem_.weightOf(s, m)};
    if (!fillsGaps_)
      return {0, problem_.backward[stage][at]};
    const double head = problem_.recomputeOf(s, m);
    return {head,
            problem_.backward[stage][at] - head - problem_.weightOf(s, m)};
  }

  const PipelineProblem &problem_;
  const bool fillsGaps_;
  std::map<std::tuple<int, ItemKind, int>, double> ends_;
};

TEST(StageGraphTest, EveryScheduleHoldsOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(seed);
    const int stages = 1 + draw.below(6), count = 1 + draw.below(8);
    PipelineProblem problem = randomGraph(draw, stages, count);
    problem.inFlight = 1 + draw.below(count);
    problem.searchItems = 2000;
    const double bound = boundPipeline(problem).seconds();
    for (Schedule schedule : allSchedules()) {
      const ScheduleRule &rule = ruleOf(schedule);
      SCOPED_TRACE(rule.name);
      auto orders = rule.order(problem);
      ASSERT_TRUE(orders.isOk()) << orders.status().message();
      ClockOptions clock;
      clock.fillsGaps = rule.adapts;
      const Status status = timeItems(*orders, problem, clock);
      ASSERT_TRUE(status.isOk()) << status.message();
      const double makespan = Replay(problem, rule.adapts).run(*orders);
      EXPECT_EQ(makespan, makespanOf(*orders));
      EXPECT_GE(makespan, bound * (1 - 1e-9));
      for (const auto &items : *orders)
        EXPECT_EQ(
            items.size(),
            static_cast<size_t>(
                count * (rule.adapts && problem.splitsBackward() ? 3 : 2)));
    }
    if (testing::Test::HasFailure())
      return;
  }
}

// Orders that are tried from the state of another one take as long as from the start,
// and as the clock says.
TEST(StageGraphTest, TheSimulatorOfOrdersAgreesWithTheClock) {
  int tried = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Draw draw(1000 + seed);
    const int stages = 2 + draw.below(5), count = 8 + draw.below(12);
    const PipelineProblem problem = randomGraph(draw, stages, count);
    const std::vector<int> all(static_cast<size_t>(stages), count);
    OrderSimulator simulator(problem, all), fresh(problem, all);
    DispatchRule rule;
    rule.fillsFirst = draw.below(2);
    simulator.setRule(rule);
    fresh.setRule(rule);
    MicroBatchOrder order;
    order.forwards = shuffled(draw, count);
    order.backwards = order.forwards;
    simulator.adopt(order);
    for (int turn = 0; turn < 5; ++turn) {
      const size_t a = static_cast<size_t>(draw.below(count));
      const size_t b = static_cast<size_t>(draw.below(count));
      std::swap(order.forwards[a], order.forwards[b]);
      if (draw.below(2))
        std::swap(order.backwards[a], order.backwards[b]);
      StageOrders orders;
      const double expected = fresh.play(order, orders);
      EXPECT_EQ(simulator.evaluate(order, OrderSimulator::never), expected);
      ClockOptions clock;
      clock.fillsGaps = true;
      ASSERT_TRUE(timeItems(orders, problem, clock).isOk());
      EXPECT_EQ(makespanOf(orders), expected);
      tried += expected < OrderSimulator::never;
      if (draw.below(2))
        EXPECT_EQ(simulator.adopt(order), expected);
    }
    if (testing::Test::HasFailure())
      return;
  }
  EXPECT_EQ(tried, 2000);
}

//===----------------------------------------------------------------------===//
// By hand
//===----------------------------------------------------------------------===//

PipelineItem itemOf(ItemKind kind, int m) {
  PipelineItem item;
  item.kind = kind;
  item.microBatch = m;
  return item;
}

// Stage 2 takes what stages 0 and 1 give. The message from stage 0 takes longest.
TEST(StageGraphTest, AnItemRunsAfterBothOfItsInputs) {
  PipelineProblem problem = even(3, 1);
  problem.links = {{0, 1, 1}, {1, 2, 1}, {0, 2, 10}};
  const StageOrders orders =
      timed(*ruleOf(Schedule::OneForwardOneBackward).order(problem), problem);
  EXPECT_EQ(orders[1][0].start, 2);
  EXPECT_EQ(orders[2][0].start, 11);
  EXPECT_EQ(orders[2][1].end, 14);
  EXPECT_EQ(orders[1][1].start, 15);
  // Both gradients: that of stage 1 at 18, that of stage 2 at 24.
  EXPECT_EQ(orders[0][1].start, 24);
  EXPECT_NEAR(boundPipeline(problem).path, 26, 1e-6);
}

TEST(StageGraphTest, ListsAllPredecessors) {
  PipelineProblem problem = even(3, 2);
  problem.links = {{0, 1, 1, 7}, {1, 2, 1, 8}, {0, 2, 10, 9}};
  problem.previous = {-1, 0};
  const StageGraph graph(problem);
  auto list = [&](int stage, ItemKind kind, int m) {
    std::vector<std::string> names;
    graph.forEachPredecessor(stage, kind, m, [&](const Predecessor &one) {
      names.push_back(formatText(
          "%s%d on %d by %d", one.kind == ItemKind::Forward ? "F" : "B",
          one.microBatch, one.stage, one.link ? one.link->edge : -1));
    });
    return names;
  };
  EXPECT_THAT(list(2, ItemKind::Forward, 1),
              ElementsAre("F1 on 1 by 8", "F1 on 0 by 9", "F0 on 2 by -1"));
  EXPECT_THAT(list(0, ItemKind::Backward, 0),
              ElementsAre("B0 on 1 by 7", "B0 on 2 by 9", "B1 on 0 by -1"));
  EXPECT_THAT(list(2, ItemKind::Backward, 1), ElementsAre("F1 on 2 by -1"));
  EXPECT_THAT(list(1, ItemKind::Weight, 0), ElementsAre("B0 on 1 by -1"));
  EXPECT_EQ(graph.depth(0), 3);
}

// Micro-batch 1 continues micro-batch 0: forward behind it, backward before it.
TEST(StageGraphTest, MicroBatchesFollowEachOther) {
  PipelineProblem problem = even(2, 2);
  problem.previous = {-1, 0};
  const ItemKind forward = ItemKind::Forward, backward = ItemKind::Backward;
  const std::vector<PipelineItem> right = {
      itemOf(forward, 0), itemOf(forward, 1), itemOf(backward, 1),
      itemOf(backward, 0)};
  StageOrders orders = {right, right};
  EXPECT_TRUE(timeItems(orders, problem, {}).isOk());
  problem.inFlight = 2;
  StageOrders wrong = *ruleOf(Schedule::GPipe).order(even(2, 2));
  EXPECT_THAT(timeItems(wrong, problem, {}).message(),
              HasSubstr("wait for each other"));
}

TEST(StageGraphTest, CirclesAreRefused) {
  PipelineProblem problem = even(4, 2);
  problem.links = {{0, 1, 1}, {1, 2, 0}, {2, 1, 0}, {2, 3, 0}};
  StageOrders orders(4);
  const std::string expected = "stage 1 takes part in a circle of links";
  EXPECT_THAT(timeItems(orders, problem, {}).message(), HasSubstr(expected));
  for (Schedule schedule : allSchedules()) {
    PlanOptions options;
    options.schedule = schedule;
    EXPECT_THAT(schedulePipeline(problem, options, true).status().message(),
                HasSubstr(expected));
  }
  problem.links = {{2, 2, 0}};
  EXPECT_THAT(timeItems(orders, problem, {}).message(),
              HasSubstr("stage 2 takes part"));
  problem.links.clear();
  problem.previous = {1, 0};
  EXPECT_THAT(timeItems(orders, problem, {}).message(),
              HasSubstr("micro-batch 0 comes after itself"));
  // Micro-batch 0 comes after nothing, and 1 after a circle.
  problem = even(1, 4);
  problem.previous = {-1, 2, 3, 2};
  EXPECT_THAT(StageGraph(problem).check().message(),
              HasSubstr("micro-batch 1 comes after itself"));
}

// Every list of four micro-batches: a circle is found from the first one that leads to it.
TEST(StageGraphTest, CirclesOfMicroBatchesAreFound) {
  PipelineProblem problem = even(1, 4);
  problem.previous.assign(4, -1);
  for (int list = 0; list < 5 * 5 * 5 * 5; ++list) {
    for (int m = 0, rest = list; m < 4; ++m, rest /= 5)
      problem.previous[m] = rest % 5 - 1;
    int first = -1;
    for (int m = 3; m >= 0; --m) {
      int at = m;
      for (int steps = 0; at >= 0 && steps < 5; ++steps)
        at = problem.previous[at];
      if (at >= 0)
        first = m;
    }
    const Status found = StageGraph(problem).check();
    EXPECT_EQ(found.isOk(), first < 0) << list;
    if (first >= 0)
      EXPECT_THAT(found.message(),
                  HasSubstr("micro-batch " + std::to_string(first) + " comes"));
  }
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// Verifies P3 and P9 to P11. Nothing else can hold: the layers have no functions.
void verify(const ExecutableGraph &graph, const plan::Plan &plan,
            const std::vector<int> &microBatches) {
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    auto order = OrderChecker::create(graph.replicaView(rank), microBatches,
                                      {false, false, {false}});
    for (const plan::Instruction &i : plan.ranks[rank].instructions) {
      const Status status = order->step(i);
      ASSERT_TRUE(status.isOk())
          << "rank " << rank << " " << describeInstruction(i) << ": "
          << status.message();
    }
    ASSERT_TRUE(order->finish().isOk()) << order->finish().message();
  }
  PlanPosition failedAt;
  const Status status = verifyExchanges(graph, plan, failedAt);
  ASSERT_TRUE(status.isOk()) << status.message();
}

// The planner's programs, with messages that skip stages, pass the rules of plans.
TEST(StageGraphTest, ProgramsOfGraphsThatSkipStagesAreLegal) {
  for (const char *strategy :
       {"pp=4,layers=1+1+1+2", "pp=2,layers=2+3", "pp=3,layers=1+2+2"})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const ExecutableGraph graph = skippingGraph(strategy);
      Draw draw(seed);
      const int count = 1 + draw.below(6);
      PipelineProblem problem = randomGraph(draw, graph.stages(), count);
      problem.weight.clear();
      problem.links = linksOf(graph, draw.below(4));
      plan::Plan plan;
      plan.microBatches.assign(static_cast<size_t>(count), {{{0, 0, 10}}, 0});
      std::vector<int> all(static_cast<size_t>(count));
      std::iota(all.begin(), all.end(), 0);
      for (Schedule schedule : allSchedules()) {
        SCOPED_TRACE(std::string(strategy) + " " + ruleOf(schedule).name);
        PlanChoice choice;
        choice.schedule = schedule;
        choice.update = false;
        choice.inFlight = 1 + draw.below(count);
        const bool trains = draw.below(4) > 0;
        auto pipeline = schedulePipeline(problem, choice, trains);
        ASSERT_TRUE(pipeline.isOk()) << pipeline.status().message();
        plan.ranks.assign(static_cast<size_t>(graph.ranks()), {});
        for (int rank = 0; rank < graph.ranks(); ++rank) {
          ProgramWriter writer(graph, choice, plan, rank);
          writeSchedule(graph.placeOf(rank), *pipeline, all, trains, writer);
        }
        verify(graph, plan, all);
        if (testing::Test::HasFatalFailure())
          return;
      }
    }
}

} // namespace
