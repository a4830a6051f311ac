//===- ReplaceGraphsTest.cpp - Graphs that change between steps -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every three steps a run goes over to another cut, strategy or set of ranks. It computes
// what a run computes that stays, moments included. What is refused changes nothing.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/RandomShares.h"
#include "test/runtime/executor/ReplacedGraphs.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

using namespace dyna;
using namespace dyna::test;
using testing::HasSubstr;

namespace {

constexpr int stepsOfGraph = 3;

/// Every instruction is checked in some runs alone: that takes long.
Carriage unchecked() {
  Carriage carriage;
  carriage.checksMemory = false;
  return carriage;
}

/// Trains with each of the strategies in turn. Each replacement leaves all bits of the
/// state as they are.
ReplacedGraphs::Outcome outcomeOf(const std::vector<std::string> &strategies,
                                  const TinyOptions &tiny,
                                  const Carriage &carriage = unchecked(),
                                  const ReplacedGraphs::Options &options = {}) {
  ReplacedGraphs run(strategies.front(), tiny, carriage, options);
  for (const std::string &strategy : strategies) {
    if (&strategy != &strategies.front()) {
      const auto before = run.state();
      const auto copies = run.read(ParameterPart::Copy);
      EXPECT_OK(run.replace(strategy));
      EXPECT_EQ(run.state(), before) << strategy;
      EXPECT_EQ(run.read(ParameterPart::Copy), copies) << strategy;
      // Copies are carried; the masters would have made the same ones.
      run.cast();
      EXPECT_EQ(run.read(ParameterPart::Copy), copies) << strategy;
    }
    for (int step = 0; step < stepsOfGraph; ++step)
      EXPECT_OK(run.step());
  }
  return run.outcome();
}

/// As many steps without a replacement.
ReplacedGraphs::Outcome
outcomeOfStay(const std::string &strategy, size_t graphs,
              const TinyOptions &tiny,
              const ReplacedGraphs::Options &options = {}) {
  ReplacedGraphs run(strategy, tiny, unchecked(), options);
  for (size_t step = 0; step < graphs * stepsOfGraph; ++step)
    EXPECT_OK(run.step());
  return run.outcome();
}

double distance(const std::vector<double> &a, const std::vector<double> &b) {
  double most = 0, scale = 0;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    scale = std::max(scale, std::abs(a[i]));
  }
  return most / scale;
}

void expectNear(const ReplacedGraphs::Outcome &a,
                const ReplacedGraphs::Outcome &b, double relative = 1e-10) {
  EXPECT_LE(distance(a.losses, b.losses), relative);
  for (size_t part = 0; part < a.state.size(); ++part)
    EXPECT_LE(distance(a.state[part], b.state[part]), relative) << part;
}

TinyOptions tinyOf(plan::ElementType compute, bool nestedTie) {
  TinyOptions tiny = tinyOptions(compute);
  tiny.nestedTie = nestedTie;
  return tiny;
}

TEST(ReplaceGraphsTest, NewCutsAreBitwiseTheSame) {
  const std::vector<std::string> cuts = {"pp=2,layers=3+2", "pp=2,layers=2+3",
                                         "pp=2,layers=4+1", "pp=2,layers=3+2"};
  for (plan::ElementType compute : {plan::F64, plan::BF16})
    for (plan::Recompute recompute :
         {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL}) {
      SCOPED_TRACE(testing::Message() << compute << " " << recompute);
      const TinyOptions tiny = tinyOf(compute, /*nestedTie=*/false);
      ReplacedGraphs::Options options;
      options.recompute = recompute;
      const auto moved = outcomeOf(cuts, tiny, unchecked(), options);
      const auto stays =
          outcomeOfStay(cuts.front(), cuts.size(), tiny, options);
      EXPECT_EQ(moved.losses, stays.losses);
      EXPECT_EQ(moved.state, stays.state);
    }
}

