//===- StepRulesTest.cpp - What is refused of a step (P12 to P14) ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/SwitchedSteps.h"
#include "test/runtime/plan/PlanEditor.h"

#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

class StepRulesTest : public testing::Test {
protected:
  static Steps &steps() {
    static Steps steps({"tp=2,sp=1", "pp=2,layers=2+3", "dp=2,zero=1"},
                       plan::F64);
    return steps;
  }
  static const MiniBatch &batch() {
    static const MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12}, 1);
    return batch;
  }
  static plan::StepPlan good() {
    return *steps().plan(batch(), {0, 1, 2, 1, 0, 2});
  }
  static std::string refusal(plan::StepPlan step) {
    return steps().prove(std::move(step), batch()).status().message();
  }
  static std::vector<Instruction> &program(plan::StepPlan &step, int phase,
                                           int rank) {
    return step.phases[phase].plan.ranks[rank].instructions;
  }
  /// The place of the first instruction of a kind.
  static size_t find(const std::vector<Instruction> &program,
                     Instruction::Op op) {
    size_t at = 0;
    while (at < program.size() && program[at].op != op)
      ++at;
    EXPECT_LT(at, program.size());
    return at;
  }
  static void move(std::vector<Instruction> &program, size_t from, size_t to) {
    const Instruction i = program[from];
    program.erase(program.begin() + static_cast<long>(from));
    program.insert(program.begin() + static_cast<long>(to), i);
  }
};

TEST_F(StepRulesTest, WhatIsPlannedIsRight) { EXPECT_EQ(refusal(good()), ""); }

TEST_F(StepRulesTest, PhasesAreOfGraphsOfTheRun) {
  plan::StepPlan step = good();
  std::swap(step.phases[1], step.phases[2]);
  EXPECT_THAT(refusal(step), HasSubstr("the last phase is not for 'dp=2"));
  step = good();
  step.phases.pop_back();
  EXPECT_THAT(refusal(step), HasSubstr("(P12)"));
  step = good();
  step.phases[1].plan.graph = step.phases[0].plan.graph;
  EXPECT_THAT(refusal(step), HasSubstr("phase 1 is for strategy 'dp=1,tp=2"));
  step.phases[1].plan.graph = "dp=7";
  EXPECT_THAT(refusal(step),
              HasSubstr("which is none of this run's: it has 'dp=1,tp=2"));
  EXPECT_THAT(refusal(step), HasSubstr("are made for (P12)"));
}

TEST_F(StepRulesTest, EverySampleIsInOnePhase) {
  plan::StepPlan step = good();
  step.phases[0].samples[0] = 1;
  EXPECT_THAT(refusal(step),
              HasSubstr("sample 1 is in phase 0 and in phase 1 (P12)"));
  step.phases[0].samples[0] = 6;
  EXPECT_THAT(refusal(step), HasSubstr("names sample 6 of 6 (P12)"));
  step = good();
  step.phases[2].samples.pop_back();
  EXPECT_THAT(refusal(step), HasSubstr("sample 5 is in no phase (P12)"));
}

TEST_F(StepRulesTest, AllCountTheSameTargets) {
  plan::StepPlan step = good();
  step.phases[1].plan.targetTokens -= 1;
  EXPECT_THAT(refusal(step), HasSubstr("phase 1: plan: counts"));
}

TEST_F(StepRulesTest, OnlyHomeGathersAndUpdates) {
  plan::StepPlan step = good();
  std::vector<Instruction> &first = program(step, 0, 0);
  Instruction update;
  update.op = Instruction::UPDATE;
  first.insert(first.begin() + static_cast<long>(find(
                                   first, Instruction::SWITCH_GRADS_START)),
               update);
  EXPECT_THAT(refusal(step), HasSubstr("only home updates parameters (P12)"));
}

/// Such steps are legal where who runs them looks at gradients, and nowhere else.
TEST_F(StepRulesTest, HomeUpdatesUnlessGradientsAreToStay) {
  plan::StepPlan step = good();
  EXPECT_TRUE(checkUpdated(step).isOk());
  for (plan::RankProgram &program : step.phases.back().plan.ranks)
    program.instructions.erase(
        std::remove_if(
            program.instructions.begin(), program.instructions.end(),
            [](const Instruction &i) { return i.op == Instruction::UPDATE; }),
        program.instructions.end());
  EXPECT_EQ(refusal(step), "");
  EXPECT_THAT(checkUpdated(step).message(),
              HasSubstr("phase 2, which is home's, updates nothing"));
  // Runs that apply gradients ask for it of every rank.
  UpdateRules rules;
  rules.mustUpdate = true;
  const auto refusalOf = [&](const StatusOr<VerifiedStep> &proven) {
    return proven.isOk() ? "" : proven.status().message();
  };
  for (const auto &[one, expected] :
       {std::pair(good(), ""), {step, "phase 2: plan: rank "}}) {
    EXPECT_THAT(
        refusalOf(VerifiedStep::prove(steps().table(), one, batch().lengths(),
                                      batch().targets, {}, nullptr, rules)),
        HasSubstr(expected));
    EXPECT_THAT(refusalOf(VerifiedStep::proveRanks(steps().table(), one, {1},
                                                   batch().lengths(),
                                                   batch().targets, {}, rules)),
                HasSubstr(expected));
  }
}

