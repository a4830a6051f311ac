//===- TrainReplaceTest.cpp - Runs whose graphs change --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole runs in this process that go over to another cut, strategy or number of ranks
// every three steps, beside runs that stay: losses, parameters, moments, checkpoints.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/train/ReplacedTraining.h"

using namespace dyna;
using namespace dyna::test;

namespace {

using TrainReplaceTest = ReplacedTraining;

/// Norms are summed up rank by rank, in another order under another cut: the runs do not
/// clip. Ragged micro-batches and their order depend on the costs of stages.
TEST_F(TrainReplaceTest, NewCutsAreBitwiseTheSame) {
  for (plan::ElementType compute : {plan::F64, plan::BF16})
    for (const char *more :
         {"--plan-ahead=0", "--plan-ahead=4", "--recompute=full"}) {
      SCOPED_TRACE(testing::Message() << compute << " " << more);
      const std::vector<std::string> arguments =
          training({"--steps=12", "--clip=0", "--plan-threads=2", more,
                    "--micro-batches=tokens", "--pipeline=1f1b",
                    "--strategy=pp=2,layers=3+2"});
      const Outcome moves =
          train(tiny(compute), arguments,
                everyThree(
                    {"pp=2,layers=2+3", "pp=2,layers=4+1", "pp=2,layers=3+2"}));
      expectSame(moves, train(tiny(compute), arguments));
      EXPECT_EQ(moves.version, 3);
      EXPECT_EQ(moves.graph, "dp=1,tp=1,pp=2,layers=3+2");
      // Stored plans of the first graph are none of the last, though they are alike.
      EXPECT_NE(moves.prefix, moves.prefixBefore);
      EXPECT_THAT(moves.said,
                  HasSubstr("note: from step 4 on, strategy 'dp=1,tp=1,pp=2,"
                            "layers=2+3' instead of 'dp=1,tp=1,pp=2,layers="
                            "3+2' (version 1): "));
    }
}

TEST_F(TrainReplaceTest, NewStrategiesAreNear) {
  const std::vector<std::string> arguments = training({"--steps=18"});
  auto with = [&](const std::string &strategy) {
    std::vector<std::string> all = arguments;
    all.push_back("--strategy=" + strategy);
    return all;
  };
  const Outcome stays = train(wide(), with("dp=2"));
  for (const char *more : {"--recompute=selective", "--plan-ahead=3"}) {
    std::vector<std::string> moving = with("pp=2,layers=3+2");
    moving.push_back(more);
    const Outcome moves =
        train(wide(), moving,
              everyThree({"pp=2,layers=2+3", "dp=2,zero=1", "tp=2", "dp=2",
                          "pp=2,layers=3+2"}));
    expectNear(moves, stays);
    EXPECT_EQ(moves.version, 5);
  }
}

/// In the end, held-out documents are evaluated on two of four ranks.
TEST_F(TrainReplaceTest, RanksComeAndGo) {
  const std::vector<std::string> arguments =
      training({"--steps=15", "--strategy=dp=2,pp=2,layers=3+2",
                "--held-out-fraction=0.2"});
  const Outcome moves =
      train(wide(), arguments,
            everyThree({"pp=2,layers=2+3", "dp=1", "dp=4,zero=1", "tp=2"}));
  expectNear(moves, train(wide(), arguments));
  EXPECT_EQ(moves.losses.size(), 17u); // and two evaluations
  EXPECT_EQ(moves.version, 4);
}

TEST_F(TrainReplaceTest, RangesComeAndGo) {
  const std::vector<std::string> arguments =
      training({"--steps=9", "--tokens-per-batch=400", "--merge-ranges=never",
                "--strategies=short: dp=2,zero=1; long: pp=2,layers=2+3",
                "--ranges=short: 0-40; long: 41-", "--trace=" + path("trace")});
  const Outcome moves =
      train(tiny(), arguments,
            {{3, {"dp=2", ""}}, {6, {"", "short: 0-20; long: 21-"}}});
  expectNear(moves, train(tiny(), arguments));
  EXPECT_EQ(moves.version, 2);
}

//===----------------------------------------------------------------------===//
// Checkpoints and traces
//===----------------------------------------------------------------------===//

TEST_F(TrainReplaceTest, ResumesWithTheStrategyOfThatMoment) {
  const Changes changes =
      everyThree({"dp=2,zero=1", "pp=2,layers=2+3", "dp=2"});
  auto saving = [&](const char *steps, const char *folder) {
    return training({steps, "--schedule-steps=12", "--warmup=2",
                     "--strategy=pp=2,layers=3+2", "--save=" + path(folder)});
  };
  const Outcome whole = train(tiny(), saving("--steps=12", "whole"), changes);
  for (const char *steps : {"4", "8", "9"}) {
    SCOPED_TRACE(steps);
    fs::remove_all(folder_ / "parts");
    const Outcome first = train(
        tiny(), saving(("--steps=" + std::string(steps)).c_str(), "parts"),
        changes);
    ASSERT_TRUE(first.status.isOk()) << first.status.message();
    const std::string step = path("parts/step-") + steps;
    auto state = RunState::fromJson(*readFile(step + "/state.json"));
    ASSERT_TRUE(state.isOk());
    EXPECT_EQ(state->version, (state->step - 1) / 3);
    EXPECT_EQ(state->version, first.version);
    EXPECT_EQ(storedValue(state->arguments, "strategy"),
              changes.at(3 * state->version).strategy);
    const Outcome second = train(
        tiny(), {"--steps=12", "--save=" + path("parts"), "--no-progress"},
        changes, path("parts"));
    ASSERT_TRUE(second.status.isOk()) << second.status.message();
    EXPECT_EQ(second.version, 3);
    TrainProgram::expectSame("whole/step-12", "parts/step-12");
    EXPECT_EQ(second.state == whole.state, true);
  }
}

/// By the program that users start, under the saved strategy or any other one.
TEST_F(TrainReplaceTest, AnyRunGoesOnFromThere) {
  const Outcome first =
      train(tiny(),
            training({"--steps=5", "--schedule-steps=8",
                      "--strategy=pp=2,layers=3+2", "--save=" + path("saved")}),
            everyThree({"dp=2,zero=1"}));
  ASSERT_TRUE(first.status.isOk()) << first.status.message();
  std::vector<double> losses;
  for (const char *strategy : {"", "--strategy=pp=2,layers=4+1"}) {
    fs::remove_all(folder_ / "again");
    fs::copy(folder_ / "saved", folder_ / "again", fs::copy_options::recursive);
    std::vector<std::string> arguments = {"--resume=" + path("again"),
                                          "--steps=8", "--no-progress",
                                          "--metrics=" + path("more")};
    if (*strategy)
      arguments.emplace_back(strategy);
    const Result result = TrainProgram::run(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    const double last = numbers("more", "loss").back();
    if (!losses.empty())
      EXPECT_NEAR(last, losses.back(), 1e-10);
    losses.push_back(last);
    // The number of replacements stays with the run.
    EXPECT_THAT(*readFile(path("again/step-8/state.json")),
                HasSubstr("\"version\": 1"));
  }
}

TEST_F(TrainReplaceTest, FilesNameTheVersionOnceThereIsOne) {
  const std::vector<std::string> arguments =
      training({"--steps=5", "--strategy=dp=2", "--save=" + path("saved"),
                "--trace=" + path("trace")});
  ASSERT_TRUE(train(tiny(), arguments).status.isOk());
  for (const char *file : {"saved/step-5/state.json", "trace"})
    EXPECT_THAT(*readFile(path(file)), testing::Not(HasSubstr("version")));
  fs::remove_all(folder_ / "saved");
  ASSERT_TRUE(
      train(tiny(), arguments, everyThree({"pp=2,layers=3+2"})).status.isOk());
  EXPECT_THAT(*readFile(path("saved/step-5/state.json")),
              HasSubstr("\"version\": 1"));
  auto trace = parseJson(*readFile(path("trace")));
  ASSERT_TRUE(trace.isOk());
  int before = 0, behind = 0;
  for (const JsonValue &event : trace->find("traceEvents")->items) {
    const JsonValue *told = event.find("args");
    if (!told || !told->find("step"))
      continue;
    // The slice of a move begins before the graphs are replaced.
    const bool isBehind =
        *told->findInteger("step") > 3 && event.find("name")->text != "MOVE";
    EXPECT_EQ(told->find("version") != nullptr, isBehind);
    ++(isBehind ? behind : before);
  }
  EXPECT_GT(before, 10);
  EXPECT_GT(behind, 10);
  // One that is not valid cannot be resumed.
  RunState state;
  state.step = 2;
  state.version = 3;
  EXPECT_THAT(RunState::fromJson(state.toJson()).status().message(),
              HasSubstr("no valid \"version\""));
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

TEST_F(TrainReplaceTest, WhatIsRefusedChangesNothing) {
  const std::vector<std::string> arguments =
      training({"--steps=6", "--strategy=dp=2,zero=1"});
  const Outcome stays = train(tiny(), arguments);
  const std::pair<NextStrategy, const char *> refused[] = {
      {{"none", ""}, "none"},
      {{"dp=0", ""}, "dp"},
      {{"tp=2", ""}, "tp=2"},
      {{"dp=4", ""}, "has 4 ranks, but this run has 2"},
      {{"pp=2,layers=3+3", ""}, "layers"},
      {{"", "none: 0-"}, "none"}};
  for (const auto &[next, words] : refused) {
    SCOPED_TRACE(next.strategy + next.ranges);
    const Outcome moves = train(tiny(), arguments, {{3, next}});
    expectSame(moves, stays);
    EXPECT_EQ(moves.version, 0);
    EXPECT_EQ(moves.prefix, moves.prefixBefore);
    EXPECT_THAT(moves.said,
                testing::AllOf(HasSubstr("warning: step 4 goes on with "
                                         "strategy 'dp=2,tp=1,pp=1,zero=1,"
                                         "layers=5': "),
                               HasSubstr(words)));
  }
}

/// The region of plans is too small for the next tensors, unless arenas are larger.
TEST_F(TrainReplaceTest, WhatDoesNotFitIsRefusedWithWhatIsNeeded) {
  TinyOptions large = tiny();
  large.hidden = 400;
  large.blocks = 30;
  const std::vector<std::string> arguments =
      training({"--steps=4", "--strategy=dp=2,zero=1", "--recompute=full",
                "--tokens-per-batch=100"});
  const Outcome stays = train(large, arguments, {}, "", 0);
  const std::pair<int64_t, std::vector<const char *>> refused[] = {
      {0, {"rank 0 needs 6.2 MiB at least", "for parameters and their state"}},
      {8 << 20,
       {"rank 0, on its way to strategy 'dp=2,",
        "for the tensors that there are"}}};
  for (const auto &[arenaBytes, words] : refused) {
    const Outcome moves =
        train(large, arguments, {{3, {"dp=2", ""}}}, "", arenaBytes);
    expectSame(moves, stays);
    EXPECT_EQ(moves.version, 0);
    for (const char *word : words)
      EXPECT_THAT(moves.said, HasSubstr(word));
  }
  EXPECT_EQ(train(large, arguments, {{3, {"dp=2", ""}}}, "", 12 << 20).version,
            1);
}

TEST_F(TrainReplaceTest, LargeArenasCountAsMemory) {
  const Outcome refused = train(tiny(), training({"--steps=1"}), {}, "",
                                /*arenaBytes=*/int64_t{1} << 50);
  EXPECT_EQ(refused.status.code(), StatusCode::ResourceExhausted)
      << refused.status.message();
}

TEST_F(TrainReplaceTest, PlansOfAFolderAreForTheirGraphs) {
  const std::vector<std::string> arguments =
      training({"--steps=6", "--strategy=dp=2"});
  std::vector<std::string> dumping = arguments, reading = arguments;
  dumping.push_back("--dump-plans=" + path("plans"));
  reading.push_back("--plans=" + path("plans"));
  const Outcome stays = train(tiny(), dumping);
  const Outcome moves = train(tiny(), reading, everyThree({"pp=2,layers=3+2"}));
  expectSame(moves, stays);
  EXPECT_THAT(moves.said, HasSubstr("--plans has plans for the graphs that"));
}

} // namespace
