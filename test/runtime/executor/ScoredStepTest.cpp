//===- ScoredStepTest.cpp - Steps that add to scores of weights -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/ReplacedGraphs.h"

#include <cmath>

using namespace dyna;
using namespace dyna::test;

namespace {

/// A model of which one matrix is pruned, and a step of it.
class ScoredStep {
public:
  static constexpr int matrix = 1;

  ScoredStep(const std::string &strategy, bool isPruned)
      : run_(strategy, tiny(), carriageOf(), options(isPruned)) {
    std::vector<double> masters(count());
    EXPECT_OK(
        readPart(run_.team(), matrix, ParameterPart::Master, masters.data()));
    for (size_t i = 0; i < masters.size(); i += 3)
      masters[i] = 0;
    weights = masters;
    write(ParameterPart::Master, masters.data());
    std::vector<uint8_t> mask(count(), 1);
    for (size_t i = 0; i < mask.size(); i += 3)
      mask[i] = 0;
    if (isPruned)
      write(ParameterPart::Mask, mask.data());
  }

  /// Runs a step whose first moments become the gradients.
  StepResult step(bool addsScores, bool scoresPruned) {
    const MiniBatch batch = ReplacedGraphs::batchOf(0);
    auto planned = run_.plan(batch);
    EXPECT_TRUE(planned.isOk()) << planned.status().message();
    StepScalars scalars = TinyRun::scalars(0);
    scalars.optimizer.beta1 = 0;
    scalars.optimizer.correction1 = 1;
    scalars.optimizer.learning_rate = 0;
    scalars.addsScores = addsScores;
    scalars.scoresPruned = scoresPruned;
    StepResult result;
    EXPECT_OK(run_.team().run(*planned, batch, scalars, result));
    return result;
  }

  std::vector<double> read(ParameterPart part) {
    std::vector<double> values(count());
    EXPECT_OK(readPart(run_.team(), matrix, part, values.data()));
    return values;
  }
  void spoil(int parameter) {
    std::vector<double> bad(
        static_cast<size_t>(run_.model().elements(parameter)), std::nan(""));
    EXPECT_OK(run_.team().writeRows(parameter, ParameterPart::Master,
                                    {0, run_.model().rows(parameter)},
                                    bad.data()));
  }
  RankTeam &team() { return run_.team(); }

  std::vector<double> weights;

private:
  static TinyOptions tiny() {
    TinyOptions options;
    options.degrees = {{2, false}};
    options.hidden = 6;
    return options;
  }
  static ReplacedGraphs::Options options(bool isPruned) {
    ReplacedGraphs::Options options;
    if (isPruned)
      options.masked = {matrix};
    options.isScored = isPruned;
    return options;
  }
  static Carriage carriageOf() { return {}; }
  size_t count() const {
    return static_cast<size_t>(run_.model().elements(matrix));
  }
  void write(ParameterPart part, const void *values) {
    EXPECT_OK(run_.team().writeRows(matrix, part,
                                    {0, run_.model().rows(matrix)}, values));
  }

  ReplacedGraphs run_;
};

class ScoredStepTest : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Strategies, ScoredStepTest,
                         testing::Values("dp=1", "dp=2,zero=1", "tp=2"));

/// Survivors have sums of products, and the others the gradient that they would have.
TEST_P(ScoredStepTest, ScoresFollowFromDenseGradients) {
  ScoredStep dense(GetParam(), false), pruned(GetParam(), true);
  dense.step(false, false);
  const std::vector<double> gradients = dense.read(ParameterPart::FirstMoment);
  for (int times = 1; times <= 2; ++times) {
    pruned.step(true, times == 2);
    const std::vector<double> scores = pruned.read(ParameterPart::Score);
    double other = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double expected =
          i % 3 != 0   ? times * std::abs(gradients[i] * pruned.weights[i])
          : times == 2 ? std::abs(gradients[i])
                       : 0;
      EXPECT_NEAR(scores[i], expected, 1e-12);
      other += i % 3 == 0 ? scores[i] : 0;
    }
    EXPECT_EQ(other > 0, times == 2);
    // Neither is a part of what trains.
    for (size_t i = 0; i < scores.size(); i += 3)
      EXPECT_EQ(pruned.read(ParameterPart::FirstMoment)[i], 0);
  }
}

/// A step that is not finite is skipped: it adds nothing, and nothing grows by it.
TEST_P(ScoredStepTest, SkippedStepsLeaveNoScores) {
  ScoredStep run(GetParam(), true);
  run.step(true, true);
  std::vector<double> before = run.read(ParameterPart::Score);
  run.spoil(0);
  EXPECT_TRUE(std::isnan(run.step(true, true).gradientNorm));
  EXPECT_OK(run.team().clearPrunedScores());
  for (size_t i = 0; i < before.size(); i += 3)
    before[i] = 0;
  EXPECT_EQ(run.read(ParameterPart::Score), before);
}

} // namespace
