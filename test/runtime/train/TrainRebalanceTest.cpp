//===- TrainRebalanceTest.cpp - Runs with --rebalance ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tests say what steps have taken (Rebalance::Probe), so that no clock decides what a
// run does. The last tests have the clock: whatever it says, numbers are the same.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/train/ReplacedTraining.h"

#include <cmath>
#include <numeric>

using namespace dyna;
using namespace dyna::test;
using testing::AllOf;
using testing::Not;

namespace {

class TrainRebalanceTest : public ReplacedTraining {
protected:
  /// Layers that take so many seconds, from some step on.
  using Loads = std::map<int64_t, std::vector<double>>;

  /// Steps take `seconds`, by the step from which they do, and moves are cheap. Cuts are
  /// weighed by the formula, for which all micro-batches are alike.
  static void say(const Loads &loads,
                  const std::map<int64_t, double> &seconds = {{0, 1}},
                  double priceSeconds = 1e-3) {
    probe.price = MovePrice{priceSeconds, 0, 0, 1e-12};
    probe.load = [loads, seconds](int64_t step, StepLoad &load) {
      load.layers = std::prev(loads.upper_bound(step))->second;
      load.seconds = std::prev(seconds.upper_bound(step))->second *
                     static_cast<double>(load.tokens);
      load.waits.assign(2, 0);
      load.work.clear();
    };
  }

  /// Does the same, and steps are simulated with the micro-batches that ran.
  static void saySimulated(const Loads &loads) {
    say(loads);
    probe.load = [loads, said = probe.load](int64_t step, StepLoad &load) {
      const std::vector<plan::MicroBatch> work = load.work;
      said(step, load);
      load.work = work;
    };
  }

