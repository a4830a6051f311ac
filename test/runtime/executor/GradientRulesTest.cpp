//===- GradientRulesTest.cpp - When gradients leave, and are back ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// P14 where it is all that refuses: of homes that reduce nothing before they
// measure, of backwards in two halves, of tables that several layers use.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/SwitchedSteps.h"
#include "test/runtime/plan/PlanEditor.h"

#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const MiniBatch &batch() {
  static const MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12}, 1);
  return batch;
}

plan::StepPlan planOf(Steps &steps) {
  auto step = steps.plan(batch(), {0, 1, 0, 1, 0, 1});
  EXPECT_TRUE(step.isOk()) << step.status().message();
  return std::move(*step);
}

std::string refusal(Steps &steps, plan::StepPlan step) {
  return steps.prove(std::move(step), batch()).status().message();
}

void move(std::vector<Instruction> &program, size_t from, size_t to) {
  const Instruction i = program[from];
  program.erase(program.begin() + static_cast<long>(from));
  program.insert(program.begin() + static_cast<long>(to), i);
}

/// Home of which each rank is the only one that has what it has.
Steps &withoutReductions() {
  static Steps steps({"dp=2", "pp=2,layers=2+3"}, plan::F64);
  return steps;
}

/// Each wait for gradients, put behind the last instruction of a kind; how often it
/// is one of that kind that is refused. A table on both stages is summed before.
int refusedAt(Steps &steps, const plan::StepPlan &good, Instruction::Op op,
              const char *name) {
  int refused = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const auto &all = good.phases[1].plan.ranks[rank].instructions;
    size_t last = all.size();
    while (all[--last].op != op)
      ;
    for (size_t wait = 0; wait < last; ++wait) {
      if (all[wait].op != Instruction::SWITCH_GRADS_WAIT)
        continue;
      plan::StepPlan step = good;
      move(step.phases[1].plan.ranks[rank].instructions, wait, last);
      const std::string why = refusal(steps, step);
      EXPECT_THAT(why, HasSubstr("which is not waited for yet (P14)"))
          << "rank " << rank << " instruction " << wait;
      refused += why.find(name) != std::string::npos;
    }
  }
  return refused;
}

TEST(GradientRules, AreBackBeforeTheyAreMeasured) {
  Steps &steps = withoutReductions();
  const plan::StepPlan good = planOf(steps);
  ASSERT_EQ(refusal(steps, good), "");
  EXPECT_GT(refusedAt(steps, good, Instruction::GRAD_NORM, "(GRAD_NORM"), 0);
}

/// Norms may be left out if the run wants none.
TEST(GradientRules, AreBackBeforeTheyAreApplied) {
  Steps steps({"dp=2", "pp=2,layers=2+3"}, plan::F64);
  steps.wantNoNorms();
  plan::StepPlan step = planOf(steps);
  for (plan::RankProgram &program : step.phases[1].plan.ranks)
    removeNorms(program);
  ASSERT_EQ(refusal(steps, step), "");
  EXPECT_GT(refusedAt(steps, step, Instruction::UPDATE, "(UPDATE"), 0);
}

/// Whichever layer is the last to add: each start, put right before that.
TEST(GradientRules, LeaveBehindAllThatAdd) {
  Steps steps({"tp=2", "pp=2,layers=2+3"}, plan::F64);
  steps.splitBackward();
  const plan::StepPlan good = planOf(steps);
  ASSERT_EQ(refusal(steps, good), "");
  int tried = 0, shared = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const RankView &view = steps.graph(0).replicaView(rank);
    const auto &all = good.phases[0].plan.ranks[rank].instructions;
    for (size_t start = 0; start < all.size(); ++start) {
      if (all[start].op != Instruction::SWITCH_GRADS_START)
        continue;
      for (int p :
           steps.table().gradients(0).sides[rank].sent[all[start].bucket]) {
        auto uses = [&](int layer) {
          const auto &list = view.layer(layer).parameters();
          return std::find(list.begin(), list.end(), p) != list.end();
        };
        int users = 0;
        for (int l = view.firstLayer(); l < view.endLayer(); ++l)
          users += uses(l);
        size_t last = start;
        while (--last > 0 && !((all[last].op == Instruction::BACKWARD ||
                                all[last].op == Instruction::BACKWARD_WEIGHT) &&
                               uses(all[last].layer)))
          ;
        ASSERT_GT(last, 0u);
        plan::StepPlan step = good;
        move(step.phases[0].plan.ranks[rank].instructions, start, last);
        EXPECT_THAT(refusal(steps, step), HasSubstr("(P14)"))
            << "rank " << rank << " " << view.parameter(p).name();
        tried += all[last].op == Instruction::BACKWARD_WEIGHT;
        shared += users > 1;
      }
    }
  }
  EXPECT_GT(tried, 10);
  EXPECT_GT(shared, 0) << "no table has two users";
}

TEST(GradientRules, SplitBackwardsRun) {
  Steps whole({"tp=2", "dp=2", "pp=2,layers=2+3"}, plan::F64),
      split({"tp=2", "dp=2", "pp=2,layers=2+3"}, plan::F64);
  split.splitBackward();
  for (int step = 0; step < 2; ++step) {
    whole.run(batch(), {0, 1, 2, 1, 0, 2}, step);
    split.run(batch(), {0, 1, 2, 1, 0, 2}, step);
  }
  const std::vector<double> expected = whole.masters(), got = split.masters();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], 1e-12) << i;
}

/// Values of the first phase start in it, of others in the one before.
TEST(GradientRules, ValuesOfTheFirstPhaseStartInIt) {
  Steps steps({"dp=2", "tp=2", "pp=2,layers=2+3"}, plan::F64);
  plan::StepPlan step = *steps.plan(batch(), {0, 1, 2, 1, 0, 2});
  const auto &first = step.phases[0].plan.ranks[0].instructions;
  ASSERT_EQ(first[0].op, Instruction::SWITCH_START);
  ASSERT_EQ(first[0].phase, 0);
  auto &second = step.phases[1].plan.ranks[0].instructions;
  second.insert(second.begin(), first[0]);
  EXPECT_THAT(refusal(steps, step),
              HasSubstr("started in another phase than its own (P13)"));
}

} // namespace
