//===- ReplacedTraining.h - Runs whose graphs change ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole runs in this process that go over to other graphs, by --repack or before steps
// that a test names; and what of them is compared with runs that stay.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_TRAIN_REPLACEDTRAINING_H
#define DYNA_TEST_RUNTIME_TRAIN_REPLACEDTRAINING_H

#include "test/runtime/train/TrainProgram.h"

#include "runtime/executor/open/OpenProgram.h"
#include "runtime/train/flags/CommandLine.h"
#include "runtime/train/loop/Trainer.h"
#include "runtime/train/open/OpenSession.h"
#include "runtime/train/plans/PlanMark.h"
#include "test/runtime/executor/TinyModel.h"

#include <map>

namespace dyna::test {

/// By the step, from 0, before which the run goes over.
using Changes = std::map<int64_t, NextStrategy>;

inline Changes everyThree(const std::vector<std::string> &strategies) {
  Changes changes;
  for (size_t i = 0; i < strategies.size(); ++i)
    changes[3 * static_cast<int64_t>(i + 1)] = {strategies[i], ""};
  return changes;
}

class ReplacedTraining : public TrainProgram {
protected:
  void TearDown() override {
    probe = {};
    TrainProgram::TearDown();
  }

  struct Outcome {
    Status status;
    std::vector<double> losses;
    std::vector<std::vector<double>> state; ///< masters, then both moments
    int64_t version = 0;
    std::string graphBefore, graph, prefixBefore, prefix, said;
    std::vector<ReplacementCost> costs;
  };

  /// What runs with --rebalance see instead of the clock.
  static inline Rebalance::Probe probe;

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
      if (ranks.partBytes(p, part) == 0)
        continue; // frozen
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
        runHere(model, arguments, changes, resumed, arenaBytes, outcome);
    outcome.said = testing::internal::GetCapturedStderr();
    outcome.losses = numbers("metrics", "loss");
    return outcome;
  }

  static Status runHere(const TinyOptions &tiny,
                        const std::vector<std::string> &arguments,
                        const Changes &changes, const std::string &resumed,
                        int64_t arenaBytes, Outcome &outcome) {
    const TinyProgram program(tiny);
    DYNA_ASSIGN_OR_RETURN(Model model, openProgram(program.program()));
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
    DYNA_RETURN_IF_ERROR(setMasks(model, options));
    Session session;
    session.arenaBytes = arenaBytes;
    DYNA_RETURN_IF_ERROR(
        setFrozen(model, options, start ? &start->state : nullptr, session));
    DYNA_RETURN_IF_ERROR(openSession(program.program(), model, options, true,
                                     start ? &start->checkpoint : nullptr,
                                     session));
    outcome.graphBefore = session.home().graph->name();
    outcome.prefixBefore = planPrefix(session);

    Trainer trainer(session, nullptr, start ? &*start : nullptr);
    trainer.setProbe(probe);
    if (!changes.empty())
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
  using TrainProgram::expectNear;
  using TrainProgram::expectSame;

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

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_TRAIN_REPLACEDTRAINING_H