/// A parameter of two blocks, and one of the first and the last layer, which are on one
/// stage or on two. Cuts here leave them on two.
TEST(ReplaceGraphsTest, NewCutsOfTiesAreBitwiseTheSame) {
  const std::vector<std::string> cuts = {"dp=2,pp=2,layers=3+2,zero=1",
                                         "dp=2,pp=2,layers=2+3,zero=1",
                                         "dp=2,pp=2,layers=3+2,zero=1"};
  for (plan::ElementType compute : {plan::F64, plan::BF16}) {
    const TinyOptions tiny = tinyOf(compute, /*nestedTie=*/true);
    const auto moved = outcomeOf(cuts, tiny);
    const auto stays = outcomeOfStay(cuts.front(), cuts.size(), tiny);
    EXPECT_EQ(moved.losses, stays.losses);
    EXPECT_EQ(moved.state, stays.state);
  }
}

TEST(ReplaceGraphsTest, NewDegreesAreNear) {
  const std::vector<std::string> strategies = {
      "pp=2,layers=3+2", "pp=2,layers=2+3", "dp=2,zero=1",    "tp=2", "dp=2",
      "tp=2,sp=1",       "dp=2,zero=1",     "pp=2,layers=3+2"};
  for (bool nestedTie : {false, true})
    for (double clip : {0.0, 0.5}) {
      const TinyOptions tiny = tinyOf(plan::F64, nestedTie);
      ReplacedGraphs::Options options;
      options.clip = clip;
      Carriage carriage;
      carriage.checksMemory = nestedTie;
      expectNear(outcomeOf(strategies, tiny, carriage, options),
                 outcomeOfStay("dp=2", strategies.size(), tiny, options));
    }
}

/// Buckets of several hops, over transports that need both sides at once, or have wires
/// of their own for hosts.
TEST(ReplaceGraphsTest, AnyTransportCarriesTheState) {
  const std::vector<std::string> strategies = {
      "dp=2,pp=2,layers=3+2",
      "dp=4,zero=1",
      "tp=4,sp=1",
      "dp=2,tp=2,zero=1,order=tp+pp+dp",
      "tp=2,pp=2,layers=2+3",
      "dp=4"};
  const TinyOptions tiny = tinyOf(plan::F64, /*nestedTie=*/true);
  const auto stays = outcomeOfStay("dp=4", strategies.size(), tiny);
  for (int kind = 0; kind < 3; ++kind) {
    SCOPED_TRACE(kind);
    Carriage carriage;
    carriage.checksMemory = kind == 0;
    carriage.isRendezvous = kind == 1;
    carriage.hasHostWires = kind == 2;
    expectNear(outcomeOf(strategies, tiny, carriage), stays);
  }
  // In bf16 every replacement leaves all bits, too; steps round in other places.
  const TinyOptions narrow = tinyOf(plan::BF16, /*nestedTie=*/true);
  outcomeOf(strategies, narrow);
}

/// Ranks without a place hold nothing and compute nothing, but know every result.
TEST(ReplaceGraphsTest, RanksComeAndGo) {
  const std::vector<std::string> strategies = {"dp=2,pp=2,layers=3+2",
                                               "pp=2,layers=2+3",
                                               "dp=1",
                                               "dp=3,zero=1",
                                               "dp=4,zero=1",
                                               "tp=2",
                                               "dp=4"};
  for (plan::ElementType compute : {plan::F64, plan::BF16}) {
    const TinyOptions tiny = tinyOf(compute, /*nestedTie=*/true);
    ReplacedGraphs::Options options;
    options.clip = 0.5;
    const auto moved = outcomeOf(strategies, tiny, unchecked(), options);
    if (compute == plan::F64)
      expectNear(moved,
                 outcomeOfStay("dp=4", strategies.size(), tiny, options));
  }
  ReplacedGraphs run("dp=4", tinyOf(plan::F64, false), unchecked(), {});
  EXPECT_OK(run.replace("pp=2,layers=3+2"));
  EXPECT_OK(run.step());
  for (size_t rank = 0; rank < 4; ++rank) {
    Executor &executor = run.team().executor(rank);
    EXPECT_EQ(executor.hasPlace(), rank < 2);
    EXPECT_EQ(executor.persistentBytes() > 0, rank < 2);
    const StepResult &result = run.team().lastResult(rank);
    EXPECT_EQ(result.lossSum, run.team().lastResult(0).lossSum);
    EXPECT_EQ(result.gradientNorm, run.team().lastResult(0).gradientNorm);
    EXPECT_EQ(result.uses.size(), 4u);
    EXPECT_EQ(result.traffic.messages > 0, rank < 2);
  }
}

