//===- ChimeraTest.cpp - Two pipelines on the same devices ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/ChimeraSlots.h"
#include "test/runtime/planner/Draw.h"
#include "test/runtime/planner/TimedOrders.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <tuple>

using namespace dyna;

namespace {

/// Two pipelines under the schedule, on the same devices.
struct Mirrored {
  Mirrored(PipelineProblem down, PipelineProblem up,
           Schedule schedule = Schedule::Chimera)
      : problems{std::move(down), std::move(up)} {
    for (int i : {0, 1})
      orders[i] = *ruleOf(schedule).order(problems[i]);
    ClockOptions clock;
    clock.fillsGaps = ruleOf(schedule).adapts;
    status =
        timeMirrored({orders[0], problems[0]}, {orders[1], problems[1]}, clock);
  }

  int stages() const { return problems[0].stages(); }
  double makespan() const {
    return std::max(makespanOf(orders[0]), makespanOf(orders[1]));
  }
  /// Items of a device, with the pipeline and the stage.
  std::vector<std::tuple<PipelineItem, int, int>> on(int device) const {
    std::vector<std::tuple<PipelineItem, int, int>> items;
    for (int i : {0, 1}) {
      const int stage = i == 0 ? device : stages() - 1 - device;
      for (const PipelineItem &item : orders[i][stage])
        items.push_back({item, i, stage});
    }
    std::sort(items.begin(), items.end(), [](const auto &a, const auto &b) {
      return std::get<0>(a).start < std::get<0>(b).start;
    });
    return items;
  }
  /// Seconds in which devices have no item, all together.
  double idle() const {
    double idle = stages() * makespan();
    for (const StageOrders &pipeline : orders)
      for (const auto &items : pipeline)
        for (const PipelineItem &item : items)
          idle -= item.end - item.start;
    return idle;
  }

  PipelineProblem problems[2];
  StageOrders orders[2];
  Status status;
};

PipelineProblem pipelineOf(int stages, int microBatches, double forward,
                           double backward, double message = 0) {
  PipelineProblem problem = even(stages, microBatches);
  for (auto &stage : problem.forward)
    for (double &seconds : stage)
      seconds = forward;
  for (auto &stage : problem.backward)
    for (double &seconds : stage)
      seconds = backward;
  problem.links = chainOf(stages, message);
  return problem;
}

/// Half of P micro-batches in each direction.
Mirrored oneUnit(int stages, double forward, double backward,
                 double message = 0) {
  const PipelineProblem half =
      pipelineOf(stages, stages / 2, forward, backward, message);
  return Mirrored(half, half);
}

// Equation 1 of DynPipe's appendix without communication: P micro-batches are idle for
// 2 (P²/2 - P) T_B of (2 P² - 2 P) T_B + P² T_F.
TEST(ChimeraTest, IdleTimeIsThatOfTheEquation) {
  for (int p = 2; p <= 16; p += 2)
    for (double backward : {1.0, 1.25, 2.0, 3.0}) {
      SCOPED_TRACE(testing::Message() << p << " stages, T_B " << backward);
      const Mirrored made = oneUnit(p, 1, backward);
      ASSERT_TRUE(made.status.isOk()) << made.status.message();
      EXPECT_EQ(made.makespan(), p + (2 * p - 2) * backward);
      EXPECT_EQ(made.idle(), 2 * (p * p / 2 - p) * backward);
    }
  // Its condition: where a forward is longer, other items are on the longest path.
  EXPECT_NE(oneUnit(8, 2, 1).idle(), 2 * (8 * 8 / 2 - 8));
}

// The span has 3 P - 2 items one after another, and the equation counts T_C behind each.
// Three of them send nothing to another device: two hand over to their own device, and
// nothing comes after the last. With two stages there are four items and two messages.
TEST(ChimeraTest, MessagesOnTheLongestPath) {
  const double message = 1.0 / 1024;
  for (int p = 2; p <= 16; p += 2) {
    SCOPED_TRACE(p);
    const double least = p + (2 * p - 2) * 2;
    const double count =
        (oneUnit(p, 1, 2, message).makespan() - least) / message;
    EXPECT_EQ(count, p == 2 ? 2 : 3 * p - 5);
    // Charged to every item, messages take what the equation's denominator says.
    const Mirrored charged = oneUnit(p, 1 + message, 2 + message);
    EXPECT_EQ((charged.makespan() - least) / message, 3 * p - 2);
  }
}

// With T_F = T_B devices only idle while the first unit begins and the last one ends.
TEST(ChimeraTest, UnitsFollowEachOtherWithoutGaps) {
  for (int p = 2; p <= 12; p += 2)
    for (int units = 1; units <= 4; ++units) {
      const PipelineProblem half = pipelineOf(p, units * p / 2, 1, 1);
      const Mirrored made(half, half);
      ASSERT_TRUE(made.status.isOk()) << made.status.message();
      EXPECT_EQ(made.makespan(), 2 * units * p + p - 2) << p << " " << units;
    }
}

TEST(ChimeraTest, SlotsOfADeviceDiffer) {
  for (int p = 2; p <= 16; p += 2)
    for (int device = 0; device < p; ++device) {
      std::set<int64_t> slots;
      const int count = 3 * p;
      for (int stage : {device, p - 1 - device})
        for (int m = 0; m < count; ++m)
          for (bool isForward : {true, false})
            slots.insert(chimeraSlot(isForward, m, stage, p));
      EXPECT_EQ(slots.size(), static_cast<size_t>(4 * count));
    }
}

// Whatever the order of a stage, an item comes behind all that it waits for.
TEST(ChimeraTest, SlotsGrowAlongAllWaits) {
  Draw draw(5);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const int stages = 1 + draw.below(8), count = draw.below(9);
    const Schedule schedule = allSchedules()[static_cast<size_t>(
        draw.below(static_cast<int>(allSchedules().size())))];
    PipelineProblem problem = pipelineOf(stages, count, 1, 2);
    problem.inFlight = 1 + draw.below(4);
    const StageOrders orders = *ruleOf(schedule).order(problem);
    std::vector<std::vector<SlotItem>> items;
    std::vector<std::pair<int, int>> links;
    for (int s = 0; s < stages; ++s) {
      items.emplace_back();
      for (const PipelineItem &item : orders[s])
        items.back().push_back({item.isForward() ? SlotItem::Kind::Forward
                                                 : SlotItem::Kind::Backward,
                                item.microBatch});
      if (s > 0)
        links.push_back({s - 1, s});
    }
    const auto slots = chimeraSlots(items, links);
    auto slotOf = [&](int s, SlotItem::Kind kind, int m) {
      for (size_t i = 0; i < items[s].size(); ++i)
        if (items[s][i].kind == kind && items[s][i].microBatch == m)
          return slots[s][i];
      return int64_t{-1};
    };
    for (int s = 0; s < stages; ++s) {
      for (size_t i = 1; i < slots[s].size(); ++i)
        EXPECT_GT(slots[s][i], slots[s][i - 1]);
      for (int m = 0; s > 0 && m < count; ++m) {
        EXPECT_GT(slotOf(s, SlotItem::Kind::Forward, m),
                  slotOf(s - 1, SlotItem::Kind::Forward, m));
        EXPECT_GT(slotOf(s - 1, SlotItem::Kind::Backward, m),
                  slotOf(s, SlotItem::Kind::Backward, m));
      }
    }
    if (schedule == Schedule::Chimera)
      for (int s = 0; s < stages; ++s)
        for (int m = 0; m < count; ++m)
          EXPECT_EQ(slotOf(s, SlotItem::Kind::Backward, m),
                    chimeraSlot(false, m, s, stages));
    if (testing::Test::HasFailure())
      return;
  }
}

