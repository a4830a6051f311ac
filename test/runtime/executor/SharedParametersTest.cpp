//===- SharedParametersTest.cpp - Layers that share parameters ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Stages come to the parameters that they share in orders of their own. Whatever
// the pattern is, the planner's plans prove (P11), and compute what one rank
// computes.
//
// DYNA_SHARES says how many patterns are planned, DYNA_SHARES_SEED names the first.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/RandomShares.h"
#include "test/runtime/executor/StrategyRun.h"
#include "test/runtime/executor/SwitchedSteps.h"

#include <cstdlib>

using namespace dyna;
using namespace dyna::test;
using plan::Instruction;

namespace {

int numberFrom(const char *variable, int otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

bool startsSingly(const plan::Plan &plan) {
  for (const plan::RankProgram &program : plan.ranks)
    for (const Instruction &i : program.instructions)
      if (i.parameter != 0)
        return true;
  return false;
}

/// Plans training, evaluation and the update alone.
void expectProof(const ExecutableGraph &graph, const PlanOptions &options,
                 int &singly) {
  Planner planner(graph);
  const std::vector<int64_t> lengths = {5, 1, 17, 9, 3, 12, 1, 8};
  StatusOr<plan::Plan> plans[] = {planner.training(lengths, 40, options),
                                  planner.evaluation(lengths, 40, options),
                                  planner.training({7}, 5, options),
                                  planner.update()};
  const std::vector<int64_t> lengthsOf[] = {lengths, lengths, {7}, {}};
  for (int k = 0; k < 4; ++k) {
    ASSERT_TRUE(plans[k].isOk()) << plans[k].status().message();
    Status status = verifyPlan(graph, *plans[k], lengthsOf[k], {});
    ASSERT_TRUE(status.isOk()) << k << ": " << status.message();
    singly += startsSingly(*plans[k]);
  }
}

TEST(SharedParametersTest, PlansOfAnyPatternProve) {
  const int first = numberFrom("DYNA_SHARES_SEED", 0);
  const int count = numberFrom("DYNA_SHARES", 400);
  int singly = 0;
  for (int seed = first; seed < first + count && !testing::Test::HasFailure();
       ++seed) {
    RandomShares random(seed);
    StrategyCase test;
    const int blocks = 2 + random.below(5);
    test.shares = random.shares(blocks, random.below(2));
    test.strategy = random.strategy(blocks + 2);
    test.schedule =
        allSchedules()[random.below(static_cast<int>(allSchedules().size()))];
    test.splitBackward = random.below(2);
    SCOPED_TRACE(testing::PrintToString(test));
    SCOPED_TRACE("DYNA_SHARES_SEED=" + std::to_string(seed));
    Model model = *Model::create(tinyManifest(tinyOptions(test)));
    expectProof(*ExecutableGraph::create(model, *parseStrategy(test.strategy)),
                planOptions(test), singly);
  }
  // Most patterns have one order layer by layer, but not all.
  if (count >= 400)
    EXPECT_GT(singly, count / 20);
}

/// Where whole layers have no order that all ranks share.
TEST(SharedParametersTest, KnownPatternsProve) {
  const std::pair<const char *, std::vector<std::array<int, 3>>> known[] = {
      // A layer uses A, then B; one of another stage B, then A.
      {"pp=3,layers=2+1+1", {{0, 1, 2}, {2, 3, 0}}},
      // Attention shared by pairs, MLPs by parity.
      {"pp=3,layers=2+2+2", {{0, 10, 1}, {0, 11, 2}, {3, 12, 1}, {3, 13, 2}}},
      {"dp=2,pp=3,layers=2+2+2,zero=1",
       {{0, 10, 1}, {0, 11, 2}, {3, 12, 1}, {3, 13, 2}}},
      {"pp=3,layers=2+1+2", {{0, 1, 2}, {0, 3, 2}, {4, 1, 5}}},
      // {A C} {B D} on one stage, {A D} {B C} on the other: no order of layers
      // is right.
      {"pp=2,layers=3+3", {{0, 10, 2}, {1, 11, 3}, {0, 12, 3}, {1, 13, 2}}},
  };
  int singly = 0;
  for (const auto &[strategy, shares] : known) {
    StrategyCase test{strategy};
    test.shares = shares;
    SCOPED_TRACE(testing::PrintToString(test));
    Model model = *Model::create(tinyManifest(tinyOptions(test)));
    expectProof(*ExecutableGraph::create(model, *parseStrategy(strategy)),
                planOptions(test), singly);
  }
  EXPECT_GT(singly, 0);
}

/// Ranks that start one parameter after another compute what one rank computes.
TEST(SharedParametersTest, RunsEqualOneRank) {
  for (int seed = 0; seed < 12; ++seed) {
    RandomShares random(1000 + seed);
    StrategyCase test;
    const int blocks = 2 + random.below(5);
    test.shares = random.shares(blocks, seed % 2);
    do
      test.strategy = random.strategy(blocks + 2);
    while (parseStrategy(test.strategy)->pp == 1);
    test.splitBackward = seed % 3 == 0;
    test.recompute = static_cast<plan::Recompute>(seed % 3);
    SCOPED_TRACE(testing::PrintToString(test));
    Outcome expected = runOneRank(test), got = runStrategy(test);
    expectNear(expected.losses, got.losses, 1e-10);
    expectNear(expected.norms, got.norms, 1e-10);
    for (size_t p = 0; p < expected.parameters.size(); ++p)
      expectNear(expected.parameters[p], got.parameters[p], 1e-10);
  }
}

/// Steps of two graphs and home prove, run, and train as home alone does.
TEST(SharedParametersTest, SwitchedStepsEqualHomeAlone) {
  const MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12, 1, 8}, 3);
  for (int seed = 0; seed < 10; ++seed) {
    RandomShares random(2000 + seed);
    const int blocks = 2 + random.below(5), ranks = seed % 2 ? 4 : 6;
    TinyOptions tiny;
    tiny.hidden = tinyWidth;
    tiny.blocks = blocks;
    tiny.shares = random.shares(blocks, random.below(2));
    std::vector<std::string> strategies;
    std::vector<int> phaseOf;
    while (strategies.size() < 3)
      if (const std::string next = random.strategy(blocks + 2, ranks);
          std::find(strategies.begin(), strategies.end(), next) ==
          strategies.end())
        strategies.push_back(next);
    SCOPED_TRACE(testing::PrintToString(strategies));
    for (size_t s = 0; s < batch.samples.size(); ++s)
      phaseOf.push_back(random.below(3));
    Steps steps(strategies, tiny), alone({strategies.back()}, tiny);
    const StepResult got = steps.run(batch, phaseOf, 0);
    const StepResult expected =
        alone.run(batch, std::vector<int>(phaseOf.size(), 0), 0);
    EXPECT_NEAR(got.lossSum, expected.lossSum, 1e-10);
    EXPECT_NEAR(got.gradientNorm, expected.gradientNorm, 1e-10);
    const std::vector<double> a = steps.masters(), b = alone.masters();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_NEAR(a[i], b[i], 1e-10) << i;
  }
}

} // namespace