/// Pages of an arena that have memory.
int64_t residentPages(const Executor &executor) {
  Buffer &arena = executor.machine().arena();
  constexpr int64_t page = 4096;
  std::vector<unsigned char> pages(
      static_cast<size_t>((arena.bytes() + page - 1) / page));
  EXPECT_EQ(
      mincore(arena.data(), static_cast<size_t>(arena.bytes()), pages.data()),
      0);
  return std::count_if(pages.begin(), pages.end(),
                       [](unsigned char one) { return one & 1; });
}

/// A rank without a place gives back the memory of its arena, and takes it again.
TEST(ReplaceGraphsTest, FreedRanksGiveBackTheirMemory) {
  const TinyOptions tiny = tinyOf(plan::F64, false);
  ReplacedGraphs run("dp=4", tiny, unchecked(), {});
  auto check = [&](size_t places) {
    for (size_t rank = 0; rank < 4; ++rank) {
      const Executor &executor = run.team().executor(rank);
      EXPECT_EQ(residentPages(executor) > 1, rank < places) << rank;
      EXPECT_EQ(executor.residentBytes() > 0, rank < places) << rank;
    }
  };
  check(4);
  EXPECT_OK(run.step());
  for (const auto &[strategy, places] : {std::pair("pp=2,layers=3+2", 2),
                                         {"dp=1", 1},
                                         {"dp=3", 3},
                                         {"dp=4", 4}}) {
    EXPECT_OK(run.replace(strategy));
    EXPECT_OK(run.step());
    check(static_cast<size_t>(places));
  }
  ReplacedGraphs stays("dp=4", tiny, unchecked(), {});
  for (int step = 0; step < 5; ++step)
    EXPECT_OK(stays.step());
  expectNear(run.outcome(), stays.outcome());
}

