//===- ExecutorTest.cpp - The interpreter of plans ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/TinyRun.h"

#include "runtime/base/text/JsonReader.h"
#include "test/runtime/base/TraceNesting.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

PlanOptions tokens(int64_t limit) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = limit;
  return options;
}

/// Cut without a look at costs, so alike in all modes of recomputation.
PlanOptions cutAlike(int64_t limit) {
  PlanOptions options = tokens(limit);
  options.batching = Batching::Tokens;
  return options;
}

double largestDifference(const std::vector<double> &a,
                         const std::vector<double> &b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class ExecutorTest : public testing::Test {
protected:
  void TearDown() override {
    tinyFault = TinyFault();
    tinyDropout = 0.25;
  }
};

// The tiny model's gradients are right, dropout, ties and segments included, so
// that what follows compares something meaningful.
TEST_F(ExecutorTest, GradientsAgreeWithFiniteDifferences) {
  TinyRun run(tokens(20));
  run.options.update = false;
  MiniBatch batch = tinyBatch({5, 1, 7, 9});
  StepResult result;
  ASSERT_TRUE(run.step(0, batch, result).isOk());
  std::vector<std::vector<double>> gradients;
  for (int p = 0; p < run.model->parameters(); ++p)
    gradients.push_back(run.read(p, ParameterPart::Gradient));
  for (int p : {0, 1, 5, 9, 10}) {
    const std::vector<double> &gradient = gradients[p];
    std::vector<double> values = run.read(p);
    for (size_t i = 0; i < values.size(); i += 3) {
      double losses[2];
      for (int side = 0; side < 2; ++side) {
        std::vector<double> moved = values;
        moved[i] += side ? 1e-6 : -1e-6;
        run.write(p, moved);
        ASSERT_TRUE(run.step(0, batch, result).isOk());
        losses[side] = result.lossSum / batch.targets;
      }
      run.write(p, values);
      EXPECT_NEAR(gradient[i], (losses[1] - losses[0]) / 2e-6, 1e-8);
    }
  }
}

TEST_F(ExecutorTest, CutsIntoMicroBatchesChangeNothing) {
  TinyRun whole(tokens(64));
  std::vector<double> losses = whole.train(4);
  std::vector<double> parameters = whole.readAll();
  EXPECT_EQ(whole.lastPlan.microBatchCount(), 1);
  EXPECT_GT(losses[0], 0);
  for (int64_t limit : {17, 20, 31}) {
    TinyRun cut(tokens(limit));
    EXPECT_LT(largestDifference(cut.train(4), losses), 1e-12);
    EXPECT_LT(largestDifference(cut.readAll(), parameters), 1e-12);
    EXPECT_GT(cut.lastPlan.microBatchCount(), 1);
  }
}

// Recomputed values are the same bits, and so is everything after them.
TEST_F(ExecutorTest, RecomputationAndSplitBackwardAreBitwiseEqual) {
  TinyRun reference(cutAlike(20));
  std::vector<double> losses = reference.train(3);
  for (auto mode :
       {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL})
    for (bool split : {false, true}) {
      PlanOptions options = cutAlike(20);
      options.recompute = {mode};
      options.splitBackward = split;
      TinyRun run(options);
      EXPECT_EQ(run.train(3), losses) << mode << split;
      EXPECT_EQ(run.readAll(), reference.readAll()) << mode << split;
    }
}

TEST_F(ExecutorTest, ModesMayDifferByLayer) {
  TinyRun reference(cutAlike(20));
  std::vector<double> losses = reference.train(2);
  PlanOptions options = cutAlike(20);
  options.recompute = {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL,
                       plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
                       plan::RECOMPUTE_NONE};
  TinyRun run(options);
  EXPECT_EQ(run.train(2), losses);
}

TEST_F(ExecutorTest, KindsWithOnlySplitBackwardRun) {
  TinyRun reference(tokens(20));
  TinyOptions tiny;
  tiny.wholeBackward = false;
  TinyRun run(tokens(20), tiny);
  EXPECT_EQ(run.train(2), reference.train(2));
}

TEST_F(ExecutorTest, MicroBatchesInFlightChangeNothing) {
  TinyRun reference(tokens(17));
  std::vector<double> losses = reference.train(3);
  int64_t kept = 0;
  for (int inFlight : {2, 3, 7}) {
    PlanOptions options = tokens(17);
    options.inFlight = inFlight;
    TinyRun run(options);
    EXPECT_LT(largestDifference(run.train(3), losses), 1e-12);
    EXPECT_LT(largestDifference(run.readAll(), reference.readAll()), 1e-12);
    MiniBatch batch = tinyBatch({17, 17, 17, 17, 17, 17, 17});
    StepResult result;
    EXPECT_OK(run.step(3, batch, result));
    EXPECT_GT(result.keptBytes, kept);
    kept = result.keptBytes;
  }
}

TEST_F(ExecutorTest, TwoRunsAreBitwiseEqual) {
  TinyRun one(tokens(20)), two(tokens(20));
  EXPECT_EQ(one.train(4), two.train(4));
  EXPECT_EQ(one.readAll(), two.readAll());
}

TEST_F(ExecutorTest, TrainingLowersTheLoss) {
  TinyRun run(tokens(64));
  MiniBatch batch = tinyBatch({9, 8, 7});
  StepResult result;
  ASSERT_TRUE(run.step(0, batch, result).isOk());
  double first = result.lossSum;
  for (int s = 1; s < 60; ++s)
    ASSERT_TRUE(run.step(s, batch, result).isOk());
  EXPECT_LT(result.lossSum, 0.75 * first);
}

TEST_F(ExecutorTest, EvaluationIsTrainingsLossWithoutDropout) {
  tinyDropout = 0;
  TinyRun run(tokens(20));
  MiniBatch batch = tinyBatch({5, 1, 17, 9});
  StepResult trained, evaluated;
  auto plan = Planner(*run.graph)
                  .evaluation(batch.lengths(), batch.targets, run.options);
  ASSERT_TRUE(plan.isOk());
  EXPECT_OK(run.run(*plan, batch, {}, evaluated));
  EXPECT_OK(run.step(0, batch, trained));
  EXPECT_EQ(evaluated.lossSum, trained.lossSum);
}

TEST_F(ExecutorTest, GradientNormAndClipping) {
  TinyRun run(tokens(20));
  MiniBatch batch = tinyBatch({5, 1, 17, 9});
  StepResult result;
  run.options.update = false;
  ASSERT_TRUE(run.step(0, batch, result).isOk());
  double squares = 0;
  for (double g : run.readAll(ParameterPart::Gradient))
    squares += g * g;
  EXPECT_OK(run.executor->seat().clearGradients());
  run.options.update = true;
  TinyRun clipped(tokens(20));
  EXPECT_OK(clipped.step(0, batch, result, 1e-3 * std::sqrt(squares)));
  EXPECT_NEAR(result.gradientNorm, std::sqrt(squares), 1e-12);
  // m after one step is (1 - beta1) * scaled gradient.
  double moments = 0;
  for (double m : clipped.readAll(ParameterPart::FirstMoment))
    moments += m * m;
  EXPECT_NEAR(std::sqrt(moments), 0.1 * 1e-3 * std::sqrt(squares), 1e-12);
  for (double g : clipped.readAll(ParameterPart::Gradient))
    ASSERT_EQ(g, 0);
}

// The host learns of the norm wherever there is one, as on ranks that have no
// parameters.
TEST_F(ExecutorTest, NormsAreKnownWithoutUpdates) {
  MiniBatch batch = tinyBatch({5, 1, 17, 9});
  StepResult updated, measured;
  TinyRun run(tokens(20)), looks(tokens(20));
  EXPECT_OK(run.step(0, batch, updated));
  plan::Plan plan = run.lastPlan;
  auto &list = plan.ranks[0].instructions;
  list.erase(std::remove_if(list.begin(), list.end(),
                            [](const plan::Instruction &i) {
                              return i.op == plan::Instruction::UPDATE;
                            }),
             list.end());
  const std::vector<double> before = looks.readAll();
  EXPECT_OK(looks.run(plan, batch, TinyRun::scalars(0), measured));
  EXPECT_GT(measured.gradientNorm, 0);
  EXPECT_EQ(measured.gradientNorm, updated.gradientNorm);
  EXPECT_EQ(looks.readAll(), before);
}

TEST_F(ExecutorTest, ANormBelowTheLimitChangesNothing) {
  MiniBatch batch = tinyBatch({5, 1, 17, 9});
  StepResult result;
  TinyRun free(tokens(20)), limited(tokens(20));
  EXPECT_OK(free.step(0, batch, result));
  ASSERT_GT(result.gradientNorm, 0);
  EXPECT_OK(limited.step(0, batch, result, 3 * result.gradientNorm));
  for (ParameterPart part : {ParameterPart::Master, ParameterPart::FirstMoment,
                             ParameterPart::SecondMoment})
    EXPECT_EQ(limited.readAll(part), free.readAll(part));
}

// Tied parameters included: the embedding matrix is used by two layers and must
// take one step of the optimizer, not two.
TEST_F(ExecutorTest, EveryParameterTakesOneStepOfAdamW) {
  TinyRun run(tokens(20));
  auto plan = Planner(*run.graph).update();
  ASSERT_TRUE(plan.isOk());
  std::vector<std::vector<double>> before, gradients;
  for (int p = 0; p < run.model->parameters(); ++p) {
    before.push_back(run.read(p));
    gradients.emplace_back(before[p].size());
    for (size_t i = 0; i < gradients[p].size(); ++i)
      gradients[p][i] = 0.25 * (p + 1) - 0.125 * static_cast<double>(i);
    EXPECT_OK(writePart(run.executor->seat(), p, ParameterPart::Gradient,
                        gradients[p].data()));
  }
  MiniBatch none;
  StepResult result;
  StepScalars scalars = TinyRun::scalars(0);
  EXPECT_OK(run.run(*plan, none, scalars, result));
  for (int p = 0; p < run.model->parameters(); ++p) {
    std::vector<double> after = run.read(p);
    double decay = run.model->parameter(p).decay() ? 0.1 * 0.01 : 0;
    for (size_t i = 0; i < after.size(); ++i) {
      double g = gradients[p][i];
      // The first step of Adam: both moments are the gradient's own.
      double expected =
          before[p][i] * (1 - decay) - 0.01 * g / (std::abs(g) + 1e-8);
      ASSERT_NEAR(after[i], expected, 1e-14)
          << run.model->parameter(p).name() << " " << i;
    }
    EXPECT_THAT(run.read(p, ParameterPart::Gradient), testing::Each(0.0));
    EXPECT_NEAR(run.read(p, ParameterPart::FirstMoment)[1],
                0.1 * gradients[p][1], 1e-16);
  }
}

TEST_F(ExecutorTest, CopiesInBf16FollowTheMasters) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  TinyRun run(tokens(20), tiny);
  auto copiesAreCast = [&] {
    for (int p = 0; p < run.model->parameters(); ++p) {
      std::vector<uint16_t> copy(run.model->elements(p));
      EXPECT_OK(
          readPart(run.executor->seat(), p, ParameterPart::Copy, copy.data()));
      std::vector<double> master = run.read(p);
      for (size_t i = 0; i < copy.size(); ++i) {
        uint32_t wide = static_cast<uint32_t>(copy[i]) << 16;
        float value;
        std::memcpy(&value, &wide, sizeof(value));
        ASSERT_NEAR(value, master[i], std::abs(master[i]) / 256);
      }
    }
  };
  copiesAreCast();
  std::vector<double> before = run.readAll();
  run.train(2);
  EXPECT_NE(run.readAll(), before);
  copiesAreCast();
}