// Orders of other schedules, too: plans that do not fit memory fall back to them.
TEST(ChimeraTest, ClockAgreesWithANaiveOne) {
  Draw draw(3);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const int stages = 2 * (1 + draw.below(4));
    PipelineProblem problems[2];
    for (PipelineProblem &problem : problems) {
      problem = pipelineOf(stages, draw.below(8), 1, 1, draw.below(3));
      for (auto *table : {&problem.forward, &problem.backward})
        for (auto &stage : *table)
          for (double &seconds : stage)
            seconds = 1 + draw.below(9);
    }
    const Schedule schedules[] = {Schedule::Chimera, Schedule::Chimera,
                                  Schedule::OneForwardOneBackward,
                                  Schedule::Sequential, Schedule::GPipe};
    const Mirrored made(problems[0], problems[1], schedules[draw.below(5)]);
    ASSERT_TRUE(made.status.isOk()) << made.status.message();
    // Every item begins at the latest end of what it waits for.
    std::map<std::tuple<int, int, ItemKind, int>, double> ends;
    for (int i : {0, 1})
      for (int s = 0; s < stages; ++s)
        for (const PipelineItem &item : made.orders[i][s])
          ends[{i, s, item.kind, item.microBatch}] = item.end;
    for (int device = 0; device < stages; ++device) {
      double free = 0;
      for (const auto &[item, i, s] : made.on(device)) {
        double begin = free;
        const double message =
            problems[i].links.empty() ? 0 : problems[i].links[0].seconds;
        if (item.isForward() && s > 0)
          begin = std::max(
              begin, ends.at({i, s - 1, item.kind, item.microBatch}) + message);
        if (item.isBackward() && s + 1 < stages)
          begin = std::max(
              begin, ends.at({i, s + 1, item.kind, item.microBatch}) + message);
        if (item.isBackward() && s + 1 == stages)
          begin = std::max(begin,
                           ends.at({i, s, ItemKind::Forward, item.microBatch}));
        EXPECT_EQ(item.start, begin);
        const auto &seconds =
            item.isForward() ? problems[i].forward : problems[i].backward;
        EXPECT_EQ(item.end, item.start + seconds[s][item.microBatch]);
        free = item.end;
      }
    }
    if (testing::Test::HasFailure())
      return;
  }
}

TEST(ChimeraTest, OrdersThatWaitForEachOtherAreNamed) {
  PipelineProblem problem = pipelineOf(2, 2, 1, 2);
  StageOrders right = *ruleOf(Schedule::Chimera).order(problem), wrong = right;
  // The first stage wants the backward of 1 before its forward.
  wrong[0] = {{ItemKind::Backward, 1},
              {ItemKind::Forward, 0},
              {ItemKind::Backward, 0},
              {ItemKind::Forward, 1}};
  const Status status = timeMirrored({right, problem}, {wrong, problem}, {});
  ASSERT_FALSE(status.isOk());
  EXPECT_THAT(status.message(), testing::HasSubstr("wait for each other"));
}

} // namespace
