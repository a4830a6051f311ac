//===- ScrambledStepsTest.cpp - What is accepted of a step, runs right ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// As ScrambledPlansTest.cpp does it with plans: switches move in the programs of
// steps, on one rank or on all, or move other pieces in other ways. What the
// verifier still accepts must run to its end where every start blocks, and compute
// what the planned step computes.
//
// DYNA_SCRAMBLES says how many steps are scrambled, DYNA_SCRAMBLE_SEED names the
// first.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/SwitchedSteps.h"
#include "test/runtime/plan/SwitchScrambler.h"

#include "runtime/plan/program/InstructionTable.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <random>

using namespace dyna;
using plan::Instruction;

namespace {

int64_t numberFrom(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::atoll(text) : otherwise;
}

class ScrambledStepsTest : public testing::Test {
protected:
  using Random = std::mt19937_64;
  static int below(Random &random, size_t count) {
    return static_cast<int>(random() % count);
  }

  static std::vector<size_t> switchesOf(const std::vector<Instruction> &all) {
    std::vector<size_t> found;
    for (size_t at = 0; at < all.size(); ++at)
      if (exchangeOf(all[at].op).isSwitch())
        found.push_back(at);
    return found;
  }

  /// One switch of one rank, or of all that have it, goes elsewhere.
  static void change(plan::StepPlan &step, Random &random) {
    const int phase = below(random, step.phases.size());
    auto &ranks = step.phases[phase].plan.ranks;
    const int chosen = below(random, ranks.size());
    const std::vector<size_t> own = switchesOf(ranks[chosen].instructions);
    if (own.empty())
      return;
    const Instruction name =
        ranks[chosen].instructions[own[below(random, own.size())]];
    const bool onAll = below(random, 3) > 0;
    // To the front, far away, or a little.
    const int way = below(random, 3);
    const double share = 1e-6 * below(random, 1000000);
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      auto &program = ranks[rank].instructions;
      auto found = std::find_if(
          program.begin(), program.end(), [&](const Instruction &i) {
            return i.op == name.op && i.phase == name.phase &&
                   i.bucket == name.bucket;
          });
      if ((!onAll && static_cast<int>(rank) != chosen) ||
          found == program.end())
        continue;
      const auto from = static_cast<double>(found - program.begin());
      program.erase(found);
      const auto count = static_cast<double>(program.size());
      const double to = way == 0   ? share * from
                        : way == 1 ? share * count
                                   : from + 6 * share - 3;
      program.insert(program.begin() +
                         static_cast<long>(std::min(std::max(to, 0.0), count)),
                     name);
    }
  }

  struct Outcome {
    StepResult result;
    std::vector<double> masters;
  };
  static Outcome outcomeOf(Steps &steps, const plan::StepPlan &step,
                           const MiniBatch &batch) {
    Outcome outcome;
    outcome.result = steps.runStep(step, batch, 0);
    outcome.masters = steps.masters();
    return outcome;
  }
};

const std::vector<std::vector<std::string>> sequences = {
    {"tp=2,sp=1", "pp=2,layers=2+3", "dp=2,zero=1"},
    {"dp=4", "dp=2,tp=2,zero=1", "pp=4,layers=1+1+2+1"},
    {"pp=4,layers=2+1+1+1", "dp=2,tp=2,order=tp+dp+pp", "dp=4,zero=1"},
    {"tp=2,pp=2,layers=3+2,order=tp+pp+dp", "tp=4", "dp=2,pp=2,layers=4+1"},
};

