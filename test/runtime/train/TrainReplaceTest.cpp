//===- TrainReplaceTest.cpp - Runs whose graphs change --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole runs in this process that go over to another cut, strategy or number of ranks
// every three steps, beside runs that stay: losses, parameters, moments, checkpoints.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/train/TrainProgram.h"

#include "runtime/executor/OpenProgram.h"
#include "runtime/train/flags/CommandLine.h"
#include "runtime/train/loop/Trainer.h"
#include "runtime/train/open/OpenSession.h"
#include "runtime/train/plans/PlanMark.h"
#include "test/runtime/executor/TinyModel.h"

#include <map>

using namespace dyna;
using namespace dyna::test;

namespace {

/// By the step, from 0, before which the run goes over.
using Changes = std::map<int64_t, NextStrategy>;

Changes everyThree(const std::vector<std::string> &strategies) {
  Changes changes;
  for (size_t i = 0; i < strategies.size(); ++i)
    changes[3 * static_cast<int64_t>(i + 1)] = {strategies[i], ""};
  return changes;
}

class TrainReplaceTest : public TrainProgram {
protected:
  struct Outcome {
    Status status;
    std::vector<double> losses;
    std::vector<std::vector<double>> state; ///< masters, then both moments
    int64_t version = 0;
    std::string graph, prefixBefore, prefix, said;
    std::vector<ReplacementCost> costs;
  };

  TinyOptions tiny(plan::ElementType compute = plan::F64) const {
    TinyOptions options;
    options.vocabulary = 257;
    options.compute = compute;
    return options;
  }
  /// With tensor degrees, and a tie inside of the one of embedding and head.
  TinyOptions wide() const {
    TinyOptions options = tiny();
    options.hidden = 12;
    options.degrees = {{2, false}, {4, false}};
    options.nestedTie = true;
    return options;
  }

  static std::vector<double> readAll(RankTeam &ranks, ParameterPart part) {
    std::vector<double> all;
    const Model &model = ranks.model();
    for (int p = 0; p < model.parameters(); ++p) {
      const RowRange rows = {0, model.rows(p)};
      std::vector<double> values(model.elements(p));
      std::vector<float> narrow(model.elements(p));
      const bool isWide = model.masterType() == plan::F64;
      EXPECT_TRUE(ranks
                      .readRows(p, part, rows,
                                isWide ? static_cast<void *>(values.data())
                                       : narrow.data())
                      .isOk());
      if (!isWide)
        values.assign(narrow.begin(), narrow.end());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  /// Runs in this process. With `resumed`, the folder of a checkpoint, its arguments
  /// come first.
  Outcome train(const TinyOptions &model, std::vector<std::string> arguments,
                const Changes &changes = {}, const std::string &resumed = "",
                int64_t arenaBytes = 4 << 20) {
    Outcome outcome;
    fs::remove(path("metrics"));
    arguments.push_back("--metrics=" + path("metrics"));
    testing::internal::CaptureStderr();
    outcome.status =
        run(model, arguments, changes, resumed, arenaBytes, outcome);
    outcome.said = testing::internal::GetCapturedStderr();
    outcome.losses = numbers("metrics", "loss");
    return outcome;
  }

  static Status run(const TinyOptions &tiny,
                    const std::vector<std::string> &arguments,
                    const Changes &changes, const std::string &resumed,
                    int64_t arenaBytes, Outcome &outcome) {
    const TinyProgram program(tiny);
    DYNA_ASSIGN_OR_RETURN(const Model model, openProgram(program.program()));
    TrainOptions options;
    std::optional<ResumedRun> start;
    if (!resumed.empty()) {
      DYNA_ASSIGN_OR_RETURN(Checkpoint checkpoint, loadCheckpoint(resumed));
      DYNA_ASSIGN_OR_RETURN(RunState state,
                            RunState::fromJson(checkpoint.state));
      DYNA_RETURN_IF_ERROR(parseStoredArguments(state.arguments, options));
      options.given.clear();
      start = ResumedRun{std::move(checkpoint), std::move(state), {}};
    }
    DYNA_RETURN_IF_ERROR(parseCommandLine(arguments, options));
    DYNA_RETURN_IF_ERROR(resolveOptions(options));
    Session session;
    session.arenaBytes = arenaBytes;
    DYNA_RETURN_IF_ERROR(openSession(program.program(), model, options, true,
                                     start ? &start->checkpoint : nullptr,
                                     session));
    outcome.prefixBefore = planPrefix(session);
    Trainer trainer(session, nullptr, start ? &*start : nullptr);
    trainer.setNext([&](int64_t step) -> std::optional<NextStrategy> {
      auto found = changes.find(step);
      if (found == changes.end())
        return std::nullopt;
      return found->second;
    });
    DYNA_RETURN_IF_ERROR(trainer.run());
    for (ParameterPart part :
         {ParameterPart::Master, ParameterPart::FirstMoment,
          ParameterPart::SecondMoment})
      outcome.state.push_back(readAll(*session.ranks, part));
    outcome.version = session.version;
    EXPECT_EQ(session.version, session.ranks->version());
    outcome.graph = session.home().graph->name();
    outcome.prefix = planPrefix(session);
    return trainer.endFiles();
  }

  static void expectSame(const Outcome &a, const Outcome &b) {
    EXPECT_TRUE(a.status.isOk()) << a.status.message();
    EXPECT_TRUE(b.status.isOk()) << b.status.message();
    EXPECT_GT(a.losses.size(), 0u);
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.state == b.state, true);
  }
  using TrainProgram::expectSame;

  static void expectNear(const std::vector<double> &a,
                         const std::vector<double> &b) {
    ASSERT_EQ(a.size(), b.size());
    double most = 0, scale = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      most = std::max(most, std::abs(a[i] - b[i]));
      scale = std::max(scale, std::abs(a[i]));
    }
    EXPECT_LE(most, 1e-10 * scale);
  }
  static void expectNear(const Outcome &a, const Outcome &b) {
    EXPECT_TRUE(a.status.isOk()) << a.status.message();
    EXPECT_TRUE(b.status.isOk()) << b.status.message();
    EXPECT_GT(a.losses.size(), 0u);
    expectNear(a.losses, b.losses);
    ASSERT_EQ(a.state.size(), b.state.size());
    for (size_t part = 0; part < a.state.size(); ++part)
      expectNear(a.state[part], b.state[part]);
  }
};

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
    const bool isBehind = *told->findInteger("step") > 3;
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
