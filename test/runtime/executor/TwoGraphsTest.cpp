//===- TwoGraphsTest.cpp - Several graphs on one machine ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One graph has the masters and trains; others have no more than they are given
// room for. What such a machine refuses; what it runs is in SwitchedStepTest.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/SwitchedSteps.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

/// Those that only evaluate have no masters, gradients and optimizer state.
TEST(TwoGraphsTest, OthersHaveValuesAlone) {
  Steps graphs({"tp=2", "dp=2"}, plan::BF16, {}, Persistent::Values);
  Executor &rank = graphs.team().executor(0);
  EXPECT_GT(rank.seat(0).layout().bytes, 5 * rank.seat(1).layout().bytes);
  EXPECT_EQ(rank.seat(1).partBytes(0, ParameterPart::Master), 0);
  EXPECT_GT(rank.seat(1).partBytes(0, ParameterPart::Copy), 0);
}

/// A plan of one graph, run alone.
plan::Plan planOf(Steps &graphs, int index, const MiniBatch &batch,
                  bool trains) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 24;
  const Planner planner(graphs.graph(index));
  return trains ? *planner.training(batch.lengths(), batch.targets, options)
                : *planner.evaluation(batch.lengths(), batch.targets, options);
}

Status run(Steps &graphs, int index, const plan::Plan &plan,
           const MiniBatch &batch) {
  StepResult result;
  return runPlan(graphs.team(), graphs.graph(index), plan, batch, {}, result);
}

TEST(TwoGraphsTest, PlansOfOtherGraphsAreRefused) {
  Steps graphs({"tp=2", "dp=2"}, plan::F64);
  MiniBatch batch = tinyBatch({5, 9}, 1);
  plan::Plan plan = planOf(graphs, 1, batch, false);
  EXPECT_OK(run(graphs, 1, plan, batch));
  plan.graph = "dp=1,tp=1,pp=2,layers=2+3";
  EXPECT_THAT(run(graphs, 1, plan, batch).message(),
              HasSubstr("made for strategy 'dp=1,tp=1,pp=2,layers=2+3', but"));
  // And one that says the wrong one of two is no plan of it.
  Steps again({"tp=2", "dp=2"}, plan::F64);
  plan = planOf(again, 1, batch, false);
  plan.graph = again.graph(0).name();
  EXPECT_FALSE(run(again, 0, plan, batch).isOk());
}

/// A graph without masters or gradients refuses plans that need them, before
/// anything runs.
TEST(TwoGraphsTest, PlansThatNeedMoreThanValuesAreRefused) {
  MiniBatch batch = tinyBatch({5, 9}, 1);
  for (const char *other : {"tp=2", "dp=2,tp=1,zero=1", "pp=2,layers=2+3"}) {
    SCOPED_TRACE(other);
    for (Persistent persistent : {Persistent::Values, Persistent::Masters}) {
      Steps graphs({other, "dp=2"}, plan::BF16, {}, persistent);
      // It has a place for them beside home alone.
      EXPECT_THAT(
          run(graphs, 0, planOf(graphs, 0, batch, false), batch).message(),
          HasSubstr("is not home: the last phase of a step"));
      bool hasMasters = persistent == Persistent::Masters;
      EXPECT_THAT(
          run(graphs, 0, planOf(graphs, 0, batch, true), batch).message(),
          testing::AllOf(HasSubstr("which needs gradients"),
                         HasSubstr("'" + graphs.graph(0).name() + "'"),
                         HasSubstr(hasMasters ? "no more than masters"
                                              : "no more than the "
                                                "values"),
                         HasSubstr("run it on a graph that has them")));
    }
    Steps graphs({other, "dp=2"}, plan::BF16, {}, Persistent::Values);
    const plan::Plan cast = *Planner(graphs.graph(0)).cast();
    EXPECT_THAT(run(graphs, 0, cast, MiniBatch()).message(),
                HasSubstr("CAST_PARAMS layer 0, which needs masters"));
    Steps with({other, "dp=2"}, plan::BF16, {}, Persistent::Masters);
    EXPECT_THAT(
        run(with, 0, *Planner(with.graph(0)).cast(), MiniBatch()).message(),
        HasSubstr("is not home: the last phase of a step"));
  }
}

/// Graphs of other numbers of ranks, or two that plans cannot tell apart.
TEST(TwoGraphsTest, GraphsThatDoNotGoTogetherAreRefused) {
  TinyProgram program(tinyOptions(plan::F64));
  Model model = *openProgram(program.program());
  auto messageOf = [&](const char *home, const char *other) {
    auto a = *ExecutableGraph::create(model, *parseStrategy(home));
    auto b = *ExecutableGraph::create(model, *parseStrategy(other));
    return threadTeam(program, {{&a}, {&b, Persistent::Values}})
        .status()
        .message();
  };
  EXPECT_THAT(messageOf("dp=2", "dp=1"),
              HasSubstr("strategy 'dp=1,tp=1,pp=1,layers=5' needs 1 ranks, but "
                        "there are 2"));
  EXPECT_THAT(messageOf("dp=2", "dp=4"), HasSubstr("needs 4 ranks, but"));
  EXPECT_THAT(messageOf("dp=1", "dp=2"),
              HasSubstr("needs 2 ranks, but there are 1"));
  EXPECT_THAT(messageOf("tp=2", "tp=2"), HasSubstr("is given twice"));
  EXPECT_EQ(messageOf("tp=2", "tp=2,sp=1"), "");
}

} // namespace