/// The switches themselves are changed: who sends which piece, from where, to whom,
/// and in which bucket. Steps over what `checkSwitch` accepts are planned and run.
TEST_F(ScrambledStepsTest, SwitchesThatAreAcceptedRun) {
  const int64_t first = numberFrom("DYNA_SCRAMBLE_SEED", 0);
  const int64_t count = numberFrom("DYNA_SCRAMBLES", 24);
  int64_t tried = 0, accepted = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("DYNA_SCRAMBLE_SEED=" + std::to_string(seed));
    Random random(static_cast<uint64_t>(seed) + 1000000);
    const auto &sequence = sequences[static_cast<size_t>(seed) % 4];
    const int ranks = parseStrategy(sequence[0])->ranks();
    const auto planned = onNodes(ranks, 512 << below(random, 4));
    const SwitchTable::Make scrambled =
        [&](const std::vector<SwitchTensor> &tensors) -> StatusOr<SwitchPlan> {
      DYNA_ASSIGN_OR_RETURN(SwitchPlan plan, planned(tensors));
      const int changes = 20 + below(random, 60);
      tried += changes;
      return scrambleSwitch(tensors, ranks, std::move(plan), changes, random(),
                            accepted);
    };
    const Carriage way = {scrambled, true, below(random, 2) == 1};
    const MiniBatch batch =
        tinyBatch({5, 1, 17, 9, 3, 12, 1, 8}, below(random, 100));
    std::vector<int> phaseOf;
    for (size_t s = 0; s < batch.samples.size(); ++s)
      phaseOf.push_back(below(random, sequence.size()));
    Steps steps(sequence, plan::F64, way);
    Steps again(sequence, plan::F64, {planned, true});
    auto step = steps.plan(batch, phaseOf), same = again.plan(batch, phaseOf);
    ASSERT_TRUE(step.isOk()) << step.status().message();
    ASSERT_TRUE(same.isOk()) << same.status().message();
    const Outcome got = outcomeOf(steps, *step, batch);
    const Outcome expected = outcomeOf(again, *same, batch);
    ASSERT_NEAR(got.result.lossSum, expected.result.lossSum, 1e-10);
    ASSERT_NEAR(got.result.gradientNorm, expected.result.gradientNorm, 1e-10);
    ASSERT_EQ(got.masters.size(), expected.masters.size());
    for (size_t i = 0; i < got.masters.size(); ++i)
      ASSERT_NEAR(got.masters[i], expected.masters[i], 1e-10) << i;
  }
  EXPECT_GT(accepted, tried / 20);
  EXPECT_LT(accepted, tried / 2);
  std::printf("%lld of %lld changes of switches accepted\n",
              static_cast<long long>(accepted), static_cast<long long>(tried));
}

TEST_F(ScrambledStepsTest, WhatIsAcceptedRuns) {
  const int64_t first = numberFrom("DYNA_SCRAMBLE_SEED", 0);
  const int64_t count = numberFrom("DYNA_SCRAMBLES", 24);
  int64_t tried = 0, accepted = 0, inside = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("DYNA_SCRAMBLE_SEED=" + std::to_string(seed));
    Random random(static_cast<uint64_t>(seed));
    const auto &sequence = sequences[static_cast<size_t>(seed) % 4];
    const int ranks = parseStrategy(sequence[0])->ranks();
    const Carriage carriage = {onNodes(ranks, 512 << below(random, 4)), true};
    Steps steps(sequence, plan::F64, carriage);
    const MiniBatch batch =
        tinyBatch({5, 1, 17, 9, 3, 12, 1, 8}, below(random, 100));
    std::vector<int> phaseOf;
    for (size_t s = 0; s < batch.samples.size(); ++s)
      phaseOf.push_back(below(random, sequence.size()));
    auto planned = steps.plan(batch, phaseOf);
    ASSERT_TRUE(planned.isOk()) << planned.status().message();
    plan::StepPlan step = *planned;
    for (int turn = 0; turn < 60; ++turn) {
      plan::StepPlan changed = step;
      change(changed, random);
      // What is where follows from the programs.
      EXPECT_OK(placePhases(steps.table(), {}, changed));
      ++tried;
      if (!steps.prove(changed, batch).isOk())
        continue;
      ++accepted;
      step = std::move(changed);
    }
    for (const plan::Phase &phase : step.phases)
      for (const plan::RankProgram &program : phase.plan.ranks)
        inside += static_cast<int64_t>(switchesOf(program.instructions).size());
    const Outcome got = outcomeOf(steps, step, batch);
    Steps again(sequence, plan::F64, carriage);
    const Outcome expected = outcomeOf(again, *planned, batch);
    EXPECT_NEAR(got.result.lossSum, expected.result.lossSum, 1e-10);
    EXPECT_NEAR(got.result.gradientNorm, expected.result.gradientNorm, 1e-10);
    ASSERT_EQ(got.masters.size(), expected.masters.size());
    for (size_t i = 0; i < got.masters.size(); ++i)
      ASSERT_NEAR(got.masters[i], expected.masters[i], 1e-10) << i;
  }
  // Both happen often, or nothing is shown.
  EXPECT_GT(accepted, tried / 20);
  EXPECT_LT(accepted, tried * 9 / 10);
  EXPECT_GT(inside, 100);
  std::printf("%lld of %lld changes accepted\n",
              static_cast<long long>(accepted), static_cast<long long>(tried));
}

} // namespace
