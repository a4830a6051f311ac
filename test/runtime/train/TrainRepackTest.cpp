//===- TrainRepackTest.cpp - Runs with --repack ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/ReplacedTraining.h"

using namespace dyna;
using namespace dyna::test;

namespace {

class TrainRepackTest : public ReplacedTraining {
protected:
  /// Without more memory than the run takes for itself.
  Outcome repack(const TinyOptions &model, std::vector<std::string> arguments,
                 const std::string &list) {
    if (!list.empty())
      arguments.push_back("--repack=" + list);
    return train(model, std::move(arguments), {}, "", /*arenaBytes=*/0);
  }
};

TEST_F(TrainRepackTest, NewCutsAreBitwiseTheSame) {
  const std::vector<std::string> arguments =
      training({"--steps=9", "--clip=0", "--micro-batches=tokens",
                "--pipeline=1f1b", "--strategy=pp=2,layers=3+2"});
  const Outcome moves = repack(
      tiny(), arguments, "pp=2,layers=2+3@3; pp=2,layers=4+1@4; 2@7; 2@8");
  fs::copy(path("metrics"), path("metrics.moves"));
  expectSame(moves, train(tiny(), arguments));
  EXPECT_EQ(moves.version, 4);
  EXPECT_THAT(*readFile(path("metrics.moves")),
              HasSubstr("{\"step\": 3, \"move\": {\"from\": \"dp=1,tp=1,pp=2,"
                        "layers=3+2\", \"to\": \"dp=1,tp=1,pp=2,layers=2+3\", "
                        "\"version\": 1, \"sent_bytes\": "));
  EXPECT_THAT(moves.said, HasSubstr("note: from step 4 on, strategy 'dp=1,tp=1,"
                                    "pp=2,layers=2+3' instead of"));
}

TEST_F(TrainRepackTest, RanksShrinkAndGrow) {
  const std::vector<std::string> arguments =
      training({"--steps=13", "--strategy=dp=2,tp=2"});
  const Outcome stays = train(wide(), arguments);
  for (const char *list : {"2@3; 4@5; dp=1@8; dp=4,zero=1@10",
                           "tp=4@1; dp=3@2; tp=2,pp=3,layers=2+2+1@6"}) {
    const Outcome moves = repack(wide(), arguments, list);
    expectNear(moves, stays);
    EXPECT_EQ(moves.version, *list == '2' ? 4 : 3);
  }
}

/// What a user starts: the losses of one that stays, and a summary at the end.
TEST_F(TrainRepackTest, EightFourTwoRanksHaveTheSameLosses) {
  auto run = [&](const char *list) {
    std::vector<std::string> arguments =
        training({"--steps=12", "--strategy=pp=8", "--metrics=" + path("m")});
    if (*list)
      arguments.push_back(std::string("--repack=") + list);
    const Result result = TrainProgram::run(arguments, {"TINY_BLOCKS=10"});
    EXPECT_EQ(result.code, 0) << result.err;
    return numbers("m", "loss");
  };
  const std::vector<double> stays = run("");
  ASSERT_EQ(stays.size(), 12u);
  expectNear(run("4@3; 2@6; 8@9"), stays);
}

/// The list goes on where the saved run was in it, whether the save came before an
/// entry or behind it.
TEST_F(TrainRepackTest, ResumesWithTheRestOfTheList) {
  auto saving = [&](const char *steps, const char *folder) {
    return training({steps, "--schedule-steps=12", "--warmup=2", "--keep=20",
                     "--save-every=1", "--strategy=pp=4",
                     std::string("--save=") + path(folder),
                     "--repack=2@3; dp=2@5; 4@9"});
  };
  ASSERT_EQ(run(saving("--steps=12", "whole")).code, 0);
  for (const int64_t step : {2, 3, 5, 9}) {
    SCOPED_TRACE(step);
    // As it was saved on the way, and by a run that ended there.
    for (const bool ends : {false, true}) {
      fs::remove_all(folder_ / "parts");
      fs::create_directory(folder_ / "parts");
      if (ends)
        ASSERT_EQ(
            run(saving(("--steps=" + std::to_string(step)).c_str(), "parts"))
                .code,
            0);
      else
        fs::copy(folder_ / "whole" / ("step-" + std::to_string(step)),
                 folder_ / "parts" / ("step-" + std::to_string(step)),
                 fs::copy_options::recursive);
      const Result second =
          run({"--resume=" + path("parts"), "--steps=12", "--no-progress"});
      ASSERT_EQ(second.code, 0) << second.err;
      TrainProgram::expectSame("whole/step-12", "parts/step-12");
    }
  }
  fs::remove_all(folder_ / "parts");
  fs::rename(folder_ / "whole", folder_ / "parts");
  // An entry of the past is refused; a list that is given takes the place of the rest.
  const std::string parts = "--resume=" + path("parts");
  EXPECT_THAT(run({parts, "--steps=14", "--repack=2@11; 4@13"}).err,
              HasSubstr("--repack 2@11 is in the past: the run has done 12 "
                        "steps"));
  EXPECT_THAT(run({parts, "--steps=14", "--repack=2@12"}).err,
              HasSubstr("note: from step 13 on, strategy 'dp=2,tp=1,pp=1,"));
}

/// Killed at any moment, many of them in a move: the steps since the last save are lost,
/// and nothing else.
TEST_F(TrainRepackTest, KilledRunsLoseTheStepsSinceTheLastSave) {
  std::string list;
  for (int step = 1; step < 40; ++step)
    list += (step % 3 == 0   ? "pp=2,layers=2+3@"
             : step % 3 == 1 ? "1@"
                             : "4@") +
            std::to_string(step) + ";";
  auto saving = [&](const char *folder) {
    return training({"--steps=40", "--warmup=2", "--save-every=1",
                     "--strategy=pp=4", "--repack=" + list,
                     std::string("--save=") + path(folder)});
  };
  ASSERT_EQ(run(saving("whole")).code, 0);
  pid_t child = start(saving("parts"));
  for (int kills = 0; kills < 6; ++kills) {
    const int64_t wanted = 5 * kills + 2;
    ASSERT_TRUE(waitForSave(child, "parts", wanted));
    usleep(500 * kills);
    kill(child, SIGKILL);
    EXPECT_EQ(finish(child).code, 1000 + SIGKILL);
    child = start({"--resume=" + path("parts"), "--no-progress"});
  }
  const Result last = finish(child);
  EXPECT_EQ(last.code, 0) << last.err;
  TrainProgram::expectSame("whole/step-40", "parts/step-40");
}

TEST_F(TrainRepackTest, BadListsAreRefusedBeforeTraining) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{"--repack=2@3; 4@2"}, "'4@2' does not come after '2@3'"},
      {{"--repack=2"}, "expects entries RANKS@STEP or STRATEGY@STEP"},
      {{"--repack=9@3"}, "--repack 9@3: 9 ranks have 9 stages"},
      {{"--repack=tp=2@3"}, "--repack tp=2@3: "},
      {{"--repack=dp=0@3"}, "--repack dp=0@3: "},
      {{"--repack=small@3"}, "--repack small@3: no strategy is named 'small'"},
      {{"--repack=pp=2,layers=3+3@3"}, "--repack pp=2,layers=3+3@3: "},
      {{"--repack=2@3; 3@4; dp=5000@5"}, "one process has at most 4096"},
      {{"--repack=2@3", "--plans=" + path("corpus")},
       "has no plans: give only one of them"},
      {{"--repack=2@3", "--ranges=all: 0-"},
       "--repack and --ranges do not go together"},
      {{"--repack=2@3", "--evaluate"}, "--evaluate trains no step"},
      {{"--repack=1@3", "--rank-memory=16KiB"}, "--repack 1@3: "}};
  for (const auto &[more, words] : cases) {
    std::vector<std::string> arguments =
        training({"--steps=6", "--save=" + path("saved")});
    if (more.back().rfind("--ranges", 0) != 0)
      arguments.emplace_back("--strategy=pp=4");
    if (more.back() == "--evaluate")
      arguments.erase(arguments.end() - 2);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << words;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_FALSE(fs::exists(folder_ / "saved" / "step-1"));
  }
  const Result late = run(training({"--steps=3", "--repack=2@3"}));
  EXPECT_EQ(late.code, 0) << late.err;
  EXPECT_THAT(late.err,
              HasSubstr("note: --repack 2@3 is not reached: --steps is 3"));
}