TEST(ReplaceGraphsTest, RandomGraphsKeepTheState) {
  for (int seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    RandomShares random(3000 + seed);
    TinyOptions tiny;
    tiny.hidden = tinyWidth;
    tiny.blocks = 2 + random.below(3);
    tiny.shares = random.shares(tiny.blocks, random.below(2));
    std::vector<std::string> strategies = {"dp=6"};
    for (int i = 0; i < 4; ++i)
      strategies.push_back(
          random.strategy(tiny.blocks + 2, std::vector<int>{6, 4, 3}[i % 3]));
    strategies.push_back("dp=6");
    expectNear(outcomeOf(strategies, tiny),
               outcomeOfStay("dp=6", strategies.size(), tiny));
  }
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// Runs on, as if nothing had been asked.
void expectUntouched(ReplacedGraphs &run, const TinyOptions &tiny) {
  for (int step = 0; step < stepsOfGraph; ++step)
    EXPECT_OK(run.step());
  const auto expected = outcomeOfStay(run.graph().name(), 2, tiny);
  EXPECT_EQ(run.outcome().losses, expected.losses);
  EXPECT_EQ(run.outcome().state, expected.state);
  EXPECT_EQ(run.team().version(), 0);
}

TEST(ReplaceGraphsTest, WhatIsRefusedChangesNothing) {
  const TinyOptions tiny = tinyOf(plan::F64, /*nestedTie=*/false);
  ReplacedGraphs run("pp=2,layers=3+2", tiny, unchecked(), {});
  for (int step = 0; step < stepsOfGraph; ++step)
    EXPECT_OK(run.step());
  const Status tooMany = run.replace("dp=4");
  EXPECT_THAT(tooMany.message(), HasSubstr("needs 4 ranks, but there are 2"));
  // Of the same shapes.
  plan::Manifest manifest = tinyManifest(tiny);
  manifest.mutable_parameters(0)->set_normal_std(0.123);
  manifest.set_hash(manifestHash(manifest));
  Model another = *Model::create(std::move(manifest));
  EXPECT_THAT(
      run.replace(std::make_unique<ExecutableGraph>(*ExecutableGraph::create(
                      another, *parseStrategy("dp=2"))))
          .message(),
      HasSubstr("can only be replaced by those of the same model"));
  expectUntouched(run, tiny);
}

TEST(ReplaceGraphsTest, WhatDoesNotFitIsRefusedWithWhatIsNeeded) {
  TinyOptions tiny = tinyOf(plan::F64, /*nestedTie=*/false);
  tiny.vocabulary = 9000;
  ReplacedGraphs run("dp=2,zero=1", tiny, unchecked(), {});
  for (int step = 0; step < stepsOfGraph; ++step)
    EXPECT_OK(run.step());
  const Status refused = run.replace("dp=2");
  EXPECT_EQ(refused.code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(refused.message(),
              testing::AllOf(HasSubstr("rank 0, on its way to strategy 'dp=2,"),
                             HasSubstr(" for the tensors that there are, "),
                             HasSubstr(" for the next ones"),
                             HasSubstr("but the rank took ")));
  expectUntouched(run, tiny);
}

/// A rank that is lost ends the job, but the graphs keep what they had.
TEST(ReplaceGraphsTest, ALostRankLeavesTheState) {
  ReplacedGraphs run("dp=2", tinyOf(plan::F64, false), unchecked(), {});
  EXPECT_OK(run.step());
  const auto before = run.state();
  run.team().abort(Status(StatusCode::DeviceError, "power was cut"));
  EXPECT_THAT(run.replace("tp=2").message(), HasSubstr("power was cut"));
  EXPECT_EQ(run.state(), before);
  EXPECT_EQ(run.team().version(), 0);
  EXPECT_EQ(run.team().graph().name(), run.graph().name());
}

/// Plans of the graphs before are refused, by all ranks.
TEST(ReplaceGraphsTest, OldPlansAreRefused) {
  ReplacedGraphs run("pp=2,layers=3+2", tinyOf(plan::F64, false), unchecked(),
                     {});
  const MiniBatch batch = ReplacedGraphs::batchOf(0);
  auto old = run.plan(batch);
  ASSERT_TRUE(old.isOk());
  EXPECT_OK(run.replace("pp=2,layers=2+3"));
  EXPECT_THAT(run.run(*old, batch).message(),
              HasSubstr("the plan was made for strategy 'dp=1,tp=1,pp=2,layers="
                        "3+2', but this is 'dp=1,tp=1,pp=2,layers=2+3'"));
}

/// Comparing with a run that stays finds each part that is not carried.
TEST(ReplaceGraphsTest, APartThatIsForgottenIsFound) {
  const TinyOptions tiny = tinyOf(plan::BF16, /*nestedTie=*/false);
  for (ParameterPart part :
       {ParameterPart::Master, ParameterPart::Copy, ParameterPart::FirstMoment,
        ParameterPart::SecondMoment}) {
    ReplacedGraphs::Options options;
    options.forgotten = {part};
    ReplacedGraphs run("dp=2", tiny, unchecked(), options);
    for (int step = 0; step < stepsOfGraph; ++step)
      EXPECT_OK(run.step());
    const auto state = run.state();
    const auto copies = run.read(ParameterPart::Copy);
    EXPECT_OK(run.replace("pp=2,layers=3+2"));
    EXPECT_EQ(run.state() != state, part != ParameterPart::Copy);
    EXPECT_EQ(run.read(ParameterPart::Copy) != copies,
              part == ParameterPart::Copy);
    EXPECT_OK(run.step());
    const auto stays = outcomeOfStay("dp=2", 2, tiny);
    EXPECT_NE(run.outcome().state, stays.state);
  }
}

} // namespace
