//===- TwoGraphsTest.cpp - Several graphs on one machine ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One graph has the masters and trains; others have no more than what layer
// functions read, brought to them, and evaluate in turn in the same process.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/RankTeam.h"
#include "runtime/planner/Planner.h"
#include "runtime/transport/threads/ThreadTransport.h"
#include "test/runtime/executor/TinyRun.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

constexpr int64_t enough = 1 << 20;

TinyOptions tinyOptions(plan::ElementType compute) {
  TinyOptions options;
  options.compute = compute;
  options.hidden = 12;
  options.nestedTie = true;
  options.degrees = {{2, false}, {2, true}, {3, false}, {4, true}};
  return options;
}

/// Ranks as threads, which have all of the graphs.
StatusOr<std::unique_ptr<RankTeam>> teamOf(const TinyProgram &program,
                                           const std::vector<GraphUse> &uses) {
  int ranks = uses.front().graph->ranks();
  auto transports = makeThreadTransports(ranks);
  std::vector<RankResources> resources(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    resources[rank].rank = rank;
    resources[rank].device = std::move(*HostDevice::create(1));
    resources[rank].dynamicBytes = enough;
    if (ranks > 1)
      resources[rank].transport = std::move(transports[rank]);
  }
  ExecutorOptions options;
  options.seed = 7;
  options.checkMemory = true;
  return RankTeam::create(uses, **chooseVariant(program.program(), "", 0),
                          std::move(resources), options);
}

/// Graphs of one program and ranks, as threads, that have all of them.
class Graphs {
public:
  Graphs(const std::vector<const char *> &strategies,
         plan::ElementType compute = plan::F64,
         Persistent others = Persistent::Values)
      : program_(tinyOptions(compute)),
        model_(*openProgram(program_.program())) {
    std::vector<GraphUse> uses;
    for (const char *text : strategies)
      planners_.push_back(std::make_unique<Planner>(
          *ExecutableGraph::create(model_, *parseStrategy(text))));
    for (const auto &planner : planners_)
      uses.push_back(
          {&planner->graph(), uses.empty() ? Persistent::Training : others});
    auto team = teamOf(program_, uses);
    EXPECT_TRUE(team.isOk()) << team.status().message();
    team_ = std::move(*team);
    writeMasters();
  }

  void writeMasters() {
    for (int p = 0; p < model_.parameters(); ++p) {
      std::vector<double> values(model_.elements(p));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 0.02 * std::sin(static_cast<double>(13 * p + i + 1));
      std::vector<float> narrow(values.begin(), values.end());
      EXPECT_OK(team_->writePart(p, ParameterPart::Master,
                                 model_.masterType() == plan::F64
                                     ? static_cast<void *>(values.data())
                                     : narrow.data()));
    }
    StepResult result;
    EXPECT_OK(run(0, *planners_[0]->cast(), MiniBatch(), {}, result));
  }

  StatusOr<plan::Plan> plan(size_t index, const MiniBatch &batch, bool trains) {
    PlanOptions options;
    options.maxTokensPerMicroBatch = 24;
    return trains ? planners_[index]->training(batch.lengths(), batch.targets,
                                               options)
                  : planners_[index]->evaluation(batch.lengths(), batch.targets,
                                                 options);
  }

  plan::Plan cast(size_t index) { return *planners_[index]->cast(); }

  double run(size_t index, const MiniBatch &batch, int64_t step,
             bool trains = false) {
    StepResult result;
    auto made = plan(index, batch, trains);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    EXPECT_OK(run(index, *made, batch, TinyRun::scalars(step, 1.0), result));
    return result.lossSum;
  }

  /// A plan proven for that graph.
  Status run(size_t index, const plan::Plan &plan, const MiniBatch &batch,
             const StepScalars &scalars, StepResult &result) {
    return runPlan(*team_, graph(index), plan, batch, scalars, result);
  }

  const ExecutableGraph &graph(size_t index) {
    return planners_[index]->graph();
  }
  RankTeam &team() { return *team_; }
  const Model &model() const { return model_; }

private:
  TinyProgram program_;
  Model model_;
  std::vector<std::unique_ptr<Planner>> planners_;
  std::unique_ptr<RankTeam> team_;
};