  std::vector<std::string> staying(std::vector<std::string> more) const {
    std::vector<std::string> arguments =
        training({"--clip=0", "--micro-batches=tokens", "--pipeline=1f1b"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  /// Without more memory than the run takes for itself.
  Outcome rebalance(const TinyOptions &model,
                    std::vector<std::string> arguments,
                    const std::string &words = "time,every=3",
                    const std::string &resumed = "") {
    arguments.push_back("--rebalance=" + words);
    return train(model, std::move(arguments), {}, resumed, /*arenaBytes=*/0);
  }
};

TEST_F(TrainRebalanceTest, LayersMoveAndNumbersStay) {
  const std::vector<std::string> arguments =
      staying({"--steps=16", "--strategy=pp=2,layers=1+4"});
  // Layers are alike; then the first one becomes slow.
  say({{0, {1, 1, 1, 1, 1}}, {8, {9, 1, 1, 1, 1}}});
  const Outcome moves = rebalance(tiny(), arguments);
  fs::copy(path("metrics"), path("metrics.moves"));
  expectSame(moves, train(tiny(), arguments));
  EXPECT_EQ(moves.version, 2);
  EXPECT_EQ(moves.graph, "dp=1,tp=1,pp=2,layers=1+4");
  EXPECT_THAT(
      *readFile(path("metrics.moves")),
      AllOf(HasSubstr("{\"step\": 3, \"move\": {\"from\": \"dp=1,tp=1,pp=2,"
                      "layers=1+4\", \"to\": \"dp=1,tp=1,pp=2,layers=2+3\", "
                      "\"version\": 1, "),
            HasSubstr("\"rebalance\": {\"answer\": \"move\", "
                      "\"stage_loads_now\": [1, 4], "),
            HasSubstr("\"layer_seconds\": [")));
  EXPECT_THAT(moves.said,
              AllOf(HasSubstr("note: --rebalance: move: 1+4 -> 2+3, step "),
                    HasSubstr("earned back in 1 steps")));
}

/// Frozen parameters move with their layers, although no layer updates them.
TEST_F(TrainRebalanceTest, FrozenLayersMove) {
  TinyOptions model = tiny();
  model.frozen = {"wte"};
  for (int block = 0; block < 3; ++block)
    for (const char *slot : {".w1", ".b1"})
      model.frozen.push_back("h." + std::to_string(block) + slot);
  const std::vector<std::string> arguments =
      staying({"--steps=8", "--strategy=pp=2,layers=1+4"});
  say({{0, {1, 1, 1, 1, 1}}});
  const Outcome stays = train(model, arguments);
  // The table of tokens counts in the embedding and in the head.
  for (auto [policy, cut] : {std::pair("time", "layers=2+3"),
                             {"diffusion", "layers=2+3"},
                             {"parameters", "layers=3+2"}}) {
    const Outcome moves =
        rebalance(model, arguments, std::string(policy) + ",every=3");
    expectSame(moves, stays);
    EXPECT_EQ(moves.version, 1) << policy << moves.said;
    EXPECT_THAT(moves.graph, HasSubstr(cut));
  }
}

/// A move is in the trace, with the step behind it, however few steps are traced. So is
/// what it has brought in the metrics.
TEST_F(TrainRebalanceTest, MovesAreTracedAndReported) {
  say({{0, {1, 1, 1, 1, 1}}}, {{0, 1}, {4, 0.75}});
  const Outcome moves = rebalance(
      tiny(), staying({"--steps=12", "--strategy=pp=2,layers=1+4",
                       "--trace=" + path("trace"), "--trace-steps=1"}));
  ASSERT_TRUE(moves.status.isOk()) << moves.status.message();
  ASSERT_EQ(moves.version, 1);
  const std::string trace = *readFile(path("trace"));
  auto count = [&](const std::string &words) {
    int times = 0;
    for (size_t at = 0; (at = trace.find(words, at)) != std::string::npos; ++at)
      ++times;
    return times;
  };
  EXPECT_EQ(count("\"name\": \"MOVE\""), 2) << "one for each rank";
  EXPECT_GT(count("\"step\": 1,"), 0);
  EXPECT_EQ(count("\"step\": 2,"), 0);
  EXPECT_GT(count("\"step\": 4,"), 2);
  EXPECT_EQ(count("\"step\": 5,"), 0);
  EXPECT_THAT(*readFile(path("metrics")),
              AllOf(HasSubstr("\"stage_loads_now\": [1, 4], "
                              "\"stage_loads_then\": [2, 3], "),
                    HasSubstr("{\"step\": 7, \"moved\": {\"version\": 1, "
                              "\"seconds_per_token_before\": 1, "
                              "\"seconds_per_token_after\": 0.75, "
                              "\"stage_loads\": [2, 3]}}")));
}

/// Each policy has its own cut of the same model.
TEST_F(TrainRebalanceTest, PoliciesBalanceByTheirOwnLoads) {
  const std::vector<std::string> arguments =
      staying({"--steps=8", "--strategy=pp=2,layers=1+4"});
  say({{0, {1, 1, 1, 1, 4}}});
  const std::pair<const char *, const char *> cases[] = {
      {"time", "layers=4+1"},
      {"diffusion", "layers=4+1"},
      // Embedding and head have 1,542 weights in common, and a block 65.
      {"parameters", "layers=3+2"}};
  for (const auto &[policy, cut] : cases) {
    SCOPED_TRACE(policy);
    const Outcome moves =
        rebalance(tiny(), arguments, std::string(policy) + ",every=2");
    EXPECT_TRUE(moves.status.isOk()) << moves.status.message();
    EXPECT_THAT(moves.graph, HasSubstr(cut));
  }
  // It moves as well, if steps become faster by that.
  say({{0, {9, 1, 1, 1, 1}}});
  const Outcome back =
      rebalance(tiny(), staying({"--steps=8", "--strategy=pp=2,layers=4+1"}),
                "parameters,every=2");
  EXPECT_THAT(back.graph, HasSubstr("layers=3+2"));
}

/// Pruned weights are no parameters any more, wherever the masks lie. A dense model of the
/// same layers has an even cut already.
TEST_F(TrainRebalanceTest, ParametersAreThoseThatSurvive) {
  TinyOptions model = tiny();
  model.hidden = 500;
  model.blocks = 4;
  say({{0, {1, 1, 1, 1, 5, 1}}});
  for (const char *strategy : {"", "dp=2,zero=1,"}) {
    auto with = [&](std::vector<std::string> more) {
      more.insert(more.end(), {"--steps=8", std::string("--strategy=") +
                                                strategy + "pp=2,layers=3+3"});
      return rebalance(model, staying(more), "parameters,every=3");
    };
    EXPECT_EQ(with({}).version, 0);
    const Outcome pruned =
        with({"--prune=final=0.9,from=1,params=h.0.*+h.1.*"});
    EXPECT_EQ(pruned.version, 1) << pruned.said;
    EXPECT_THAT(pruned.graph, HasSubstr("layers=4+2"));
  }
}

/// Micro-batches of a step differ, so that a step takes other seconds than by the formula
/// for equal ones.
TEST_F(TrainRebalanceTest, StepsAreSimulated) {
  saySimulated({{0, {1, 1, 1, 1, 1}}});
  const Outcome moves =
      rebalance(tiny(), staying({"--steps=4", "--strategy=pp=2,layers=1+4"}));
  ASSERT_EQ(moves.version, 1) << moves.said;
  const std::string text = *readFile(path("metrics"));
  const std::string key = "\"step_seconds_now\": ";
  const size_t at = text.find(key);
  ASSERT_NE(at, std::string::npos);
  const double seconds = std::stod(text.substr(at + key.size()));
  const std::string counted = "\"micro_batches\": ";
  const double count =
      std::stod(text.substr(text.rfind(counted, at) + counted.size()));
  EXPECT_GE(seconds, 4 * count);
  EXPECT_LE(seconds, 5 * count);
  EXPECT_GT(std::abs(seconds - (5 + 4 * (count - 1))), 1e-3);
}

TEST_F(TrainRebalanceTest, ReplicasShardsAndOwnersMoveToo) {
  for (const char *strategy : {"dp=2,pp=2,layers=1+4", "tp=2,pp=2,layers=4+1",
                               "dp=2,pp=2,zero=1,layers=4+1"}) {
    SCOPED_TRACE(strategy);
    // A tie inside of a stage adds up gradients in another order.
    TinyOptions model = wide();
    model.nestedTie = false;
    const std::vector<std::string> arguments =
        staying({"--steps=9", std::string("--strategy=") + strategy});
    saySimulated({{0, {1, 1, 1, 1, 1}}});
    const Outcome moves = rebalance(model, arguments);
    expectSame(moves, train(model, arguments));
    EXPECT_EQ(moves.version, 1);
    EXPECT_THAT(moves.graph, testing::ContainsRegex("layers=(2.3|3.2)"));
  }
}

/// A move that makes steps slower is taken back, and then nothing moves until the model
/// changes.
TEST_F(TrainRebalanceTest, SlowerStepsGoBack) {
  const std::vector<std::string> arguments =
      staying({"--steps=30", "--strategy=pp=2,layers=1+4"});
  say({{0, {1, 1, 1, 1, 1}}}, {{0, 1}, {3, 1.5}});
  const Outcome moves = rebalance(tiny(), arguments);
  expectSame(moves, train(tiny(), arguments));
  EXPECT_EQ(moves.version, 2);
  EXPECT_EQ(moves.graph, "dp=1,tp=1,pp=2,layers=1+4");
  EXPECT_THAT(moves.said, HasSubstr("note: --rebalance: go back: steps became "
                                    "50.0 % slower; 2+3 -> 1+4"));
}

TEST_F(TrainRebalanceTest, MovesThatDoNotPayAreLeftOut) {
  const std::vector<std::string> arguments =
      staying({"--steps=12", "--strategy=pp=2,layers=1+4"});
  // Four micro-batches: 4 s less in each of 9 steps, at most.
  say({{0, {1, 1, 1, 1, 1}}}, {{0, 1}}, /*priceSeconds=*/1e3);
  EXPECT_EQ(rebalance(tiny(), arguments).version, 0);
  EXPECT_EQ(rebalance(tiny(), arguments, "time,every=3,margin=-1").version, 1);
  say({{0, {1, 1, 1, 1, 1}}});
  EXPECT_EQ(rebalance(tiny(), arguments, "time,every=3,least=0.9").version, 0);
  EXPECT_EQ(rebalance(tiny(), arguments, "time,every=12").version, 0);
  // Even stages stay.
  say({{0, {4, 1, 1, 1, 1}}});
  EXPECT_EQ(rebalance(tiny(), arguments).version, 0);
}

/// Steps until weights are pruned are too few. Behind that, times are measured anew.
TEST_F(TrainRebalanceTest, PruningBeginsANewMeasurement) {
  const std::vector<std::string> arguments =
      staying({"--steps=14", "--strategy=pp=2,layers=1+4",
               "--prune=final=0.5,from=5,until=8,every=3"});
  // Three micro-batches save 2 s in a step, so a move pays in 5 steps and not in 2.
  say({{0, {1, 1, 1, 1, 1}}}, {{0, 1}}, /*priceSeconds=*/7);

  const Outcome moves = rebalance(tiny(), arguments, "time,every=2,margin=0");
  fs::copy(path("metrics"), path("metrics.moves"));
  expectSame(moves, train(tiny(), arguments));
  EXPECT_EQ(moves.version, 1);
  EXPECT_THAT(*readFile(path("metrics.moves")),
              HasSubstr("{\"step\": 9, \"move\": "));
}

/// Other ranks have other stages: these are balanced again.
TEST_F(TrainRebalanceTest, GoesOnBehindRepacking) {
  const std::vector<std::string> arguments =
      staying({"--steps=16", "--strategy=pp=2,layers=1+4",
               "--repack=pp=2,layers=4+1@7; 1@12"});
  say({{0, {1, 1, 1, 1, 1}}});
  const Outcome moves = rebalance(tiny(), arguments);
  expectSame(moves, train(tiny(), arguments));
  EXPECT_EQ(moves.version, 4);
  EXPECT_EQ(moves.graph, "dp=1,tp=1,pp=1,layers=5");
}

/// The price of the first move has it: pages for another cut are new.
TEST_F(TrainRebalanceTest, NewMemoryTakesTime) {
  const TinyProgram program(tiny());
  auto model = openProgram(program.program());
  ASSERT_TRUE(model.isOk());
  TrainOptions options;
  ASSERT_TRUE(parseCommandLine(training({"--strategy=pp=2"}), options).isOk());
  ASSERT_TRUE(resolveOptions(options).isOk());
  Session session;
  session.arenaBytes = 4 << 20;
  ASSERT_TRUE(openSession(program.program(), *model, options,
                          /*training=*/true, nullptr, session)
                  .isOk());
  const auto seconds = session.ranks->timeNewMemory(1 << 20);
  ASSERT_TRUE(seconds.isOk()) << seconds.status().message();
  EXPECT_GT(*seconds, 0);
}

/// A run that went to one stage has nothing to balance there, and goes on.
TEST_F(TrainRebalanceTest, ResumesOnOneStage) {
  const std::vector<std::string> arguments = training(
      {"--steps=4", "--schedule-steps=6", "--warmup=2", "--strategy=pp=2",
       "--rebalance=time,every=1", "--repack=1@2", "--save=" + path("one")});
  Result result = run(arguments);
  ASSERT_EQ(result.code, 0) << result.err;
  result = run({"--resume=" + path("one"), "--steps=6", "--no-progress"});
  EXPECT_EQ(result.code, 0) << result.err;
}

/// A checkpoint has the cut of its step. A resumed run may decide otherwise from then on.
TEST_F(TrainRebalanceTest, ResumesWithTheCutOfItsMoment) {
  auto saving = [&](const char *folder) {
    return staying({"--steps=9", "--strategy=pp=2,layers=1+4", "--save-every=1",
                    "--keep=20", std::string("--save=") + path(folder)});
  };
  say({{0, {1, 1, 1, 1, 1}}});
  const Outcome whole = rebalance(tiny(), saving("whole"));
  ASSERT_TRUE(whole.status.isOk()) << whole.status.message();
  ASSERT_EQ(whole.version, 1);
  for (const int64_t step : {2, 3, 7}) {
    SCOPED_TRACE(step);
    const std::string from = "whole/step-" + std::to_string(step);
    // Behind it layers are alike, or the first one is slow.
    for (double first : {1.0, 9.0}) {
      say({{0, {first, 1, 1, 1, 1}}});
      const Outcome rest = train(
          tiny(), {"--save=" + path("rest"), "--no-progress", "--threads=1"},
          {}, path(from), /*arenaBytes=*/0);
      ASSERT_TRUE(rest.status.isOk()) << rest.status.message();
      EXPECT_THAT(rest.graphBefore,
                  HasSubstr(step < 3 ? "layers=1+4" : "layers=2+3"));

      TrainProgram::expectSame("whole/step-9", "rest/step-9");
      fs::remove_all(path("rest"));
    }
  }
}

/// Killed at any moment, many of them in a move: the steps since the last save are lost,
/// and nothing else.
TEST_F(TrainRebalanceTest, KilledRunsLoseTheStepsSinceTheLastSave) {
  const std::vector<std::string> common = {"--save=" + path("parts"),
                                           "--no-progress", "--threads=1"};
  auto saving = [&](const char *folder) {
    return staying({"--steps=40", "--strategy=pp=2,layers=1+4",
                    "--save-every=1", "--rebalance=time,every=1",
                    std::string("--save=") + path(folder)});
  };
  // The slow layer changes with every move: each two steps the next one.
  Loads loads;
  for (int64_t step = 0; step < 40; step += 2)
    loads[step] = step % 4 ? std::vector<double>{9, 1, 1, 1, 1}
                           : std::vector<double>{1, 1, 1, 1, 9};
  say(loads);
  const Outcome whole = train(tiny(), saving("whole"), {}, "", 0);
  ASSERT_TRUE(whole.status.isOk()) << whole.status.message();
  ASSERT_GT(whole.version, 10);
  auto go = [&](const std::string &resumed) {
    const pid_t child = fork();
    if (child == 0) {
      const Outcome rest = resumed.empty()
                               ? train(tiny(), saving("parts"), {}, "", 0)
                               : train(tiny(), common, {}, resumed, 0);
      std::ofstream(path("said")) << rest.said << rest.status.message();
      _exit(rest.status.isOk() ? 0 : 1);
    }
    return child;
  };
  pid_t child = go("");
  for (int kills = 0; kills < 5; ++kills) {
    const int64_t wanted = 6 * kills + 3;
    ASSERT_TRUE(waitForSave(child, "parts", wanted)) << *readFile(path("said"));
    usleep(700 * kills);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    child = go(path("parts"));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  TrainProgram::expectSame("whole/step-40", "parts/step-40");
}

/// With limited arenas, an even cut that has no room is not taken, or is refused. The
/// run goes on in any case.
TEST_F(TrainRebalanceTest, CutsWithoutRoomAreLeftOut) {
  TinyOptions large = tiny();
  large.hidden = 400;
  large.blocks = 30;
  say({{0, std::vector<double>(32, 1)}});
  auto with = [&](const std::string &memory) {
    return rebalance(
        large,
        staying({"--steps=5", "--strategy=pp=2,layers=6+26", "--recompute=full",
                 "--tokens-per-batch=400", "--rank-memory=" + memory}));
  };
  const Outcome fits = with("16MiB");
  EXPECT_TRUE(fits.status.isOk()) << fits.status.message();
  EXPECT_THAT(fits.graph, HasSubstr("layers=16+16")) << fits.said;
  const Outcome less = with("6500KiB");
  EXPECT_TRUE(less.status.isOk()) << less.status.message();
  EXPECT_THAT(less.graph, Not(HasSubstr("layers=16+16"))) << less.said;
}

/// Whatever the clock says, numbers are those of a run that stays.
TEST_F(TrainRebalanceTest, AnyDecisionHasTheSameNumbers) {
  auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments =
        staying({"--steps=30", "--strategy=pp=3,layers=1+1+6",
                 "--metrics=" + path("m")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = TrainProgram::run(arguments, {"TINY_BLOCKS=6"});
    EXPECT_EQ(result.code, 0) << result.err;
    return numbers("m", "loss");
  };
  const std::vector<double> stays = run({});
  ASSERT_EQ(stays.size(), 30u);
  EXPECT_EQ(run({"--rebalance=time,every=1,margin=-1,least=0"}), stays);
  EXPECT_EQ(run({"--rebalance=diffusion,every=2"}), stays);
}

TEST_F(TrainRebalanceTest, BadInputIsRefusedBeforeTraining) {
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{"--rebalance=fast"}, "--rebalance: 'fast': begin with one of time"},
      {{"--rebalance=time,every=0"}, "'every=0': give a number of steps"},
      {{"--rebalance=time", "--strategy=dp=2"},
       "--rebalance moves layers between stages, but strategy "
       "'dp=2,tp=1,pp=1,layers=5' has one stage: give a strategy with pp=2"},
      {{"--rebalance=time", "--plans=" + path("corpus")},
       "--rebalance goes over to graphs for which --plans has no plans"},
      {{"--rebalance=time", "--ranges=all: 0-"},
       "--rebalance and --ranges do not go together"},
      {{"--rebalance=time", "--profile=" + path("costs")},
       "there is nothing for --rebalance to do"},
      {{"--rebalance=time", "--evaluate"}, "--evaluate trains no step"}};
  for (const auto &[more, words] : cases) {
    std::vector<std::string> arguments = training({"--steps=6"});
    if (more.back().rfind("--ranges", 0) != 0)
      arguments.emplace_back("--strategy=pp=2");
    if (more.back().rfind("--profile", 0) == 0)
      arguments.erase(arguments.begin());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << words;
    EXPECT_THAT(result.err, HasSubstr(words));
  }
}

} // namespace
