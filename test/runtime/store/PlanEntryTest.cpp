//===- PlanEntryTest.cpp - Parts of plans in a store ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/store/PlanEntry.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/write/JoinPhases.h"
#include "test/runtime/plan/NaiveSwitch.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace dyna;
using testing::HasSubstr;

namespace {

class PlanEntryTest : public testing::Test {
protected:
  Planner planner_{*ExecutableGraph::create(
      modelWithDegrees(), *parseStrategy("dp=2,pp=2,layers=2+3"))};
  plan::Plan plan_ = *planner_.training(equalLengths, 100, tinyPlanOptions());
};

TEST_F(PlanEntryTest, APartHasTheRanksProgramAlone) {
  for (int rank = 0; rank < 4; ++rank) {
    std::string bytes = writePlanEntry(stepOf(plan_), 7, rank, 0.125 * rank);
    auto part = readPlanEntry(bytes, 7, rank);
    ASSERT_TRUE(part.isOk()) << part.status().message();
    EXPECT_EQ(part->predictedSeconds, 0.125 * rank);
    ASSERT_EQ(part->step.phaseCount(), 1);
    plan::Plan &own = part->step.phases[0].plan;
    for (int other = 0; other < 4; ++other)
      EXPECT_EQ(own.ranks[other].instructions,
                other == rank ? plan_.ranks[other].instructions
                              : std::vector<plan::Instruction>());
    auto prove = [&](std::vector<int> ranks) {
      return VerifiedStep::proveRanks(SwitchTable::ofOne(planner_.graph()),
                                      part->step, ranks, equalLengths,
                                      /*targets=*/100, /*regionLimits=*/{});
    };
    auto proven = prove({rank});
    ASSERT_TRUE(proven.isOk()) << proven.status().message();
    EXPECT_TRUE(proven->covers(rank));
    EXPECT_FALSE(proven->covers((rank + 1) % 4));
    EXPECT_FALSE(prove({rank, (rank + 1) % 4}).isOk());
    own.ranks[rank].instructions.pop_back();
    EXPECT_THAT(prove({rank}).status().message(),
                HasSubstr(formatText("rank %d: ", rank)));
  }
}

/// Steps of two graphs of four ranks: short samples first, then at home.
class StepEntryTest : public testing::Test {
protected:
  StepEntryTest() {
    for (int64_t sample = 0; sample < 8; ++sample)
      lengths_.push_back(sample % 2 ? 16 : 8);
    for (int g = 0; g < 2; ++g) {
      plan::Phase &phase = step_.phases.emplace_back();
      std::vector<int64_t> own;
      for (int64_t sample = g; sample < 8; sample += 2) {
        phase.samples.push_back(sample);
        own.push_back(lengths_[sample]);
      }
      PlanOptions options = tinyPlanOptions();
      options.switched = g == 0;
      phase.plan = *planners_[g].training(own, targets, options);
    }
    EXPECT_TRUE(joinPhases(table_, true, step_).isOk());
    EXPECT_TRUE(placePhases(table_, {}, step_).isOk());
  }

  StatusOr<VerifiedStep> prove(plan::StepPlan part,
                               const std::vector<int> &ranks) const {
    return VerifiedStep::proveRanks(table_, std::move(part), ranks, lengths_,
                                    targets, {});
  }