TEST_F(StepRulesTest, HomeMeasuresGradientsUnlessTheRunWantsNoNorms) {
  plan::StepPlan step = good();
  for (plan::RankProgram &program : step.phases.back().plan.ranks)
    removeNorms(program);
  EXPECT_THAT(refusal(step), HasSubstr("phase 2: plan: rank 0: instruction"));
  EXPECT_THAT(refusal(step),
              HasSubstr("updated without the gradient norm of layer 0"));
}

TEST_F(StepRulesTest, PlansThatAreNoPhasesHaveNoSwitches) {
  plan::StepPlan step = good();
  plan::Plan &plan = step.phases[0].plan;
  plan.targetTokens = 1;
  std::vector<int64_t> lengths;
  for (int64_t s : step.phases[0].samples)
    lengths.push_back(batch().lengths()[s]);
  EXPECT_THAT(verifyPlan(steps().graph(0), plan, lengths, {}).message(),
              HasSubstr("(P12)"));
}

/// None is there for nothing.
TEST_F(StepRulesTest, EverySwitchInstructionIsNeededOnce) {
  const plan::StepPlan right = good();
  int tried = 0;
  for (int k = 0; k < right.phaseCount(); ++k)
    for (int rank = 0; rank < 2; ++rank) {
      const auto &all = right.phases[k].plan.ranks[rank].instructions;
      for (size_t at = 0; at < all.size(); ++at) {
        if (!exchangeOf(all[at].op).isSwitch())
          continue;
        ++tried;
        plan::StepPlan step = right;
        auto &own = program(step, k, rank);
        own.erase(own.begin() + static_cast<long>(at));
        EXPECT_NE(refusal(step), "") << describeInstruction(all[at]);
        step = right;
        auto &twice = program(step, k, rank);
        twice.insert(twice.begin() + static_cast<long>(at), all[at]);
        EXPECT_THAT(refusal(step), HasSubstr("(P13)"))
            << describeInstruction(all[at]);
        step = right;
        program(step, k, rank)[at].bucket += 1000;
        EXPECT_THAT(refusal(step), HasSubstr("(P13)"));
        program(step, k, rank)[at] = all[at];
        program(step, k, rank)[at].phase += 1;
        EXPECT_THAT(refusal(step), HasSubstr("(P13)"));
      }
    }
  EXPECT_GT(tried, 100);
}

/// Or each of two ranks waits for what the other starts later.
TEST_F(StepRulesTest, RanksHaveOneOrderOfWhatTheyStartTogether) {
  plan::StepPlan step = good();
  auto &own = program(step, 0, 0);
  std::vector<size_t> together;
  for (size_t at = 0; own[at].op == Instruction::SWITCH_START; ++at)
    if (steps().table().values(-1, 0).sides[0].meets[own[at].bucket])
      together.push_back(at);
  ASSERT_GT(together.size(), 1u);
  std::swap(own[together[0]], own[together[1]]);
  EXPECT_THAT(refusal(step),
              HasSubstr("the ranks wait for each other: phase 0 rank 0 "
                        "instruction"));
  EXPECT_THAT(refusal(step), HasSubstr("(P11)"));
}

/// Values may come before gradients have left: on all ranks, or on none.
TEST_F(StepRulesTest, SwitchesPassEachOtherOnAllRanksOrOnNone) {
  plan::StepPlan step = good();
  for (int rank = 0; rank < 2; ++rank) {
    auto &own = program(step, 0, rank);
    // The first start of values for the next phase, put behind all else.
    size_t at = 0;
    while (own[at].op != Instruction::SWITCH_START || own[at].phase != 1)
      ++at;
    move(own, at, own.size() - 1);
    if (rank == 0)
      EXPECT_THAT(refusal(step), HasSubstr("(P11)"));
  }
  EXPECT_EQ(refusal(step), "");
}

TEST_F(StepRulesTest, StartsStandInTheirPhases) {
  plan::StepPlan step = good();
  auto &first = program(step, 0, 0);
  const size_t at = find(first, Instruction::SWITCH_GRADS_START);
  const Instruction gradients = first[at];
  first.erase(first.begin() + static_cast<long>(at));
  auto &second = program(step, 1, 0);
  second.insert(second.begin(), gradients);
  EXPECT_THAT(refusal(step),
              HasSubstr("started in another phase than its own (P13)"));
}