/// Home first. Every one of them lays parameters out otherwise.
const std::vector<std::vector<const char *>> sets = {
    {"dp=2", "pp=2,layers=2+3", "tp=2", "tp=2,sp=1"},
    {"dp=2,zero=1", "tp=2,sp=1", "pp=2,layers=4+1"},
    {"tp=2,sp=1", "dp=2", "pp=2,layers=1+4"},
    {"dp=2,tp=2,zero=1", "tp=4,sp=1", "pp=4,layers=1+1+2+1",
     "tp=2,pp=2,layers=3+2,order=tp+pp+dp", "dp=4"},
    {"pp=2,dp=2,zero=1,layers=2+3,order=pp+dp+tp", "tp=4,sp=1", "dp=4",
     "dp=2,tp=2,order=tp+dp+pp"},
    {"dp=2,tp=2", "dp=2,tp=2,order=tp+dp+pp"},
    {"dp=3,zero=1", "tp=3", "pp=3,layers=1+3+1"},
};

/// What one rank sees of the same steps: losses of training and evaluation.
std::vector<double> alone(plan::ElementType compute) {
  Graphs one({"dp=1"}, compute);
  std::vector<double> losses;
  for (int64_t step = 0; step < 3; ++step) {
    MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12, 1, 8}, step + 1);
    losses.push_back(one.run(0, batch, step));
    one.run(0, batch, step, true);
  }
  return losses;
}

TEST(TwoGraphsTest, EvaluateInTurnOverOneSetOfMasters) {
  for (plan::ElementType compute : {plan::F64, plan::BF16}) {
    std::vector<double> expected = alone(compute);
    // bf16: sums of f32 in another order, amplified by the steps between.
    double relative = compute == plan::F64 ? 1e-10 : 2e-2;
    for (const auto &strategies : sets) {
      SCOPED_TRACE(strategies[0]);
      Graphs graphs(strategies, compute);
      for (int64_t step = 0; step < 3; ++step) {
        MiniBatch batch = tinyBatch({5, 1, 17, 9, 3, 12, 1, 8}, step + 1);
        for (size_t to = 1; to < strategies.size(); ++to)
          ASSERT_TRUE(graphs.team().moveValues(0, to).isOk());
        // In turn, twice: none disturbs another.
        for (int round = 0; round < 2; ++round)
          for (size_t index = 0; index < strategies.size(); ++index)
            EXPECT_NEAR(graphs.run(index, batch, step), expected[step],
                        relative * expected[step])
                << strategies[index] << " step " << step;
        graphs.run(0, batch, step, true);
      }
    }
  }
}

/// Or the test above would say nothing.
TEST(TwoGraphsTest, WithoutAMoveTheyLagBehind) {
  Graphs graphs({"dp=2", "tp=2"});
  MiniBatch batch = tinyBatch({5, 9}, 1);
  ASSERT_TRUE(graphs.team().moveValues(0, 1).isOk());
  double before = graphs.run(1, batch, 0);
  graphs.run(0, batch, 0, true);
  EXPECT_EQ(graphs.run(1, batch, 1), before);
  ASSERT_TRUE(graphs.team().moveValues(0, 1).isOk());
  EXPECT_NE(graphs.run(1, batch, 1), before);
}

/// From graph to graph and back home by another way: the same bits.
TEST(TwoGraphsTest, ValuesComeBackAsTheyWent) {
  for (plan::ElementType compute : {plan::F64, plan::BF16}) {
    Graphs graphs({"dp=2,tp=2", "pp=4,layers=1+1+2+1", "tp=4,sp=1"}, compute);
    std::vector<std::vector<unsigned char>> before;
    auto read = [&](int p) {
      ParameterPart part = valuePart(graphs.model(), p);
      std::vector<unsigned char> bytes(graphs.team().partBytes(p, part));
      EXPECT_OK(graphs.team().readPart(p, part, bytes.data()));
      return bytes;
    };
    for (int p = 0; p < graphs.model().parameters(); ++p)
      before.push_back(read(p));
    for (auto [from, to] : {std::pair(0, 1), {1, 2}, {2, 0}})
      ASSERT_TRUE(graphs.team().moveValues(from, to).isOk());
    for (int p = 0; p < graphs.model().parameters(); ++p)
      EXPECT_EQ(read(p), before[p]) << p;
  }
}