  static constexpr int64_t targets = 80;
  std::vector<int64_t> lengths_;
  Planner planners_[2] = {
      Planner(*ExecutableGraph::create(modelWithDegrees(),
                                       *parseStrategy("dp=2,tp=2"))),
      Planner(*ExecutableGraph::create(
          modelWithDegrees(), *parseStrategy("dp=2,pp=2,layers=2+3")))};
  SwitchTable table_ = *SwitchTable::create(
      {&planners_[0].graph(), &planners_[1].graph()}, 1, planNaively);
  plan::StepPlan step_;
};

TEST_F(StepEntryTest, APartHasTheRanksProgramsOfAllPhases) {
  for (int rank = 0; rank < 4; ++rank) {
    auto part = readPlanEntry(writePlanEntry(step_, 7, rank, 0.5), 7, rank);
    ASSERT_TRUE(part.isOk()) << part.status().message();
    EXPECT_EQ(part->predictedSeconds, 0.5);
    ASSERT_EQ(part->step.phaseCount(), 2);
    for (int k = 0; k < 2; ++k) {
      const plan::Phase &got = part->step.phases[k], &all = step_.phases[k];
      EXPECT_EQ(got.samples, all.samples);
      for (int other = 0; other < 4; ++other)
        EXPECT_EQ(got.plan.ranks[other].instructions,
                  other == rank ? all.plan.ranks[other].instructions
                                : std::vector<plan::Instruction>());
    }
    auto proven = prove(part->step, {rank});
    ASSERT_TRUE(proven.isOk()) << proven.status().message();
    for (int other = 0; other < 4; ++other)
      EXPECT_EQ(proven->covers(other), other == rank);
    EXPECT_FALSE(prove(part->step, {rank, (rank + 1) % 4}).isOk());
  }
}

// As in a whole step: of phases (P1 to P8), of samples (P12) and of switches
// (P13, P14).
TEST_F(StepEntryTest, APartIsHeldToTheRulesOfSteps) {
  constexpr int rank = 1;
  auto refusal = [&](auto change) {
    auto part = readPlanEntry(writePlanEntry(step_, 7, rank, 0.5), 7, rank);
    change(part->step);
    return std::string(prove(part->step, {rank}).status().message());
  };
  auto withoutFirst = [&](int k, plan::Instruction::Op op) {
    return refusal([&](plan::StepPlan &step) {
      auto &list = step.phases[k].plan.ranks[rank].instructions;
      auto found =
          std::find_if(list.begin(), list.end(),
                       [op](const plan::Instruction &i) { return i.op == op; });
      ASSERT_NE(found, list.end());
      list.erase(found);
    });
  };
  EXPECT_THAT(withoutFirst(0, plan::Instruction::FORWARD),
              HasSubstr("phase 0: plan: rank 1: "));
  EXPECT_THAT(withoutFirst(0, plan::Instruction::SWITCH_WAIT),
              HasSubstr("(P13)"));
  EXPECT_THAT(withoutFirst(1, plan::Instruction::SWITCH_GRADS_WAIT),
              HasSubstr("(P14)"));
  EXPECT_THAT(refusal([](plan::StepPlan &step) {
                step.phases[0].samples[0] = step.phases[1].samples[0];
              }),
              HasSubstr("(P12)"));
  // The limit of its own rank counts, in all phases.
  auto whole = VerifiedStep::prove(table_, step_, lengths_, targets, {});
  ASSERT_TRUE(whole.isOk()) << whole.status().message();
  const int64_t bytes = stepBytes(whole->blocks(rank));
  auto part = readPlanEntry(writePlanEntry(step_, 7, rank, 0.5), 7, rank);
  for (int64_t less : {0, 1}) {
    std::vector<int64_t> limits = {0, bytes - less, 0, 0};
    auto proven = VerifiedStep::proveRanks(table_, part->step, {rank}, lengths_,
                                           targets, limits);
    EXPECT_EQ(proven.isOk(), less == 0) << proven.status().message();
  }
}

TEST_F(StepEntryTest, EveryChangedByteIsSeen) {
  std::string good = writePlanEntry(step_, 3, 1, 1.5);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(readPlanEntry(bad, 3, 1).isOk()) << at;
  }
}

TEST_F(PlanEntryTest, EveryChangedByteIsSeen) {
  std::string good = writePlanEntry(stepOf(plan_), 3, 1, 1.5);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(readPlanEntry(bad, 3, 1).isOk()) << at;
  }
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(readPlanEntry(good.substr(0, size), 3, 1).isOk()) << size;
}

TEST_F(PlanEntryTest, RefusalsHaveNumbers) {
  std::string bytes = writePlanEntry(stepOf(plan_), 3, 1, 1.5);
  EXPECT_THAT(
      readPlanEntry(bytes, 4, 1).status().message(),
      HasSubstr("that of rank 1 in step 4, but that of rank 1 in step 5"));
  EXPECT_THAT(readPlanEntry(bytes, 3, 0).status().message(),
              HasSubstr("but that of rank 0"));
  bytes[8] = 9;
  EXPECT_THAT(
      readPlanEntry(bytes, 3, 1).status().message(),
      HasSubstr("it is of format 9, but this program's plans are of 4"));
  for (double seconds : {-1.0, std::nan("")})
    EXPECT_THAT(
        readPlanEntry(writePlanEntry(stepOf(plan_), 3, 1, seconds), 3, 1)
            .status()
            .message(),
        HasSubstr("it predicts"));
  EXPECT_EQ(readPlanEntry("", 3, 1).status().message(),
            "0 bytes without the beginning of a stored plan");
}

} // namespace
