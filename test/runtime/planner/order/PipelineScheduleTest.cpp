//===- PipelineScheduleTest.cpp - The order of work of a replica ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/write/PipelineSchedule.h"

#include "runtime/abi/Random.h"
#include "runtime/planner/order/PipelineTimes.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <set>

using namespace dyna;

namespace {

/// Every backward takes twice its forward.
PipelineProblem withBackwards(std::vector<std::vector<double>> forward) {
  PipelineProblem costs;
  costs.forward = costs.backward = std::move(forward);
  for (std::vector<double> &stage : costs.backward)
    for (double &seconds : stage)
      seconds *= 2;
  return costs;
}

PlanOptions chosen(Schedule schedule, int inFlight = 1) {
  PlanOptions options;
  options.schedule = schedule;
  options.inFlight = inFlight;
  return options;
}

std::string textOf(const std::vector<PipelineItem> &items) {
  std::string text;
  for (const PipelineItem &item : items) {
    text += "FBW"[static_cast<int>(item.kind)];
    text += std::to_string(item.microBatch) + " ";
  }
  return text;
}

TEST(PipelineScheduleTest, OrdersAreThoseOfTheirNames) {
  PipelineProblem even = withBackwards({3, std::vector<double>(4, 1.0)});
  PipelineSchedule schedule =
      *schedulePipeline(even, chosen(Schedule::OneForwardOneBackward), true);
  EXPECT_EQ(textOf(schedule.stages[0]), "F0 F1 F2 B0 F3 B1 B2 B3 ");
  EXPECT_EQ(textOf(schedule.stages[1]), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(textOf(schedule.stages[2]), "F0 B0 F1 B1 F2 B2 F3 B3 ");
  PlanOptions options = chosen(Schedule::GPipe, 3);
  schedule = *schedulePipeline(even, options, true);
  EXPECT_EQ(textOf(schedule.stages[1]), "F0 F1 F2 B0 B1 B2 F3 B3 ");
  EXPECT_EQ(textOf(schedulePipeline(even, options, false)->stages[0]),
            "F0 F1 F2 F3 ");
  schedule = *schedulePipeline(even, chosen(Schedule::Sequential, 3), true);
  EXPECT_EQ(textOf(schedule.stages[0]), "F0 B0 F1 B1 F2 B2 F3 B3 ");
}

// Times still tell in which order items run, however little they take.
TEST(PipelineScheduleTest, ItemsThatTakeNothingBesideMessagesHaveAnOrder) {
  for (double seconds : {0.0, 1e-290}) {
    PipelineProblem problem = withBackwards({2, {seconds, seconds, seconds}});
    problem.links = chainOf(problem.stages(), 1e-6);
    for (Schedule schedule : allSchedules()) {
      PipelineSchedule timed =
          *schedulePipeline(problem, chosen(schedule, 2), true);
      for (const std::vector<PipelineItem> &items : timed.stages)
        for (size_t i = 0; i < items.size(); ++i) {
          EXPECT_LT(items[i].start, items[i].end) << ruleOf(schedule).name;
          if (i > 0)
            EXPECT_LE(items[i - 1].end, items[i].start)
                << ruleOf(schedule).name;
        }
    }
  }
}

TEST(PipelineScheduleTest, OrdersThatWaitForEachOtherAreNamed) {
  PipelineProblem problem = withBackwards({2, {1, 1}});
  auto item = [](ItemKind kind, int m) {
    PipelineItem item;
    item.kind = kind;
    item.microBatch = m;
    return item;
  };
  const ItemKind forward = ItemKind::Forward, backward = ItemKind::Backward;
  // Stage 0 has the backward of 0 before the forward of 1, stage 1 the forward
  // of 1 before that of 0.
  StageOrders orders = {{item(forward, 0), item(backward, 0), item(forward, 1),
                         item(backward, 1)},
                        {item(forward, 1), item(forward, 0), item(backward, 0),
                         item(backward, 1)}};
  Status status = timeItems(orders, problem, {});
  ASSERT_FALSE(status.isOk());
  EXPECT_THAT(status.message(),
              testing::HasSubstr("wait for each other, such as the backward of "
                                 "micro-batch 0 on stage 0"));
}

// A stage that is ten times as fast as the next one waits for it.
TEST(PipelineScheduleTest, EvaluationHoldsFastStagesBack) {
  constexpr int count = 20;
  std::vector<double> fast(count, 1), slow(count, 10);
  PipelineProblem costs;
  costs.forward = {fast, slow, fast};
  PipelineSchedule schedule = *schedulePipeline(costs, PlanOptions(), false);
  const auto &stages = schedule.stages;
  for (int m = 2; m < count; ++m)
    EXPECT_GE(stages[0][m].start, stages[1][m - 2].end) << m;
  EXPECT_EQ(stages[2].back().end, 1 + 10 * count + 1);
  EXPECT_EQ(schedule.messages.size(), 2u * count);
}

// 1F1B of m micro-batches on p equal stages takes (m + p - 1) (f + b).
TEST(PipelineScheduleTest, MakespanOfEqualStages) {
  for (int p : {1, 2, 4})
    for (int m : {1, 3, 8}) {
      PipelineProblem even =
          withBackwards({static_cast<size_t>(p), std::vector<double>(m, 1.0)});
      PipelineSchedule schedule = *schedulePipeline(
          even, chosen(Schedule::OneForwardOneBackward), true);
      EXPECT_DOUBLE_EQ(schedule.stages[0].back().end, 3.0 * (m + p - 1));
      EXPECT_EQ(schedule.messages.size(), static_cast<size_t>(2 * m * (p - 1)));
    }
}

//===----------------------------------------------------------------------===//
// What every schedule of the table promises
//===----------------------------------------------------------------------===//

class SchedulesTest : public testing::TestWithParam<Schedule> {
protected:
  const ScheduleRule &rule() const { return ruleOf(GetParam()); }

  template <typename Visit> void forEachShape(Visit visit) {
    for (int stages = 1; stages <= 5; ++stages)
      for (int microBatches = 0; microBatches <= 9; ++microBatches)
        for (int inFlight = 1; inFlight <= 4; ++inFlight)
          visit(StageShape{0, stages, microBatches, inFlight});
  }
};

TEST_P(SchedulesTest, EveryStageRunsAllOnceInOneOrder) {
  forEachShape([&](StageShape shape) {
    PipelineProblem problem = withBackwards(
        {static_cast<size_t>(shape.stages),
         std::vector<double>(static_cast<size_t>(shape.microBatches), 1.0)});
    problem.inFlight = shape.inFlight;
    StageOrders orders = *rule().order(problem);
    ASSERT_EQ(orders.size(), problem.forward.size());
    std::vector<int> forwards, backwards;
    for (shape.stage = 0; shape.stage < shape.stages; ++shape.stage) {
      std::vector<int> forward, backward;
      int most = 0;
      for (const PipelineItem &item : orders[shape.stage]) {
        ASSERT_NE(item.kind, ItemKind::Weight) << "backward is not split";
        if (item.isBackward())
          EXPECT_THAT(forward, testing::Contains(item.microBatch))
              << "a backward before its forward";
        (item.isForward() ? forward : backward).push_back(item.microBatch);
        most =
            std::max(most, static_cast<int>(forward.size() - backward.size()));
      }
      if (shape.stage == 0) {
        forwards = forward;
        backwards = backward;
      }
      EXPECT_EQ(forward, forwards) << "another order than on other stages";
      EXPECT_EQ(backward, backwards);
      EXPECT_EQ(std::set<int>(forward.begin(), forward.end()).size(),
                static_cast<size_t>(shape.microBatches));
      EXPECT_EQ(std::set<int>(backward.begin(), backward.end()),
                std::set<int>(forward.begin(), forward.end()));
      // One that adapts may need less.
      if (rule().adapts)
        EXPECT_LE(most, rule().mostKept(shape));
      else
        EXPECT_EQ(most, rule().mostKept(shape));
    }
    if (!rule().readsInFlight) {
      problem.inFlight += 5;
      StageOrders others = *rule().order(problem);
      for (size_t s = 0; s < orders.size(); ++s)
        EXPECT_EQ(textOf(others[s]), textOf(orders[s]));
    }
  });
}

// Stages of random speeds: nobody waits for ever, no input is used before it is
// there, and no stage does two things at a time.
TEST_P(SchedulesTest, StagesOfAnySpeedsFitTogether) {
  uint64_t state = 1;
  auto draw = [&] {
    return 1 + static_cast<double>(dyna_mix64(state++) % 1000);
  };
  forEachShape([&](const StageShape &shape) {
    PipelineProblem costs;
    for (auto *list : {&costs.forward, &costs.backward})
      for (int s = 0; s < shape.stages; ++s) {
        list->emplace_back();
        for (int m = 0; m < shape.microBatches; ++m)
          list->back().push_back(draw());
      }
    auto made =
        schedulePipeline(costs, chosen(GetParam(), shape.inFlight), true);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    auto timeOf = [&](int s, ItemKind kind, int m) {
      for (const PipelineItem &item : made->stages[s])
        if (item.kind == kind && item.microBatch == m)
          return item;
      return PipelineItem();
    };
    for (int s = 0; s < shape.stages; ++s) {
      double free = 0;
      for (const PipelineItem &item : made->stages[s]) {
        int m = item.microBatch;
        EXPECT_GE(item.start, free);
        free = item.end;
        EXPECT_DOUBLE_EQ(
            item.end - item.start,
            (item.isForward() ? costs.forward : costs.backward)[s][m]);
        if (item.isForward() ? s > 0 : s + 1 < shape.stages) {
          int from = item.isForward() ? s - 1 : s + 1;
          EXPECT_GE(item.start, timeOf(from, item.kind, m).end);
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, SchedulesTest, testing::ValuesIn(allSchedules()),
                         [](const testing::TestParamInfo<Schedule> &info) {
                           return "Of_" + std::string(ruleOf(info.param).name);
                         });

TEST(ScheduleTableTest, AreFoundByName) {
  std::string names;
  for (Schedule schedule : allSchedules()) {
    EXPECT_EQ(*findSchedule(ruleOf(schedule).name), schedule);
    names += ruleOf(schedule).name + std::string(", ");
  }
  EXPECT_EQ(names.rfind("1f1b, gpipe, sequential, cyclic, adaptive, ", 0), 0u)
      << names;
  EXPECT_EQ(findSchedule("zigzag").status().message(),
            "the schedules are " + names + "but got 'zigzag'");
}

} // namespace
