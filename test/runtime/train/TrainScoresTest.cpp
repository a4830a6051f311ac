//===- TrainScoresTest.cpp - Runs that prune by gradients and regrow ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs with criterion=gradient and regrow=. Scores and survivors are compared with those
// that follow from weights and gradients of shorter runs, and every strategy with one rank.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/train/PrunedRuns.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainScoresTest : public PrunedRuns {
protected:
  static constexpr const char *byGradient =
      "--prune=initial=0.3,final=0.8,from=4,until=8,every=2,criterion=gradient";
  static constexpr const char *regrow =
      "--prune=final=0.6,from=3,until=9,every=2,regrow=0.3";
  static constexpr const char *both =
      "--prune=final=0.6,from=3,until=9,every=2,regrow=0.3,criterion=gradient";

  /// Numbers of the weights that can be pruned, in the order of the model.
  static Numbers listOf(const std::vector<Numbers> &parameters,
                        const Left &masked) {
    Numbers list;
    for (size_t p = 0; p < parameters.size(); ++p)
      if (!masked.masks[p].empty())
        list.insert(list.end(), parameters[p].begin(), parameters[p].end());
    return list;
  }
  static Numbers joined(const std::vector<Numbers> &lists) {
    Numbers all;
    for (const Numbers &list : lists)
      all.insert(all.end(), list.begin(), list.end());
    return all;
  }
  static std::vector<uint8_t> marksOf(const Left &left) {
    std::vector<uint8_t> list;
    for (const std::vector<uint8_t> &mask : left.masks)
      list.insert(list.end(), mask.begin(), mask.end());
    return list;
  }
  /// Marks the `kept` largest numbers; of equal ones, the first. Only numbers with this
  /// mark are candidates.
  static std::vector<uint8_t> largest(const Numbers &numbers, size_t kept,
                                      const std::vector<uint8_t> &marks,
                                      uint8_t among) {
    std::vector<size_t> order;
    for (size_t i = 0; i < numbers.size(); ++i)
      if (marks[i] == among)
        order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::abs(numbers[a]) > std::abs(numbers[b]);
    });
    std::vector<uint8_t> marked(numbers.size(), 0);
    for (size_t i = 0; i < kept; ++i)
      marked[order[i]] = 1;
    return marked;
  }
  /// Returns how many weights have the first mark in `a` and the second one in `b`.
  static int64_t changed(const std::vector<uint8_t> &a,
                         const std::vector<uint8_t> &b, int from, int to) {
    int64_t count = 0;
    for (size_t i = 0; i < a.size(); ++i)
      count += a[i] == from && b[i] == to;
    return count;
  }
};

TEST_F(TrainScoresTest, EveryStrategyAgreesWithOneRank) {
  for (const char *prune : {byGradient, regrow, both}) {
    SCOPED_TRACE(prune);
    const Left one = train(tiny(), {"--steps=10", prune});
    EXPECT_EQ(expectZeros(one), prune == byGradient ? weightsOfBlocks / 5
                                                    : 2 * weightsOfBlocks / 5);
    for (const char *strategy :
         {"dp=2,zero=1", "pp=3,layers=1+2+2", "tp=2,sp=1", "dp=2,tp=2,zero=1",
          "dp=2,pp=2,layers=2+3,zero=1", "tp=2,pp=2,layers=3+2"}) {
      SCOPED_TRACE(strategy);
      const Left left = train(
          tiny(), {"--steps=10", prune, "--strategy=" + std::string(strategy)});
      expectNear(left, one);
      expectZeros(left);
    }
    expectNear(
        train(tiny(),
              {"--steps=10", prune, "--merge-ranges=never", "--check-memory",
               "--strategies=short: dp=2,zero=1; long: pp=2,layers=2+3",
               "--ranges=short: 0-40; long: 41-"}),
        one);
    // Ranks change before, behind and in the same place as events.
    expectNear(train(tiny(), {"--steps=10", prune, "--strategy=dp=2,zero=1",
                              "--repack=2@3; tp=2,pp=2,layers=3+2@4; dp=1@6; "
                              "dp=2,zero=1@7; pp=2,layers=2+3@8"}),
               one);
  }
}

