//===- TrainPruneTest.cpp - Runs whose weights are pruned -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole runs over several events of --prune: every strategy against one rank, survivors
// against a full sort, runs that change their graphs, that are killed and resumed.
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

class TrainPruneTest : public PrunedRuns {};

TEST_F(TrainPruneTest, EveryStrategyAgreesWithOneRank) {
  const Left one = train(tiny(), {"--steps=10", gradual});
  EXPECT_EQ(expectZeros(one), weightsOfBlocks / 5);
  EXPECT_EQ(one.sparsity[2], 0);
  EXPECT_DOUBLE_EQ(one.sparsity[3], 0.3);
  EXPECT_DOUBLE_EQ(one.sparsity[4], 0.3);
  EXPECT_DOUBLE_EQ(one.sparsity[5], 0.8 - 0.5 / 8);
  EXPECT_EQ(one.sparsity[9], 0.8);
  for (const char *strategy :
       {"dp=2", "dp=2,zero=1", "dp=4,zero=1", "pp=2,layers=3+2",
        "pp=3,layers=1+2+2", "tp=2", "tp=2,sp=1", "dp=2,tp=2,zero=1",
        "dp=2,pp=2,layers=2+3,zero=1", "tp=2,pp=2,layers=3+2"}) {
    SCOPED_TRACE(strategy);
    const Left left = train(
        tiny(), {"--steps=10", gradual, "--strategy=" + std::string(strategy)});
    expectNear(left, one);
    expectZeros(left);
  }
  SCOPED_TRACE("ranges");
  const Left ranges = train(
      tiny(), {"--steps=10", gradual, "--merge-ranges=never", "--check-memory",
               "--strategies=short: dp=2,zero=1; long: pp=2,layers=2+3",
               "--ranges=short: 0-40; long: 41-"});
  expectNear(ranges, one);
  expectZeros(ranges);
}

/// Ranks change before, behind and in the same place as events.
TEST_F(TrainPruneTest, RepackedRanksAgreeWithOneRank) {
  const Left one = train(tiny(), {"--steps=10", gradual});
  for (const char *list : {"2@3; tp=2,pp=2,layers=3+2@4; dp=1@6; dp=2,zero=1@7",
                           "tp=4@5; dp=4@7"}) {
    SCOPED_TRACE(list);
    const Left left =
        train(tiny(), {"--steps=10", gradual, "--strategy=dp=2,zero=1",
                       "--repack=" + std::string(list)});
    EXPECT_THAT(left.said, HasSubstr("(version 2)"));
    expectNear(left, one);
    expectZeros(left);
  }
}

/// Copies in bf16, and gradients in it; every write is looked for.
TEST_F(TrainPruneTest, CopiesAreZeroToo) {
  TinyOptions options = tiny(plan::BF16);
  for (plan::ElementType gradients : {plan::F32, plan::BF16})
    for (const char *strategy : {"dp=1", "dp=2,zero=1", "tp=2"}) {
      options.gradients = gradients;
      const Left left = train(options, {"--steps=9", gradual, "--check-memory",
                                        "--strategy=" + std::string(strategy)});
      EXPECT_EQ(expectZeros(left), weightsOfBlocks / 5);
    }
}

/// Without norms gradients are masked before they are used.
TEST_F(TrainPruneTest, RunsWithoutNormsKeepZeros) {
  const std::vector<std::string> more = {"--steps=9", gradual, "--clip=0",
                                         "--no-gradient-norm",
                                         "--weight-decay=0.3"};
  const Left one = train(tiny(), more);
  EXPECT_EQ(expectZeros(one), weightsOfBlocks / 5);
  std::vector<std::string> two = more;
  two.push_back("--strategy=dp=2,zero=1");
  EXPECT_EQ(train(tiny(), two).masks == one.masks, true);
}

TEST_F(TrainPruneTest, SurvivorsAreThoseOfAFullSort) {
  const std::vector<std::string> more = {"--schedule-steps=6", "--warmup=1"};
  auto with = [&](std::vector<std::string> extra) {
    extra.insert(extra.end(), more.begin(), more.end());
    return extra;
  };
  const Left before = train(tiny(), with({"--steps=3"}));
  const Left all =
      train(tiny(),
            with({"--steps=4", "--prune=final=0.7,from=4", "--strategy=tp=2"}));
  const Left layers =
      train(tiny(), with({"--steps=4", "--strategy=dp=2,zero=1",
                          "--prune=final=0.7,from=4,scope=layer"}));
  // By magnitude, ties by position.
  struct Weight {
    size_t parameter, index;
    double magnitude;
  };
  std::vector<Weight> sorted;
  for (size_t p = 0; p < all.masks.size(); ++p)
    for (size_t i = 0; i < all.masks[p].size(); ++i)
      sorted.push_back({p, i, std::abs(before.masters[p][i])});
  ASSERT_EQ(sorted.size(), static_cast<size_t>(weightsOfBlocks));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Weight &a, const Weight &b) {
                     return a.magnitude > b.magnitude;
                   });
  for (size_t rank = 0; rank < sorted.size(); ++rank)
    EXPECT_EQ(all.masks[sorted[rank].parameter][sorted[rank].index],
              rank < 108 ? 1 : 0);
  EXPECT_EQ(all.masks == layers.masks, false);
  // The first block has two matrices of its own, the last one has one.
  for (const std::vector<uint8_t> &mask : layers.masks)
    if (!mask.empty())
      EXPECT_GT(std::accumulate(mask.begin(), mask.end(), 0), 0);
  EXPECT_EQ(expectZeros(layers), 2 * 43 + 22);
}

