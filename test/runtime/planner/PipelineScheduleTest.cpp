//===- PipelineScheduleTest.cpp - The order of work of a replica ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PipelineSchedule.h"

#include "runtime/abi/Random.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace dyna;

namespace {

/// Every backward takes twice its forward.
StageCosts withBackwards(std::vector<std::vector<double>> forward) {
  StageCosts costs{forward, std::move(forward)};
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
  for (const PipelineItem &item : items)
    text += (item.forward ? "F" : "B") + std::to_string(item.microBatch) + " ";
  return text;
}

TEST(PipelineScheduleTest, OrdersAreThoseOfTheirNames) {
  StageCosts even = withBackwards({3, std::vector<double>(4, 1.0)});
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

// A stage that is ten times as fast as the next one waits for it.
TEST(PipelineScheduleTest, EvaluationHoldsFastStagesBack) {
  constexpr int count = 20;
  std::vector<double> fast(count, 1), slow(count, 10);
  PipelineSchedule schedule =
      *schedulePipeline({{fast, slow, fast}, {}}, PlanOptions(), false);
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
      StageCosts even =
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
    for (shape.stage = 0; shape.stage < shape.stages; ++shape.stage) {
      std::vector<PipelineItem> items = rule().order(shape);
      int forwards = 0, backwards = 0, most = 0;
      for (const PipelineItem &item : items) {
        EXPECT_EQ(item.microBatch, item.forward ? forwards : backwards);
        ++(item.forward ? forwards : backwards);
        EXPECT_LE(backwards, forwards) << "a backward before its forward";
        most = std::max(most, forwards - backwards);
      }
      EXPECT_EQ(forwards, shape.microBatches);
      EXPECT_EQ(backwards, shape.microBatches);
      EXPECT_EQ(most, rule().mostKept(shape));
      StageShape other = shape;
      other.inFlight += 5;
      if (!rule().readsInFlight)
        EXPECT_EQ(textOf(rule().order(other)), textOf(items));
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
    StageCosts costs;
    for (auto *list : {&costs.forward, &costs.backward})
      for (int s = 0; s < shape.stages; ++s) {
        list->emplace_back();
        for (int m = 0; m < shape.microBatches; ++m)
          list->back().push_back(draw());
      }
    auto made =
        schedulePipeline(costs, chosen(GetParam(), shape.inFlight), true);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    auto timeOf = [&](int s, bool forward, int m) {
      for (const PipelineItem &item : made->stages[s])
        if (item.forward == forward && item.microBatch == m)
          return item;
      return PipelineItem();
    };
    for (int s = 0; s < shape.stages; ++s) {
      double free = 0;
      for (const PipelineItem &item : made->stages[s]) {
        int m = item.microBatch;
        EXPECT_GE(item.start, free);
        free = item.end;
        EXPECT_DOUBLE_EQ(item.end - item.start,
                         (item.forward ? costs.forward : costs.backward)[s][m]);
        if (item.forward ? s > 0 : s + 1 < shape.stages) {
          int from = item.forward ? s - 1 : s + 1;
          EXPECT_GE(item.start, timeOf(from, item.forward, m).end);
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
  EXPECT_EQ(names.rfind("1f1b, gpipe, sequential, ", 0), 0u) << names;
  EXPECT_EQ(findSchedule("zigzag").status().message(),
            "the schedules are " + names + "but got 'zigzag'");
}

} // namespace