/// Without a memory of gradients the first moment is the last gradient.
TEST_F(TrainScoresTest, SurvivorsHaveTheLargestSumsOfProducts) {
  const std::string prune = "--prune=initial=0.3,final=0.8,from=4,until=6,"
                            "every=2,criterion=gradient";
  auto after = [&](int steps, bool isPruned, const char *lr = "--lr=0.01") {
    std::vector<std::string> more = {formatText("--steps=%d", steps),
                                     "--schedule-steps=9",
                                     "--warmup=1",
                                     "--beta1=0",
                                     "--clip=0",
                                     lr};
    if (isPruned)
      more.push_back(prune);
    return train(tiny(), more);
  };
  std::vector<Left> lefts = {after(1, true, "--lr=0")};
  for (int steps = 1; steps <= 6; ++steps)
    lefts.push_back(after(steps, true));
  Numbers scores;
  std::vector<uint8_t> masks = marksOf(lefts[0]);
  for (int step = 1; step <= 6; ++step) {
    SCOPED_TRACE(step);
    const Left &before = lefts[step - 1], &now = lefts[step];
    const std::vector<uint8_t> all(masks.size(), 1);
    if (step == 4 || step == 6) {
      const size_t kept =
          static_cast<size_t>(weightsOfBlocks) * (step == 4 ? 7 : 2) / 10;
      masks = largest(scores, kept, all, 1);
      std::fill(scores.begin(), scores.end(), 0.0);
    }
    EXPECT_EQ(marksOf(now) == masks, true);
    const Numbers weights = listOf(before.masters, now),
                  gradients = listOf(now.moments, now);
    scores.resize(weights.size());
    for (size_t i = 0; i < weights.size(); ++i)
      scores[i] += std::abs(weights[i] * gradients[i] * masks[i]);
    if (step < 6) // no event is ahead any more
      expectNear(joined(now.scores), scores);
  }
  for (double score : joined(lefts[6].scores))
    EXPECT_EQ(score, 0);
}

/// With a learning rate of 0, a dense run from the pruned weights has the gradients of
/// all weights.
TEST_F(TrainScoresTest, TheLargestGradientsGrowAgain) {
  const std::string prune = "--prune=final=0.6,from=1,until=5,every=2,regrow=";
  const std::vector<std::string> still = {"--lr=0", "--beta1=0", "--clip=0",
                                          "--schedule-steps=9", "--warmup=1"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), still.begin(), still.end());
    return more;
  };
  for (const char *scope : {"0.4", "0.4,scope=layer"}) {
    SCOPED_TRACE(scope);
    const Left first = train(
        tiny(), with({"--steps=2", prune + scope, "--save=" + path("first")}));
    const Left second = train(tiny(), with({"--steps=3", prune + scope}));
    const Left dense =
        train(tiny(), with({"--steps=2", "--load=" + path("first")}));
    fs::remove_all(path("first"));
    const Numbers weights = listOf(first.masters, first),
                  gradients = listOf(dense.moments, first);
    const std::vector<uint8_t> marks = marksOf(first);
    const auto kept = static_cast<size_t>(2 * weightsOfBlocks / 5);
    const int64_t dropped = changed(marks, marksOf(second), 1, 0),
                  regrown = changed(marks, marksOf(second), 0, 1);
    EXPECT_EQ(dropped, regrown);
    if (std::string(scope) != "0.4") {
      EXPECT_GT(regrown, 0);
      continue;
    }
    EXPECT_EQ(std::accumulate(marks.begin(), marks.end(), 0), int(kept));
    EXPECT_EQ(regrown, 58); // 0.4 of 144
    std::vector<uint8_t> expected = largest(weights, kept - 58, marks, 1);
    const std::vector<uint8_t> grown = largest(gradients, 58, marks, 0);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] |= grown[i];
    EXPECT_EQ(marksOf(second) == expected, true);
    // They start at zero, and nothing is left of their moments but the last gradient.
    const Numbers now = listOf(second.masters, first);
    for (size_t i = 0; i < grown.size(); ++i)
      if (grown[i])
        EXPECT_EQ(now[i], 0);
    EXPECT_THAT(second.said, HasSubstr("58 of these were pruned before"));
  }
}

