//===- ClearGradientsTest.cpp - The scaffolded instruction ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/PlanFile.h"
#include "test/runtime/executor/TinyRun.h"

#include <gmock/gmock.h>

#include <algorithm>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

PlanOptions withoutUpdate() {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 32;
  options.update = false;
  return options;
}

/// A step under the memory check, which refuses what the row does not say.
struct ClearGradientsTest : testing::Test {
  ClearGradientsTest() {
    EXPECT_OK(run.step(0, batch, result));
    once = run.readAll(ParameterPart::Gradient);
  }

  static bool clears(const Instruction &i) {
    return i.op == Instruction::CLEAR_GRADS;
  }
  /// The plan as the planner wrote it, and what it is without clearing.
  plan::Plan clearing() const { return run.lastPlan; }
  plan::Plan without() const {
    plan::Plan plan = run.lastPlan;
    auto &list = plan.ranks[0].instructions;
    list.erase(std::remove_if(list.begin(), list.end(), clears), list.end());
    return plan;
  }
  Status execute(const plan::Plan &plan) {
    return run.run(plan, batch, TinyRun::scalars(0), result);
  }
  std::vector<double> gradients() {
    return run.readAll(ParameterPart::Gradient);
  }

  TinyRun run{withoutUpdate(), {}, true};
  MiniBatch batch = tinyBatch({32, 9, 17, 20, 5});
  StepResult result;
  std::vector<double> once;
};

TEST_F(ClearGradientsTest, ThePlannerWritesItForEachLayerWithParameters) {
  const RankView &view = run.graph->replicaView(0);
  int owners = 0;
  for (int layer = 0; layer < view.layers(); ++layer)
    owners += view.ownsParameters(layer);
  const auto &list = run.lastPlan.ranks[0].instructions;
  EXPECT_GT(owners, 0);
  EXPECT_EQ(std::count_if(list.begin(), list.end(), clears), owners);
}

TEST_F(ClearGradientsTest, GradientsStartFromNothing) {
  EXPECT_OK(execute(without()));
  EXPECT_NE(gradients(), once);
  EXPECT_OK(execute(clearing()));
  EXPECT_EQ(gradients(), once);
}

TEST_F(ClearGradientsTest, InAWrongPlaceItIsRefused) {
  plan::Plan late = without();
  Instruction clear;
  clear.op = Instruction::CLEAR_GRADS;
  late.ranks[0].instructions.push_back(clear);
  EXPECT_THAT(
      execute(late).message(),
      HasSubstr("(CLEAR_GRADS layer 0): cleared after a micro-batch has "
                "passed forward"));
  plan::Plan twice = clearing();
  auto &list = twice.ranks[0].instructions;
  list.insert(list.begin(), *std::find_if(list.begin(), list.end(), clears));
  EXPECT_THAT(execute(twice).message(), HasSubstr("cleared twice"));
}

TEST_F(ClearGradientsTest, StandsInFiles) {
  auto again = readPlan(writePlan(clearing()));
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_TRUE(again->ranks[0].instructions ==
              run.lastPlan.ranks[0].instructions);
  EXPECT_OK(execute(*again));
  EXPECT_EQ(gradients(), once);
}

} // namespace