/// Starts begin in the last backward, before the last stage but one has ended.
TEST_F(StepRulesTest, StartsBeginInTheLastBackward) {
  const plan::StepPlan step = good();
  for (int k = 0; k + 1 < step.phaseCount(); ++k)
    for (const plan::RankProgram &program : step.phases[k].plan.ranks) {
      const auto &all = program.instructions;
      size_t last = all.size();
      while (all[--last].op != Instruction::BACKWARD)
        ;
      size_t starts = 0;
      for (size_t at = 0; at < last; ++at)
        if (const ExchangeOp op = exchangeOf(all[at].op);
            op.isSwitch() && op.starts)
          starts +=
              op.kind == ExchangeKind::GradientSwitch || all[at].phase > k;
      EXPECT_GT(starts, 0u) << "phase " << k;
    }
}

TEST_F(StepRulesTest, GradientsLeaveWhenAllBackwardsHaveAdded) {
  plan::StepPlan step = good();
  auto &own = program(step, 0, 1);
  const size_t start = find(own, Instruction::SWITCH_GRADS_START);
  ASSERT_FALSE(
      steps().table().gradients(0).sides[1].sent[own[start].bucket].empty());
  size_t backward = start;
  while (own[--backward].op != Instruction::BACKWARD)
    ;
  move(own, start, backward);
  EXPECT_THAT(refusal(step), HasSubstr("have not added their gradients of"));
  EXPECT_THAT(refusal(step), HasSubstr("(P14)"));
}

/// Or sums would depend on who comes first.
TEST_F(StepRulesTest, GradientsAreAddedPhaseByPhase) {
  plan::StepPlan step = good();
  auto &own = program(step, 1, 0);
  const size_t start = find(own, Instruction::SWITCH_GRADS_START);
  size_t wait = start;
  while (own[--wait].op != Instruction::SWITCH_GRADS_WAIT)
    ;
  move(own, wait, start);
  EXPECT_THAT(refusal(step), HasSubstr("is not waited for (P13)"));
}

TEST_F(StepRulesTest, ValuesGoOnOnceTheyHaveCome) {
  plan::StepPlan step = good();
  auto &own = program(step, 0, 0);
  // The last wait of this phase's own values, put behind all starts.
  size_t wait = own.size() - 1;
  while (own[wait].op != Instruction::SWITCH_WAIT)
    --wait;
  const Instruction late = own[wait];
  own.erase(own.begin() + static_cast<long>(wait));
  own.push_back(late);
  EXPECT_THAT(refusal(step), HasSubstr("not waited for"));
}

TEST_F(StepRulesTest, AllPhasesTrainOrAllEvaluate) {
  plan::StepPlan step = good();
  PlanOptions options;
  options.maxTokensPerMicroBatch = 24;
  std::vector<int64_t> lengths;
  for (int64_t s : step.phases[1].samples)
    lengths.push_back(batch().lengths()[s]);
  step.phases[1].plan =
      *Planner(steps().graph(1)).evaluation(lengths, batch().targets, options);
  EXPECT_THAT(refusal(step), HasSubstr("trains, but phase 1 evaluates (P12)"));
}

TEST_F(StepRulesTest, EveryPhaseFitsTheRegion) {
  auto proven = VerifiedStep::prove(steps().table(), good(), batch().lengths(),
                                    batch().targets, {64, 64});
  EXPECT_THAT(proven.status().message(), HasSubstr("but the limit is 64 (P8)"));
}

TEST_F(StepRulesTest, LayersRunWhenTheirParametersHaveCome) {
  plan::StepPlan step = good();
  auto &own = program(step, 0, 0);
  size_t last = own.size() - 1;
  while (own[last].op != Instruction::FORWARD)
    --last;
  move(own, find(own, Instruction::SWITCH_WAIT), last);
  EXPECT_THAT(refusal(step), HasSubstr("which is not waited for yet (P13)"));
}

TEST_F(StepRulesTest, GradientsLeaveReduced) {
  plan::StepPlan step = good();
  // Those of two tensor-parallel ranks with sp: parts of a sum. They are the
  // last to leave.
  auto &own = program(step, 0, 0);
  const size_t wait = find(own, Instruction::REDUCE_GRADS_WAIT);
  size_t start = own.size();
  while (own[--start].op != Instruction::SWITCH_GRADS_START)
    ;
  ASSERT_LT(wait, start);
  move(own, wait, start);
  EXPECT_THAT(refusal(step), HasSubstr("are not reduced yet (P14)"));
}

TEST_F(StepRulesTest, GradientsAreBackBeforeHomeReadsThem) {
  plan::StepPlan step = good();
  auto &own = program(step, 2, 0);
  size_t wait = find(own, Instruction::SWITCH_GRADS_WAIT);
  size_t reduce = find(own, Instruction::REDUCE_GRADS_START);
  ASSERT_LT(wait, reduce);
  for (; wait < reduce && own[wait].op == Instruction::SWITCH_GRADS_WAIT;
       --reduce)
    move(own, wait, reduce);
  EXPECT_THAT(refusal(step), HasSubstr("which is not waited for yet (P14)"));
}

} // namespace