/// With limited arenas, bytes that are missing are named; as many are enough.
TEST_F(TrainRepackTest, FewRanksThatDoNotHoldTheModelAreRefused) {
  TinyOptions large = tiny();
  large.hidden = 400;
  large.blocks = 30;
  auto with = [&](const std::string &memory) {
    return repack(
        large,
        training({"--steps=4", "--strategy=dp=2", "--recompute=full",
                  "--tokens-per-batch=100", "--rank-memory=" + memory}),
        "1@2");
  };
  const Outcome alone = with("5MiB");
  EXPECT_THAT(alone.status.message(),
              testing::AllOf(HasSubstr("--repack 1@2: "),
                             HasSubstr("a rank may take 5"),
                             HasSubstr("rank 0 needs")));
  // One rank holds the model, but not beside what it had before.
  const Outcome both = with("8MiB");
  const std::string &said = both.status.message();
  EXPECT_THAT(said, testing::AllOf(HasSubstr("--repack 1@2: on the way, rank 0 "
                                             "needs "),
                                   HasSubstr("are missing: --rank-memory ")));
  const std::string words = "--rank-memory ";
  const size_t at = said.find(words);
  ASSERT_NE(at, std::string::npos);
  const std::string enough =
      std::to_string(std::stoll(said.substr(at + words.size())));
  const Outcome fits = with(enough);
  EXPECT_TRUE(fits.status.isOk()) << fits.status.message();
  EXPECT_EQ(fits.version, 1);
}

} // namespace