TEST_F(TrainScoresTest, SparsityStaysWhileWeightsGrowAgain) {
  std::vector<uint8_t> before;
  for (int step : {3, 5, 7, 9}) {
    const Left left = train(tiny(), {formatText("--steps=%d", step), regrow,
                                     "--schedule-steps=9", "--warmup=1"});
    const std::vector<uint8_t> marks = marksOf(left);
    EXPECT_EQ(std::accumulate(marks.begin(), marks.end(), 0), 144);
    EXPECT_EQ(left.survivors.back(), 144);
    if (!before.empty()) {
      EXPECT_EQ(changed(before, marks, 1, 0), 43);
      EXPECT_EQ(changed(before, marks, 0, 1), 43);
    }
    before = marks;
  }
}

/// Copies and gradients in bf16; every write is looked for.
TEST_F(TrainScoresTest, ScoresAreWideNumbers) {
  TinyOptions options = tiny(plan::BF16);
  for (plan::ElementType gradients : {plan::F32, plan::BF16})
    for (const char *strategy : {"dp=1", "dp=2,zero=1", "tp=2"}) {
      options.gradients = gradients;
      const Left left = train(options, {"--steps=10", both, "--check-memory",
                                        "--strategy=" + std::string(strategy)});
      EXPECT_EQ(expectZeros(left), 2 * weightsOfBlocks / 5);
    }
}

/// Without norms gradients become scores before they are used.
TEST_F(TrainScoresTest, RunsWithoutNormsAgree) {
  const std::vector<std::string> more = {"--steps=8", both, "--clip=0"};
  const Left with = train(tiny(), more);
  for (const char *strategy : {"dp=1", "dp=2,zero=1"}) {
    std::vector<std::string> without = more;
    without.push_back("--no-gradient-norm");
    without.push_back("--strategy=" + std::string(strategy));
    const Left left = train(tiny(), without);
    expectNear(joined(left.scores), joined(with.scores));
    EXPECT_EQ(left.masks == with.masks, true);
  }
}

TEST_F(TrainScoresTest, GradientsResumeBitwise) {
  expectResumes(byGradient, 2, 9, "pp=2,layers=3+2");
}

TEST_F(TrainScoresTest, RegrowingResumesBitwise) {
  expectResumes(both, 2, 9, "pp=2,layers=3+2");
}

/// A save behind an event says so, as the event would find other scores.
TEST_F(TrainScoresTest, AnEventIsNotRepeated) {
  TrainOptions options;
  ASSERT_TRUE(parseCommandLine(training({both}), options).isOk());
  ASSERT_TRUE(resolveOptions(options).isOk());
  const TinyProgram program(tiny());
  Model model = *openProgram(program.program());
  ASSERT_TRUE(setMasks(model, options).isOk());
  RunState state;
  state.pruned = {0.6, 360, 144, 4};
  state.step = 4;
  const RunState read = *RunState::fromJson(state.toJson());
  EXPECT_EQ(read.pruned.event, 4);
  EXPECT_EQ(read.pruned.survivors, 144);
  const PruneEvents events(options, model, read.pruned);
  EXPECT_FALSE(events.isDue(4));
  EXPECT_TRUE(events.isDue(6));
  state.pruned.event = 2;
  EXPECT_TRUE(PruneEvents(options, model, state.pruned).isDue(4));
  EXPECT_TRUE(PruneEvents(options, model, {}).isDue(4));
}

/// Scores are kept where they are needed, and only then.
TEST_F(TrainScoresTest, OnlyRunsThatNeedScoresKeepThem) {
  for (const char *prune : {gradual, byGradient, regrow}) {
    fs::remove_all(path("saved"));
    const Result result =
        run(training({"--steps=5", prune, "--save=" + path("saved")}));
    ASSERT_EQ(result.code, 0) << result.err;
    const bool has = prune != gradual;
    EXPECT_EQ(
        readFile(path("saved/step-5/optimizer.safetensors"))->find(".score") !=
            std::string::npos,
        has);
    EXPECT_EQ(result.err.find("takes a number beside each of them") !=
                  std::string::npos,
              has)
        << result.err;
  }
}

/// A run that goes on by gradients has scores from then on.
TEST_F(TrainScoresTest, TheCriterionChangesWhenARunIsResumed) {
  ASSERT_EQ(
      run(training({"--steps=6", gradual, "--save=" + path("saved")})).code, 0);
  const Result result =
      run({"--resume=" + path("saved"), "--steps=12", "--no-progress",
           "--prune=initial=0.75,final=0.8,from=8,until=10,every=2,"
           "criterion=gradient"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("80.00 % of 180 weights are zero"));
}

} // namespace