TEST_F(ExecutorTest, FailuresNameInstructionLayerAndMicroBatch) {
  TinyRun run(tokens(20));
  tinyFault = {TinyFault::Kind::Fail, DYNA_ROLE_BACKWARD, 2};
  StepResult result;
  Status status = run.step(4, tinyBatch({5, 17, 9}), result);
  EXPECT_EQ(status.code(), StatusCode::DeviceError);
  EXPECT_THAT(status.message(), HasSubstr("step 5, instruction "));
  EXPECT_THAT(status.message(),
              HasSubstr("BACKWARD layer 2 micro-batch 0 of 'block'"));
  EXPECT_THAT(status.message(), HasSubstr("asked to fail"));
}

// A proof is one for certain lengths, and knows neither targets nor arenas of
// others.
TEST_F(ExecutorTest, ProofsAreForOneMiniBatchAndItsMemory) {
  TinyRun run(tokens(20));
  MiniBatch batch = tinyBatch({5, 17, 9});
  auto plan =
      Planner(*run.graph).training(batch.lengths(), batch.targets, run.options);
  ASSERT_TRUE(plan.isOk());
  auto proven = proveAlone(*run.graph, *plan, batch);
  ASSERT_TRUE(proven.isOk());
  std::vector<double> before = run.readAll();
  StepResult result;
  auto refusal = [&](const VerifiedStep &plan, const MiniBatch &other) {
    Status status = run.executor->run(plan, other, TinyRun::scalars(0), result);
    EXPECT_EQ(run.readAll(), before);
    return status.message();
  };
  EXPECT_THAT(refusal(*proven, tinyBatch({17, 5, 9})),
              HasSubstr("proven for 3 samples, of 31 tokens, but not for the 3 "
                        "samples, of 31 tokens"));
  EXPECT_THAT(refusal(*proven, tinyBatch({5, 17})),
              HasSubstr("not for the 2 samples, of 22 tokens"));
  MiniBatch other = batch;
  other.samples[1].targets[3] =
      other.samples[1].targets[3] == ignoreTarget ? 1 : ignoreTarget;
  EXPECT_THAT(refusal(*proven, other),
              HasSubstr("targets, but the mini-batch"));
  plan::Plan large = *plan;
  large.ranks[0].dynamicBytes = INT64_C(1) << 40;
  auto tooLarge = proveAlone(*run.graph, large, batch);
  ASSERT_TRUE(tooLarge.isOk()) << tooLarge.status().message();
  EXPECT_THAT(refusal(*tooLarge, batch), HasSubstr("but this rank took"));
  EXPECT_OK(run.executor->run(*proven, batch, TinyRun::scalars(0), result));
  EXPECT_NE(run.readAll(), before);
}

