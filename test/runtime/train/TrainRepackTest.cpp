//===- TrainRepackTest.cpp - Runs with --repack ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/train/ReplacedTraining.h"

#include <set>

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

/// A model that one rank holds goes there. Losses are those of a run that stays, and an
/// entry of the list brings ranks back.
TEST_F(TrainRepackTest, AutoTakesTheFewestRanks) {
  for (const char *strategy : {"--strategy=pp=4", "--strategy=dp=2,pp=2"}) {
    SCOPED_TRACE(strategy);
    const std::vector<std::string> arguments =
        training({"--steps=14", strategy});
    const Outcome moves = repack(tiny(), arguments, "auto; 3@9");
    EXPECT_THAT(moves.said,
                HasSubstr("note: --repack auto: fewest: 1 rank instead of 4"));
    EXPECT_EQ(moves.version, 2);
    EXPECT_THAT(moves.graph, HasSubstr("dp=1,tp=1,pp=3,"));
    expectNear(moves, train(tiny(), arguments));
  }
}

/// With little memory as many ranks are taken as hold the model. Others are tried as a
/// start with as many ranks tries them.
TEST_F(TrainRepackTest, AutoStaysWithinMemory) {
  TinyOptions large = tiny();
  large.hidden = 400;
  large.blocks = 30;
  auto with = [&](const char *steps, const std::string &memory,
                  const std::string &list) {
    return repack(
        large,
        training({steps, "--strategy=pp=6", "--recompute=full",
                  "--tokens-per-batch=100", "--rank-memory=" + memory}),
        list);
  };
  std::set<std::string> chosen;
  for (const char *memory : {"3MiB", "8MiB"}) {
    SCOPED_TRACE(memory);
    const Outcome packed = with("--steps=6", memory, "auto");
    ASSERT_TRUE(packed.status.isOk()) << packed.status.message();
    int fewest = 6; // as entries say before a run begins
    for (int ranks = 5; ranks > 0; --ranks)
      if (with("--steps=1", memory, std::to_string(ranks) + "@5").status.isOk())
        fewest = ranks;
    EXPECT_THAT(packed.graph, HasSubstr("pp=" + std::to_string(fewest) + ","))
        << packed.said;
    chosen.insert(packed.graph);
  }
  EXPECT_EQ(chosen.size(), 2u);
}

/// Behind each change of the model there is an answer, and not otherwise. A resumed run
/// has the entry too.
TEST_F(TrainRepackTest, AutoAnswersBehindChanges) {
  auto saving = [&](const char *steps) {
    return training({steps, "--schedule-steps=24", "--warmup=2",
                     "--save-every=1", "--keep=30", "--strategy=pp=3",
                     "--save=" + path("parts"),
                     "--prune=final=0.5,from=8,until=16,every=8",
                     "--repack=auto=replicas"});
  };
  const Result whole = run(saving("--steps=24"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  int answers = 0;
  for (size_t at = 0; (at = whole.err.find("--repack auto: replicas: ", at)) !=
                      std::string::npos;
       ++at)
    ++answers;
  EXPECT_EQ(answers, 3) << whole.err;
  fs::rename(folder_ / "parts" / "step-24", folder_ / "whole-24");
  for (int64_t step = 11; step <= 24; ++step)
    fs::remove_all(folder_ / "parts" / ("step-" + std::to_string(step)));
  const Result rest =
      run({"--resume=" + path("parts"), "--steps=24", "--no-progress"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("note: --repack auto: replicas: "));
}

/// A goal with a step holds once.
TEST_F(TrainRepackTest, AutoAtAStepHoldsOnce) {
  const Outcome moves =
      repack(tiny(), training({"--steps=9", "--strategy=pp=3"}), "auto@2; 3@4");
  EXPECT_TRUE(moves.status.isOk()) << moves.status.message();
  EXPECT_EQ(moves.version, 2);
  EXPECT_THAT(moves.graph, HasSubstr("pp=3,"));
  for (const char *goal : {"auto=per-rank@3", "auto=replicas@3"}) {
    const Outcome other =
        repack(tiny(), training({"--steps=6", "--strategy=pp=3"}), goal);
    EXPECT_TRUE(other.status.isOk()) << other.status.message();
    EXPECT_THAT(other.said, HasSubstr("note: --repack auto: "));
  }
}

/// The run saves and ends with a code of its own, and goes on as one that went over.
TEST_F(TrainRepackTest, ReleaseExitSavesAndEnds) {
  auto saving = [&](const char *folder, std::vector<std::string> more) {
    more.insert(more.end(), {"--steps=12", "--warmup=2", "--strategy=pp=4",
                             "--repack=4@2; 2@5; dp=1@8",
                             std::string("--save=") + path(folder)});
    return training(more);
  };
  ASSERT_EQ(run(saving("whole", {})).code, 0);
  const Result first = run(saving("parts", {"--release=exit"}));
  EXPECT_EQ(first.code, 3) << first.err;
  EXPECT_THAT(
      first.err,
      HasSubstr("note: --release exit: the run ends after step 5; start "
                "it again with --resume " +
                path("parts") + ", on 2 ranks"));
  const std::vector<std::string> again = {"--resume=" + path("parts"),
                                          "--no-progress"};
  const Result second = run(again);
  EXPECT_EQ(second.code, 3) << second.err;
  EXPECT_THAT(second.err, HasSubstr("the run ends after step 8; start it again "
                                    "with --resume " +
                                    path("parts") + ", on 1 rank"));
  const Result last = run(again);
  EXPECT_EQ(last.code, 0) << last.err;
  TrainProgram::expectSame("whole/step-12", "parts/step-12");
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
      {{"--release=later", "--repack=2@3"},
       "--release expects wait or exit, but got 'later'"},
      {{"--repack=auto=all"}, "'all' is no goal of packing"},
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
