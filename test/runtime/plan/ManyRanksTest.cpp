//===- ManyRanksTest.cpp - Graphs and plans of thousands of ranks ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a rank is asked about its groups is answered without a list of their
// ranks. Where it is not, planning takes the square of the ranks and
// the plan of 20,000 does not end.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/PlanVerifier.h"
#include "test/runtime/plan/TinyPlans.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

ExecutableGraph graphOf(const std::string &strategy) {
  return *ExecutableGraph::create(modelWithDegrees(), *parseStrategy(strategy));
}

TEST(ManyRanksTest, PlacesAmongHoldersAreThoseOfTheirList) {
  int held = 0, notHeld = 0;
  for (const char *strategy :
       {"dp=1", "dp=3", "pp=2,layers=3+2", "dp=2,tp=2", "tp=2,sp=1",
        "dp=2,tp=2,pp=2,layers=3+2,zero=1", "dp=3,tp=4,pp=2,layers=2+3",
        "dp=2,pp=5,layers=1+1+1+1+1,zero=1"}) {
    ExecutableGraph graph = graphOf(strategy);
    for (int p = 0; p < modelWithDegrees().parameters(); ++p)
      for (int rank = 0; rank < graph.ranks(); ++rank) {
        SCOPED_TRACE(strategy + (" parameter " + std::to_string(p)) + " rank " +
                     std::to_string(rank));
        std::vector<int> list = graph.holders(p, rank);
        auto place = std::find(list.begin(), list.end(), rank);
        ExecutableGraph::HolderIndex index = graph.holderIndex(p, rank);
        EXPECT_EQ(index.count, static_cast<int64_t>(list.size()));
        EXPECT_EQ(index.index, place == list.end() ? -1 : place - list.begin());
        int group = graph.holderGroup(p, rank);
        ++(group < 0 ? notHeld : held);
        ASSERT_EQ(group < 0, place == list.end());
        if (group >= 0)
          EXPECT_EQ(graph.holderGroups()[group].ranks, list);
      }
  }
  EXPECT_GT(held, 100);
  EXPECT_GT(notHeld, 100);
}

class PlansOfManyRanks : public testing::TestWithParam<const char *> {};

TEST_P(PlansOfManyRanks, AreMadeAndVerified) {
  ExecutableGraph graph = graphOf(GetParam());
  PlanOptions options;
  options.maxTokensPerMicroBatch = 16;
  // A micro-batch for every replica but the last.
  std::vector<int64_t> lengths(graph.strategy().dp - 1, 16);
  Planner planner(graph);
  auto limits = planner.largestDynamicBytes(options, true);
  ASSERT_TRUE(limits.isOk()) << limits.status().message();
  EXPECT_EQ(limits->size(), static_cast<size_t>(graph.ranks()));
  options.dynamicLimits = *limits;
  auto plan = planner.training(lengths, 100, options);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ(plan->rankCount(), graph.ranks());
  VerifyOptions verify;
  verify.limits = *limits;
  Status status = verifyPlan(graph, *plan, lengths, verify);
  EXPECT_TRUE(status.isOk()) << status.message();
  // The last rank does not take part in the norm.
  auto &program = plan->ranks[graph.ranks() - 1];
  for (int i = 0; i < program.count(); ++i)
    if (program.instructions[i].op == Instruction::COMBINE_NORM)
      program.instructions.erase(program.instructions.begin() + i);
  EXPECT_THAT(verifyPlan(graph, *plan, lengths, verify).message(),
              HasSubstr("before the gradient norms of the ranks are combined"));
}

INSTANTIATE_TEST_SUITE_P(Strategies, PlansOfManyRanks,
                         testing::Values("dp=20000", "dp=20000,zero=1",
                                         "dp=2000,tp=2,pp=2,layers=3+2"));

} // namespace