TEST_F(ExecutorTest, PlansAreVerifiedBeforeTheyRun) {
  TinyRun run(tokens(20));
  MiniBatch batch = tinyBatch({5, 17, 9});
  auto plan =
      Planner(*run.graph).training(batch.lengths(), batch.targets, run.options);
  ASSERT_TRUE(plan.isOk());
  std::swap(plan->ranks[0].instructions[1], plan->ranks[0].instructions[2]);
  std::vector<double> before = run.readAll();
  StepResult result;
  Status status = run.run(*plan, batch, TinyRun::scalars(0), result);
  EXPECT_THAT(status.message(), HasSubstr("instruction 1 (FORWARD layer 1"));
  EXPECT_EQ(run.readAll(), before);
}

TEST_F(ExecutorTest, IdsOutsideTheVocabularyAreRefused) {
  TinyRun run(tokens(20));
  StepResult result;
  MiniBatch batch = tinyBatch({5});
  batch.samples[0].tokens[3] = tinyVocabulary;
  EXPECT_THAT(run.step(0, batch, result).message(),
              HasSubstr("token id 11, the vocabulary ends at 10"));
  batch = tinyBatch({5});
  batch.samples[0].targets[0] = -2;
  EXPECT_THAT(run.step(0, batch, result).message(), HasSubstr("target id -2"));
}

