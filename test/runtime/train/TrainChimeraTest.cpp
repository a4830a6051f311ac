//===- TrainChimeraTest.cpp - Runs with --pipeline chimera ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/ReplacedTraining.h"

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainChimeraTest : public ReplacedTraining {
protected:
  Outcome chimera(const TinyOptions &model, std::vector<std::string> arguments,
                  const std::string &strategy) {
    arguments.insert(arguments.end(),
                     {"--strategy=" + strategy, "--pipeline=chimera"});
    return train(model, std::move(arguments), {}, "", /*arenaBytes=*/0);
  }
};

/// Losses, parameters and moments in f64.
TEST_F(TrainChimeraTest, EqualsOneForwardOneBackward) {
  const std::vector<std::string> arguments = training({"--steps=6"});
  std::vector<std::string> plain = arguments;
  plain.insert(plain.end(), {"--strategy=pp=4", "--pipeline=1f1b"});
  const Outcome expected = train(wide(), plain);
  for (const char *strategy :
       {"pp=4", "pp=2,layers=3+2", "dp=2,pp=2,zero=1", "tp=2,pp=2"}) {
    SCOPED_TRACE(strategy);
    const Outcome got = chimera(wide(), arguments, strategy);
    ASSERT_TRUE(got.status.isOk()) << got.status.message();
    EXPECT_THAT(got.graphBefore, HasSubstr(",mirror=1"));
    expectNear(got, expected);
  }
}

/// Runs the whole program on eight devices, which have sixteen ranks.
TEST_F(TrainChimeraTest, EightDevicesHaveTheLossesOfOne) {
  auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--steps=4", "--metrics=" + path("m")});
    const Result result =
        TrainProgram::run(training(std::move(more)), {"TINY_BLOCKS=10"});
    EXPECT_EQ(result.code, 0) << result.err;
    return numbers("m", "loss");
  };
  const std::vector<double> one = run({});
  ASSERT_EQ(one.size(), 4u);
  expectNear(run({"--strategy=pp=8", "--pipeline=chimera"}), one);
}

TEST_F(TrainChimeraTest, PacksOntoFewerDevices) {
  const std::vector<std::string> arguments = training({"--steps=9"});
  std::vector<std::string> plain = arguments;
  plain.push_back("--strategy=pp=2");
  const Outcome stays = train(tiny(), plain);
  std::vector<std::string> packs = arguments;
  packs.push_back("--repack=2@3; dp=2,pp=2,zero=1@5; pp=4@7");
  const Outcome moves = chimera(tiny(), packs, "pp=4");
  ASSERT_TRUE(moves.status.isOk()) << moves.status.message();
  EXPECT_EQ(moves.version, 3);
  expectNear(moves, stays);
}

/// The saved run has the schedule, and another one can go on with it.
TEST_F(TrainChimeraTest, Resumes) {
  auto saving = [&](const char *steps, const char *folder) {
    return training({steps, "--schedule-steps=6", "--strategy=pp=4",
                     "--pipeline=chimera", "--keep=20",
                     std::string("--save=") + path(folder)});
  };
  ASSERT_EQ(run(saving("--steps=6", "whole")).code, 0);
  ASSERT_EQ(run(saving("--steps=3", "parts")).code, 0);
  const Result second =
      run({"--resume=" + path("parts"), "--steps=6", "--no-progress"});
  ASSERT_EQ(second.code, 0) << second.err;
  TrainProgram::expectSame("whole/step-6", "parts/step-6");
  const Result other =
      run({"--resume=" + path("parts"), "--steps=8", "--no-progress",
           "--strategy=dp=2", "--pipeline=1f1b"});
  EXPECT_EQ(other.code, 0) << other.err;
}

TEST_F(TrainChimeraTest, RefusesWhatItCannotRun) {
  auto refused = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--steps=2", "--pipeline=chimera"});
    const Result result = run(training(std::move(more)));
    EXPECT_NE(result.code, 0);
    return result.err;
  };
  EXPECT_THAT(refused({"--strategy=pp=3"}),
              HasSubstr("pp must be even, but strategy 'dp=1,tp=1,pp=3' has "
                        "pp=3"));
  EXPECT_THAT(refused({}), HasSubstr("has pp=1"));
  EXPECT_THAT(refused({"--strategy=pp=2", "--rebalance=time,every=1"}),
              HasSubstr("--pipeline chimera and --rebalance do not go "
                        "together"));
  EXPECT_THAT(refused({"--strategy=pp=2", "--repack=auto"}),
              HasSubstr("--pipeline chimera and --repack auto do not go"));
  EXPECT_THAT(
      refused({"--strategies=a: pp=2; b: dp=2", "--ranges=a: 0-10; b: 11-"}),
      HasSubstr("--pipeline chimera and --ranges do not go"));
  // Before training, whenever it would come.
  EXPECT_THAT(refused({"--strategy=pp=2", "--repack=pp=3@1"}),
              HasSubstr("pp must be even"));
}

} // namespace
