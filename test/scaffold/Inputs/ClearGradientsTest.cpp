//===- ClearGradientsTest.cpp - The scaffolded instruction ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanFile.h"
#include "test/runtime/executor/TinyRun.h"

#include <gmock/gmock.h>

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

  /// The plan with a clearing of every layer that has parameters of its own.
  plan::Plan clearing(bool atTheEnd) const {
    plan::Plan plan = run.lastPlan;
    auto &list = plan.ranks[0].instructions;
    const RankView &view = run.graph->replicaView(0);
    for (int layer = 0; layer < view.layers(); ++layer) {
      Instruction clear;
      clear.op = Instruction::CLEAR_GRADS;
      clear.layer = layer;
      if (view.ownsParameters(layer))
        list.insert(atTheEnd ? list.end() : list.begin(), clear);
    }
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

TEST_F(ClearGradientsTest, GradientsStartFromNothing) {
  EXPECT_OK(execute(run.lastPlan));
  EXPECT_NE(gradients(), once);
  EXPECT_OK(execute(clearing(false)));
  EXPECT_EQ(gradients(), once);
}

TEST_F(ClearGradientsTest, InAWrongPlaceItIsRefused) {
  EXPECT_THAT(
      execute(clearing(true)).message(),
      HasSubstr("(CLEAR_GRADS layer 0): cleared after a micro-batch has "
                "passed forward"));
  plan::Plan twice = clearing(false);
  auto &list = twice.ranks[0].instructions;
  list.insert(list.begin(), list.front());
  EXPECT_THAT(execute(twice).message(), HasSubstr("cleared twice"));
}

TEST_F(ClearGradientsTest, StandsInFiles) {
  plan::Plan plan = clearing(false);
  auto again = readPlan(writePlan(plan));
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_TRUE(again->ranks[0].instructions == plan.ranks[0].instructions);
  EXPECT_OK(execute(*again));
  EXPECT_EQ(gradients(), once);
}

} // namespace