// What is not finite is not added to the parameters.
TEST_F(ExecutorTest, DivergenceIsReportedAndUpdatesNothing) {
  TinyRun run(tokens(20));
  StepResult result;
  EXPECT_OK(run.step(0, tinyBatch({5, 11}), result));
  std::vector<double> good = run.read(0), bad = good;
  bad[0] = std::nan("");
  run.write(0, bad);
  ParameterPart parts[] = {ParameterPart::Master, ParameterPart::FirstMoment,
                           ParameterPart::SecondMoment};
  std::vector<std::vector<double>> before;
  run.write(0, good);
  for (ParameterPart part : parts)
    before.push_back(run.readAll(part));
  run.write(0, bad);
  EXPECT_OK(run.step(1, tinyBatch({9, 17}), result));
  EXPECT_FALSE(std::isfinite(result.gradientNorm));
  run.write(0, good);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(run.readAll(parts[i]), before[i]) << i;
  for (double gradient : run.readAll(ParameterPart::Gradient))
    EXPECT_EQ(gradient, 0);
  // And the run goes on.
  EXPECT_OK(run.step(2, tinyBatch({9, 17}), result));
  EXPECT_TRUE(std::isfinite(result.gradientNorm));
  EXPECT_NE(run.readAll(), before[0]);
}

TEST_F(ExecutorTest, CountsFlops) {
  MiniBatch batch = tinyBatch({5, 17, 9, 20});
  double body = 3 * 4.0 * tinyWidth * tinyHidden * batch.tokens;
  double head = 2.0 * tinyVocabulary * tinyWidth * batch.targets;
  for (auto mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
                    plan::RECOMPUTE_FULL}) {
    PlanOptions options = tokens(20);
    options.recompute = {mode};
    TinyRun run(options);
    StepResult result;
    EXPECT_OK(run.step(0, batch, result));
    // The second product of a block is not needed again.
    double recomputed = mode == plan::RECOMPUTE_FULL ? body / 2 : 0;
    EXPECT_EQ(result.flops, 3 * body + 3 * head + recomputed);
    EXPECT_EQ(result.formulaFlops, result.flops);
  }
}

TEST_F(ExecutorTest, TraceIsJsonWithOneSlicePerInstruction) {
  TinyRun run(tokens(20));
  size_t before = run.trace.size();
  StepResult result;
  EXPECT_OK(run.step(0, tinyBatch({5, 17, 9, 20}), result));
  int instructions = run.lastPlan.ranks[0].count();
  EXPECT_EQ(run.trace.size() - before, static_cast<size_t>(instructions));
  auto json = parseJson(run.trace.toJson());
  ASSERT_TRUE(json.isOk()) << json.status().message();
  const JsonValue *events = json->find("traceEvents");
  ASSERT_NE(events, nullptr);
  EXPECT_EQ(events->items.size(), 1 + 2 * run.trace.size());
  EXPECT_EQ(droppedSlices(run.trace.toJson()), "");
}

} // namespace