/// Those that only evaluate have no masters, gradients and optimizer state.
TEST(TwoGraphsTest, OthersHaveValuesAlone) {
  Graphs graphs({"dp=2", "tp=2"}, plan::BF16);
  Executor &rank = graphs.team().executor(0);
  EXPECT_GT(rank.seat(0).layout().bytes, 5 * rank.seat(1).layout().bytes);
  EXPECT_EQ(rank.seat(1).partBytes(0, ParameterPart::Master), 0);
  EXPECT_GT(rank.seat(1).partBytes(0, ParameterPart::Copy), 0);
}

TEST(TwoGraphsTest, PlansOfOtherGraphsAreRefused) {
  Graphs graphs({"dp=2", "tp=2"});
  MiniBatch batch = tinyBatch({5, 9}, 1);
  plan::Plan plan = *graphs.plan(0, batch, false);
  plan.graph = "dp=1,tp=1,pp=2,layers=2+3";
  StepResult result;
  EXPECT_THAT(graphs.run(0, plan, batch, {}, result).message(),
              HasSubstr("made for strategy 'dp=1,tp=1,pp=2,layers=2+3', but"));
  // And one that says the wrong one of two is no plan of it.
  Graphs again({"dp=2", "tp=2"});
  plan = *again.plan(0, batch, false);
  plan.graph = again.graph(1).name();
  EXPECT_FALSE(again.run(1, plan, batch, {}, result).isOk());
}

/// A graph without masters or gradients refuses plans that need them, before
/// anything runs.
TEST(TwoGraphsTest, PlansThatNeedMoreThanValuesAreRefused) {
  MiniBatch batch = tinyBatch({5, 9}, 1);
  StepResult result;
  for (const char *other : {"tp=2", "dp=2,tp=1,zero=1", "pp=2,layers=2+3"}) {
    SCOPED_TRACE(other);
    for (Persistent persistent : {Persistent::Values, Persistent::Masters}) {
      Graphs graphs({"dp=2", other}, plan::BF16, persistent);
      ASSERT_TRUE(graphs.team().moveValues(0, 1).isOk());
      EXPECT_GT(graphs.run(1, batch, 0), 0);
      bool hasMasters = persistent == Persistent::Masters;
      EXPECT_THAT(
          graphs.run(1, *graphs.plan(1, batch, true), batch, {}, result)
              .message(),
          testing::AllOf(HasSubstr("which needs gradients"),
                         HasSubstr("'" + graphs.graph(1).name() + "'"),
                         HasSubstr(hasMasters ? "no more than masters"
                                              : "no more than the values"),
                         HasSubstr("run it on a graph that has them")));
    }
    Graphs graphs({"dp=2", other}, plan::BF16);
    EXPECT_THAT(
        graphs.run(1, graphs.cast(1), MiniBatch(), {}, result).message(),
        HasSubstr("CAST_PARAMS layer 0, which needs masters"));
    Graphs with({"dp=2", other}, plan::BF16, Persistent::Masters);
    EXPECT_OK(with.run(1, with.cast(1), MiniBatch(), {}, result));
  }
}

/// Graphs of other numbers of ranks, or two that plans cannot tell apart.
TEST(TwoGraphsTest, GraphsThatDoNotGoTogetherAreRefused) {
  TinyProgram program(tinyOptions(plan::F64));
  Model model = *openProgram(program.program());
  auto messageOf = [&](const char *home, const char *other) {
    auto a = *ExecutableGraph::create(model, *parseStrategy(home));
    auto b = *ExecutableGraph::create(model, *parseStrategy(other));
    return teamOf(program, {{&a}, {&b, Persistent::Values}}).status().message();
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