/// Magnitudes are 0, 1/4, 1/2 and 3/4, each of many weights.
TEST_F(TrainPruneTest, TiesGoByThePositionInTheModel) {
  train(tiny(), {"--steps=1", "--save=" + path("m")});
  std::string bytes = *readFile(path("m/step-1/model.safetensors"));
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (size_t at = 8 + header, i = 0; at + 8 <= bytes.size(); at += 8, ++i) {
    const double value =
        (i % 2 ? -0.25 : 0.25) * static_cast<double>(dyna_mix64(i) % 4);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  fs::create_directories(folder_ / "ties");
  std::ofstream(path("ties/model.safetensors")) << bytes;
  const std::string load = "--load=" + path("ties");
  // Nothing moves, so that these are the weights before the event.
  const Left before = train(tiny(), {"--steps=1", load, "--lr=0"});
  for (double sparsity : {0.1, 0.4, 0.65}) {
    const std::string prune = formatText("--prune=final=%g,from=1", sparsity);
    const Left one = train(tiny(), {"--steps=1", load, prune});
    std::vector<std::pair<double, uint8_t>> weights; // in the model's order
    for (size_t p = 0; p < one.masks.size(); ++p)
      for (size_t i = 0; i < one.masks[p].size(); ++i)
        weights.push_back({std::abs(before.masters[p][i]), one.masks[p][i]});
    std::stable_sort(
        weights.begin(), weights.end(),
        [](const auto &a, const auto &b) { return a.first > b.first; });
    const auto kept = static_cast<size_t>(
        std::llround((1 - sparsity) * static_cast<double>(weights.size())));
    for (size_t rank = 0; rank < weights.size(); ++rank)
      EXPECT_EQ(weights[rank].second, rank < kept ? 1 : 0);
    EXPECT_EQ(weights[kept - 1].first, weights[kept].first);
    for (const char *strategy :
         {"tp=2", "tp=4", "dp=2,tp=2,zero=1", "pp=2,layers=2+3", "dp=4,zero=1"})
      EXPECT_EQ(train(tiny(), {"--steps=1", load, prune,
                               "--strategy=" + std::string(strategy)})
                        .masks == one.masks,
                true)
          << strategy;
  }
}

/// Without a memory of gradients the first moment is the last gradient.
TEST_F(TrainPruneTest, NormsAreThoseOfSurvivors) {
  for (const char *strategy : {"dp=1", "dp=2,zero=1", "tp=2"}) {
    const Left left =
        train(tiny(), {"--steps=9", gradual, "--clip=0", "--beta1=0",
                       "--strategy=" + std::string(strategy)});
    double sum = 0;
    for (const Numbers &gradients : left.moments)
      for (double gradient : gradients)
        sum += gradient * gradient;
    EXPECT_NEAR(left.norms.back(), std::sqrt(sum), 1e-12);
  }
}

/// With a learning rate of 0 it does not matter when the same weights were pruned. The
/// first step behind an event reads copies that no update has written since.
TEST_F(TrainPruneTest, TheFirstStepReadsPrunedCopies) {
  for (plan::ElementType compute : {plan::F64, plan::BF16})
    for (const char *strategy : {"dp=1", "dp=2,zero=1"}) {
      auto from = [&](const char *prune) {
        return train(tiny(compute), {"--steps=3", "--lr=0", "--warmup=0", prune,
                                     "--strategy=" + std::string(strategy)});
      };
      const Left early = from("--prune=final=0.6,from=1");
      const Left late = from("--prune=final=0.6,from=3");
      EXPECT_NE(early.losses[1], late.losses[1]);
      EXPECT_EQ(early.losses[2], late.losses[2]);
      EXPECT_EQ(early.masks == late.masks, true);
    }
}

TEST_F(TrainPruneTest, MasksMoveWithTheGraphs) {
  const Left one = train(tiny(), {"--steps=12", gradual});
  const Left moves =
      train(tiny(), {"--steps=12", gradual, "--strategy=dp=4,zero=1"},
            {{3, "pp=2,layers=2+3"},
             {4, "tp=2"},
             {6, "dp=2,zero=1"},
             {7, "dp=2,pp=2,layers=3+2,zero=1"},
             {9, "dp=1"}});
  expectNear(moves, one);
  expectZeros(moves);
  EXPECT_THAT(moves.said, HasSubstr("(version 5)"));
}

TEST_F(TrainPruneTest, ParametersCanBeChosen) {
  const Left left =
      train(tiny(), {"--steps=3", "--prune=final=0.5,from=2,params=*.w1+wte*"});
  int64_t masked = 0;
  for (const std::vector<uint8_t> &mask : left.masks)
    masked += static_cast<int64_t>(mask.size());
  EXPECT_EQ(2 * expectZeros(left), masked);
  EXPECT_GT(masked, 3 * 72);
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

TEST_F(TrainPruneTest, ResumesBitwiseBetweenEvents) {
  expectResumes(gradual, 2, 9, "pp=2,layers=3+2",
                "80.00 % of 180 weights are zero");
}

/// A kill costs the steps since the last save, whether it comes in an event or not.
TEST_F(TrainPruneTest, KilledRunsGoOn) {
  const std::vector<std::string> arguments =
      training({"--prune=final=0.9,from=2,until=40,every=1", "--steps=40",
                "--save-every=1", "--warmup=2", "--strategy=dp=2,zero=1"});
  auto saving = [&](const char *folder) {
    std::vector<std::string> all = arguments;
    all.push_back("--save=" + path(folder));
    return all;
  };
  ASSERT_EQ(run(saving("whole")).code, 0);
  for (int round = 0; round < 4; ++round) {
    fs::remove_all(folder_ / "killed");
    const pid_t child = start(saving("killed"));
    waitFor(child, [&] { return fileExists(path("killed/step-1")); });
    usleep(static_cast<useconds_t>(dyna_mix64(round) % 30000));
    kill(child, SIGKILL);
    finish(child);
    const Result resumed = run({"--resume=" + path("killed"), "--no-progress"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    expectSame("whole/step-40", "killed/step-40");
  }
}

//===----------------------------------------------------------------------===//
// Refusals, and what is told
//===----------------------------------------------------------------------===//

TEST_F(TrainPruneTest, WhatIsToldOfIt) {
  const Result result =
      run(training({"--steps=6", gradual, "--trace=" + path("trace"),
                    "--metrics=" + path("m")}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("180 weights of 6 parameters are masked: those that "
                        "are pruned stay zero, and products are computed as "
                        "for dense weights"));
  EXPECT_THAT(result.err, HasSubstr("the last event is at step 8, but the run "
                                    "ends with step 6"));
  EXPECT_THAT(result.err, HasSubstr("note: --prune: from step 4 on, 30.00 % of "
                                    "180 weights are zero, and 126 survive"));
  EXPECT_THAT(result.out,
              HasSubstr("73.75 % of 180 weights are zero; 2 events in "));
  EXPECT_THAT(*readFile(path("trace")), HasSubstr("\"PRUNE\""));
  EXPECT_EQ(numbers("m", "survivors"), (Numbers{180, 180, 180, 126, 126, 47}));
  EXPECT_EQ(numbers("m", "prune_seconds").size(), 2u);
  // Without the flag there is no word of it.
  ASSERT_EQ(run(training({"--steps=2", "--metrics=" + path("plain"),
                          "--save=" + path("saved")}))
                .code,
            0);
  EXPECT_THAT(*readFile(path("plain")), testing::Not(HasSubstr("survivors")));
  EXPECT_THAT(*readFile(path("saved/step-2/state.json")),
              testing::Not(HasSubstr("prune")));
  EXPECT_THAT(*readFile(path("saved/step-2/optimizer.safetensors")),
              testing::Not(HasSubstr(".mask")));
}

TEST_F(TrainPruneTest, ErrorsComeBeforeTraining) {
  ASSERT_EQ(
      run(training({"--steps=6", gradual, "--save=" + path("saved")})).code, 0);
  ASSERT_EQ(run(training({"--steps=6", "--save=" + path("dense")})).code, 0);
  const std::string again = "--resume=" + path("saved");
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {training({"--prune=final=1,from=3"}),
       "--prune: 'final=1': give a share"},
      {training({"--prune=final=-0.1,from=3"}), "give a share"},
      {training({"--prune=final=0.2,initial=0.5,from=3"}), "would fall"},
      {training({"--prune=final=0.5,from=9,until=3,every=1"}), "before the"},
      {training({"--prune=final=0.5,from=3,until=9,every=0"}), "from 1 on"},
      {training({"--prune=final=0.5,from=3,until=9"}), "give every="},
      {training({"--prune=final=0.5,from=0"}), "from 1 on"},
      {training({"--prune=final=0.5"}), "give from="},
      {training({"--prune=what=1,final=0.5,from=3"}), "there are final"},
      {training({"--prune=scope=all,final=0.5,from=3"}), "scope=layer"},
      {training({"--prune=criterion=luck,final=0.5,from=3"}),
       "there are criterion=magnitude and criterion=gradient"},
      {training({"--prune=criterion=gradient,final=0.5,from=1"}),
       "there are none before step 1: give from=2"},
      {training({"--prune=regrow=1,final=0.5,from=2,until=4,every=1"}),
       "'regrow=1': give a share of the survivors above 0 and below 1"},
      {training({"--prune=regrow=0,final=0.5,from=2,until=4,every=1"}),
       "'regrow=0': give a share"},
      {training({"--prune=regrow=x,final=0.5,from=2,until=4,every=1"}),
       "'regrow=x': give a share"},
      {training({"--prune=regrow=0.1,final=0.5,from=2"}),
       "give until= and every= to regrow="},
      {training({"--prune=regrow=0.1,initial=0.1,final=0.5,from=2,until=4,"
                 "every=1"}),
       "leave out initial="},
      {training({"--prune=regrow=0.5,final=0.2,from=2,until=4,every=1"}),
       "give at most regrow=0.25"},
      {training({"--prune=structure=cube,final=0.5,from=3"}),
       "there are structure=element, structure=head and structure=channel"},
      {training({"--prune=scope=layer,scope=layer,final=0.5,from=3"}), "twice"},
      {training({"--prune=params=,final=0.5,from=3"}), "names of matrices"},
      {training({"--prune=scope=layer"}), "--prune: give final= and from="},
      {training({"--prune=params=none.*,final=0.5,from=3"}),
       "there is no such parameter; a matrix of this model is '"},
      {training({"--prune=params=*.b1,final=0.5,from=3"}), "only matrices"},
      {training({"--prune=final=0.5,from=3", "--evaluate"}),
       "--evaluate trains nothing"},
      {{again, "--steps=9", "--prune=final=0.9,from=6"},
       "at step 6, is in the past: the saved run has done 6 steps; give "
       "from=7"},
      {{again, "--steps=9", "--prune=final=0.9,from=8,until=9,every=1"},
       "would fall from 0.7375, which the saved run has, to 0 at step 8"},
      {{again, "--steps=9", "--prune=final=0.9,from=8,params=*.w1"},
       "params= cannot change"},
      {{"--resume=" + path("dense"), "--steps=9", "--prune=final=0.9,from=5"},
       "is in the past"},
      {{again, "--steps=9", "--prune=final=0.9,from=7,criterion=gradient"},
       "which the saved run has not kept: give from=8 or later"},
      {{again, "--steps=9",
        "--prune=final=0.9,from=7,until=9,every=2,regrow=0.1"},
       "which the saved run has not kept: give from=8 or later"}};
  for (const auto &[arguments, words] : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << words;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
        << result.err;
  }
  // A dense run can be pruned from then on, and a pruned one more than planned.
  for (const char *folder : {"dense", "saved"}) {
    const Result result = run({"--resume=" + path(folder), "--steps=9",
                               "--no-progress", "--prune=final=0.9,from=8"});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("90.00 % of 180 weights are zero"));
  }
}

/// The run ends with what the event found, and its checkpoints stay.
TEST_F(TrainPruneTest, WeightsThatAreNoNumbersEndTheRun) {
  ASSERT_EQ(run(training({"--steps=1", "--save=" + path("m")})).code, 0);
  const std::string file = path("m/step-1/model.safetensors");
  std::string bytes = *readFile(file);
  fs::create_directories(folder_ / "bad");
  // The last element is one of a matrix or a vector: all of them become NaN.
  const size_t begin =
      8 +
      static_cast<size_t>(*reinterpret_cast<const uint64_t *>(bytes.data()));
  for (size_t at = begin; at + 8 <= bytes.size(); at += 8)
    bytes[at + 6] = bytes[at + 7] = '\x7f', bytes[at + 6] = '\xf8';
  std::ofstream(path("bad/model.safetensors")) << bytes;
  const Result result = run(
      training({"--steps=3", "--load=" + path("bad"), "--save=" + path("after"),
                "--strategy=dp=2", "--prune=final=0.5,from=1"}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("before step 1: pruning: a weight is no "
                                    "number (NaN)"));
  EXPECT_FALSE(fileExists(path("after/step-1")));
}

} // namespace
