//===- PlannerTest.cpp - The plan of every mini-batch -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/Planner.h"
#include "runtime/abi/Random.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

using namespace dyna;
using plan::Instruction;
using testing::HasSubstr;

namespace {

const Model &model() {
  static const Model model = *Model::create(tinyManifest());
  return model;
}

std::vector<int64_t> randomLengths(uint64_t seed, int count, int64_t longest) {
  std::vector<int64_t> lengths;
  for (int i = 0; i < count; ++i)
    lengths.push_back(
        1 + static_cast<int64_t>(dyna_mix64(seed * 1000 + i) % longest));
  return lengths;
}

/// The most bytes alive at one time: no layout can do with less.
int64_t liveBytes(const plan::Plan &plan) {
  const RankView view = RankView::whole(model());
  ProgramBlocks blocks(view, plan, plan.ranks[0]);
  int64_t live = 0, most = 0;
  for (int index = 0; index < plan.ranks[0].count(); ++index) {
    for (const BlockUse &use : blocks.uses(index))
      live += use.takes ? use.bytes : 0;
    most = std::max(most, live);
    EXPECT_EQ(blocks.liveBytes()[index], live);
    for (const BlockUse &use : blocks.uses(index))
      live -= use.gives ? use.bytes : 0;
  }
  EXPECT_EQ(live, 0);
  return most;
}

std::string program(const plan::Plan &plan, int rank = 0) {
  std::string text;
  for (const Instruction &i : plan.ranks[rank].instructions)
    text += describeInstruction(i) + "\n";
  return text;
}

TEST(PlannerTest, PlansOfAllKindsAreVerifiedAndTight) {
  int tight = 0, plans = 0;
  for (auto mode :
       {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL})
    for (bool split : {false, true})
      for (int inFlight : {1, 2, 5})
        for (uint64_t seed = 0; seed < 10; ++seed) {
          PlanOptions options;
          options.recompute = {mode};
          options.splitBackward = split;
          options.inFlight = inFlight;
          options.maxTokensPerMicroBatch = 200;
          auto limit = Planner(model()).largestDynamicBytes(options, true);
          ASSERT_TRUE(limit.isOk());
          options.dynamicLimits = *limit;
          std::vector<int64_t> lengths = randomLengths(seed, 30, 64);
          auto plan = Planner(model()).training(lengths, 500, options);
          ASSERT_TRUE(plan.isOk()) << plan.status().message();
          Status status =
              verifyPlan(onOneRank(model()), *plan, lengths, {*limit});
          EXPECT_TRUE(status.isOk()) << status.message();
          int64_t live = liveBytes(*plan);
          EXPECT_LE(plan->ranks[0].dynamicBytes, live * 103 / 100);
          tight += plan->ranks[0].dynamicBytes == live;
          ++plans;
        }
  EXPECT_GE(tight, plans / 2);
}

TEST(PlannerTest, TheOrderIsTheDocumentedOne) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 10;
  options.inFlight = 2;
  options.recompute = {plan::RECOMPUTE_FULL};
  TinyOptions tiny;
  tiny.blocks = 1;
  Model one = *Model::create(tinyManifest(tiny));
  auto plan = Planner(one).training({10, 10}, 20, options);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(program(*plan), "LOAD micro-batch 0\n"
                            "FORWARD layer 0 micro-batch 0\n"
                            "FORWARD layer 1 micro-batch 0\n"
                            "FORWARD layer 2 micro-batch 0\n"
                            "LOAD micro-batch 1\n"
                            "FORWARD layer 0 micro-batch 1\n"
                            "FORWARD layer 1 micro-batch 1\n"
                            "FORWARD layer 2 micro-batch 1\n"
                            "BACKWARD layer 2 micro-batch 0\n"
                            "FREE layer 2 micro-batch 0\n"
                            "RECOMPUTE layer 1 micro-batch 0\n"
                            "BACKWARD layer 1 micro-batch 0\n"
                            "FREE layer 1 micro-batch 0\n"
                            "BACKWARD layer 0 micro-batch 0\n"
                            "FREE layer 0 micro-batch 0\n"
                            "BACKWARD layer 2 micro-batch 1\n"
                            "FREE layer 2 micro-batch 1\n"
                            "RECOMPUTE layer 1 micro-batch 1\n"
                            "BACKWARD layer 1 micro-batch 1\n"
                            "FREE layer 1 micro-batch 1\n"
                            "BACKWARD layer 0 micro-batch 1\n"
                            "FREE layer 0 micro-batch 1\n"
                            "GRAD_NORM layer 0\n"
                            "GRAD_NORM layer 1\n"
                            "GRAD_NORM layer 2\n"
                            "UPDATE layer 0\n"
                            "UPDATE layer 1\n"
                            "UPDATE layer 2\n");
}

// The long sample's attention outweighs the tokens of the five short ones.
TEST(PlannerTest, MicroBatchesAreBalancedByAttentionWorkToo) {
  plan::Manifest manifest = tinyManifest();
  for (plan::LayerKind &kind : *manifest.mutable_kinds())
    kind.set_attention_flops_per_pair(kind.flops_per_token());
  auto heavy = Model::create(manifest);
  ASSERT_TRUE(heavy.isOk()) << heavy.status().message();
  PlanOptions options;
  options.maxTokensPerMicroBatch = 70;
  auto plan = Planner(*heavy).training({40, 10, 10, 10, 10, 10}, 90, options);
  ASSERT_TRUE(plan.isOk());
  ASSERT_EQ(plan->microBatchCount(), 2);
  EXPECT_EQ(plan->microBatches[0].segments.size(), 1);
  EXPECT_EQ(plan->microBatches[1].segments.size(), 5);
}

TEST(PlannerTest, RecomputationTakesLessMemory) {
  int64_t before = INT64_MAX;
  for (auto mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
                    plan::RECOMPUTE_FULL}) {
    TinyOptions tiny;
    tiny.blocks = 12;
    Model deep = *Model::create(tinyManifest(tiny));
    PlanOptions options;
    options.recompute = {mode};
    auto bytes = Planner(deep).largestDynamicBytes(options, true);
    ASSERT_TRUE(bytes.isOk());
    EXPECT_LT(bytes->front(), before);
    before = bytes->front();
  }
}

TEST(PlannerTest, EveryPlanFitsTheArenaThatWasTaken) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    PlanOptions options;
    options.maxTokensPerMicroBatch = 64 + static_cast<int64_t>(seed);
    options.inFlight = 1 + static_cast<int>(seed % 4);
    options.splitBackward = seed % 3 == 0;
    options.recompute = {static_cast<plan::Recompute>(seed % 3)};
    auto limit = Planner(model()).largestDynamicBytes(options, true);
    options.dynamicLimits = *limit;
    std::vector<int64_t> lengths =
        randomLengths(seed, 1 + static_cast<int>(seed % 40), 64);
    EXPECT_TRUE(Planner(model()).training(lengths, 9, options).isOk());
    EXPECT_TRUE(Planner(model()).evaluation(lengths, 9, options).isOk());
  }
}

TEST(PlannerTest, EveryPlanOfAPipelineFitsTheArenasThatWereTaken) {
  const char *strategies[] = {"pp=2,layers=3+2", "dp=2,pp=3,layers=2+2+1",
                              "pp=4,layers=1+2+1+1", "pp=5,layers=1+1+1+1+1",
                              "dp=2,pp=2,layers=1+4"};
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Planner planner(*ExecutableGraph::create(
        model(), *parseStrategy(strategies[seed % 5])));
    PlanOptions options;
    options.maxTokensPerMicroBatch = 64 + static_cast<int64_t>(seed % 97);
    options.schedule =
        seed % 2 ? Schedule::GPipe : Schedule::OneForwardOneBackward;
    options.inFlight = 1 + static_cast<int>(seed % 7);
    options.splitBackward = seed % 3 == 0;
    options.recompute = {static_cast<plan::Recompute>(seed % 3)};
    options.dynamicLimits = *planner.largestDynamicBytes(options, true);
    std::vector<int64_t> lengths =
        randomLengths(seed, 1 + static_cast<int>(seed * 7 % 80), 64);
    Status trains = planner.training(lengths, 9, options).status();
    Status evaluates = planner.evaluation(lengths, 9, options).status();
    EXPECT_TRUE(trains.isOk()) << trains.message();
    EXPECT_TRUE(evaluates.isOk()) << evaluates.message();
  }
}

// A schedule that keeps all of a step of small micro-batches keeps thousands: their
// arenas are not placed, but follow from fewer, and fit as exactly.
TEST(PlannerTest, ArenasOfManySmallMicroBatchesAreAsLargeAsTheyNeed) {
  for (const char *strategy : {"pp=1", "pp=2,layers=3+2"})
    for (int micro : {100, 200, 300}) {
      SCOPED_TRACE(testing::Message() << strategy << " " << micro);
      Planner planner(
          *ExecutableGraph::create(model(), *parseStrategy(strategy)));
      PlanOptions options;
      options.maxTokensPerMicroBatch = 64;
      options.schedule = Schedule::GPipe;
      options.inFlight = micro;
      const auto limits = planner.largestDynamicBytes(options, true);
      ASSERT_TRUE(limits.isOk());
      options.dynamicLimits = *limits;
      // Of one window, and with a second one behind it.
      for (int count : {micro, micro + micro / 3}) {
        auto plan =
            planner.training(std::vector<int64_t>(count, 64), 9, options);
        ASSERT_TRUE(plan.isOk()) << plan.status().message();
        EXPECT_EQ(plan->fallback, "");
        for (size_t rank = 0; rank < limits->size(); ++rank)
          EXPECT_GE(plan->ranks[rank].dynamicBytes, (*limits)[rank] * 9 / 10);
      }
    }
  // What took the square of their number for each of 1,600 sizes.
  PlanOptions options;
  options.maxTokensPerMicroBatch = 64;
  options.schedule = Schedule::GPipe;
  options.inFlight = 20000;
  EXPECT_TRUE(Planner(model()).largestDynamicBytes(options, true).isOk());
}

// Files of costs may say that a function takes nothing, or longer than the
// universe is old: the order of messages still has to be one that ends.
TEST(PlannerTest, CostsOfAnySizeMakePlansThatHold) {
  const char *seconds[] = {"0", "1e-300", "1e-9", "1", "7", "1e6", "1e9"};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::string text;
    uint64_t state = seed * 100;
    for (const char *kind : {"embedding", "block", "head"})
      for (const char *direction : {"FORWARD", "BACKWARD", "RECOMPUTE_FULL"})
        text += "entries { kind: \"" + std::string(kind) +
                "\" direction: " + direction +
                " points { tokens: 64 pairs: 64 targets: 64 seconds: " +
                seconds[dyna_mix64(state++) % 7] + " } }\n";
    auto table = CostTable::parse(text, "costs.txt");
    ASSERT_TRUE(table.isOk()) << table.status().message();
    const char *strategies[] = {"pp=2,layers=3+2", "pp=3,layers=2+2+1",
                                "pp=4,layers=1+2+1+1"};
    Planner planner(
        *ExecutableGraph::create(model(), *parseStrategy(strategies[seed % 3])),
        *CostModel::create(model(), std::move(*table)));
    std::vector<int64_t> lengths = randomLengths(seed, 30, 64);
    for (Schedule schedule : allSchedules()) {
      PlanOptions options;
      options.maxTokensPerMicroBatch = 100;
      options.inFlight = 3;
      options.schedule = schedule;
      options.recompute = {seed % 2 ? plan::RECOMPUTE_FULL
                                    : plan::RECOMPUTE_NONE};
      for (bool trains : {true, false}) {
        auto plan = trains ? planner.training(lengths, 9, options)
                           : planner.evaluation(lengths, 9, options);
        ASSERT_TRUE(plan.isOk()) << plan.status().message();
        Status holds =
            verifyPlan(planner.graph(), *plan, lengths, VerifyOptions());
        EXPECT_TRUE(holds.isOk()) << holds.message();
      }
    }
  }
}

// What is taken for evaluation alone is enough for its own order, however many
// micro-batches there are: no plan has to become sequential.
TEST(PlannerTest, EvaluationKeepsItsOrderInTheArenasThatWereTaken) {
  const char *strategies[] = {"pp=2,layers=3+2", "dp=2,pp=3,layers=2+2+1",
                              "pp=4,layers=1+2+1+1", "pp=5,layers=1+1+1+1+1",
                              "dp=2,pp=2,layers=1+4,zero=1"};
  int others = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Planner planner(*ExecutableGraph::create(
        model(), *parseStrategy(strategies[seed % 5])));
    PlanOptions free, limited, sequential;
    free.maxTokensPerMicroBatch = 64 + static_cast<int64_t>(seed % 97);
    limited = sequential = free;
    limited.dynamicLimits = *planner.largestDynamicBytes(limited, false);
    sequential.schedule = Schedule::Sequential;
    // Full micro-batches, which need the most.
    std::vector<int64_t> lengths(seed * 7 % 40 + 1,
                                 free.maxTokensPerMicroBatch);
    auto wanted = planner.evaluation(lengths, 9, free);
    auto got = planner.evaluation(lengths, 9, limited);
    auto other = planner.evaluation(lengths, 9, sequential);
    ASSERT_TRUE(got.isOk()) << got.status().message();
    for (int rank = 0; rank < planner.graph().ranks(); ++rank) {
      ASSERT_EQ(program(*got, rank), program(*wanted, rank)) << seed;
      others += program(*other, rank) != program(*wanted, rank);
    }
  }
  EXPECT_GT(others, 100);
}

// With no more memory than one micro-batch needs, a plan becomes sequential.
// The same bytes are enough however many micro-batches there are.
TEST(PlannerTest, WhatDoesNotFitBecomesSequential) {
  const char *strategies[] = {"dp=1", "pp=2,layers=3+2",
                              "dp=2,pp=3,layers=2+2+1,zero=1",
                              "pp=5,layers=1+1+1+1+1"};
  int sequential = 0, others = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Planner planner(*ExecutableGraph::create(
        model(), *parseStrategy(strategies[seed % 4])));
    PlanOptions options;
    options.maxTokensPerMicroBatch = 64 + static_cast<int64_t>(seed % 97);
    options.batching = Batching::Tokens; // which looks at no schedule
    options.schedule = Schedule::Sequential;
    options.splitBackward = seed % 3 == 0;
    options.recompute = {static_cast<plan::Recompute>(seed % 3)};
    options.dynamicLimits = *planner.largestDynamicBytes(options, true);
    PlanOptions asked = options;
    options.schedule =
        seed % 2 ? Schedule::GPipe : Schedule::OneForwardOneBackward;
    options.inFlight = 3;
    std::vector<int64_t> lengths =
        randomLengths(seed, 1 + static_cast<int>(seed * 7 % 80), 64);
    auto plan = planner.training(lengths, 9, options);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    Status status = verifyPlan(planner.graph(), *plan, lengths, {});
    EXPECT_TRUE(status.isOk()) << status.message();
    for (int rank = 0; rank < plan->rankCount(); ++rank)
      EXPECT_LE(plan->ranks[rank].dynamicBytes, options.dynamicLimits[rank]);
    others += plan->fallback == "adaptive";
    if (plan->fallback == "sequential") {
      ++sequential;
      auto expected = planner.training(lengths, 9, asked);
      plan->fallback.clear();
      ASSERT_EQ(writePlan(*expected), writePlan(*plan));
    }
    Status evaluates = planner.evaluation(lengths, 9, options).status();
    EXPECT_TRUE(evaluates.isOk()) << evaluates.message();
  }
  EXPECT_GT(sequential, 50);
  EXPECT_GT(others, 10); // one that goes by memory fits now and then
}

TEST(PlannerTest, SequentialPlansHaveNothingOfTwoMicroBatches) {
  Planner planner(
      *ExecutableGraph::create(model(), *parseStrategy("pp=3,layers=2+2+1")));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 32;
  options.schedule = Schedule::Sequential;
  plan::Plan two = *planner.training({32, 32}, 64, options);
  plan::Plan many =
      *planner.training(std::vector<int64_t>(20, 32), 640, options);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(two.ranks[rank].dynamicBytes, many.ranks[rank].dynamicBytes);
  for (const plan::RankProgram &program : many.ranks)
    for (int at = 0; at < program.count(); ++at)
      if (ExchangeOp op = exchangeOf(program.instructions[at].op);
          op.isMessage() && op.sends && op.starts)
        EXPECT_EQ(program.instructions[at + 1].op,
                  program.instructions[at].op + 1);
}

// The layout for the largest micro-batches, which a plan falls back to, is
// itself a valid one.
TEST(PlannerTest, TheFallbackLayoutIsVerified) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 64;
  options.inFlight = 3;
  std::vector<int64_t> largest =
      *Planner(model()).largestDynamicBytes(options, true);
  std::vector<int64_t> lengths = {64, 64, 64, 64};
  options.schedule = Schedule::Sequential;
  auto plan = Planner(model()).training(lengths, 9, options);
  options.dynamicLimits = {plan->ranks[0].dynamicBytes - 64};
  auto refused = Planner(model()).training(lengths, 9, options);
  EXPECT_THAT(refused.status().message(), HasSubstr("this mini-batch needs"));
  options.schedule = Schedule::GPipe;
  options.dynamicLimits = largest;
  auto fits = Planner(model()).training(lengths, 9, options);
  ASSERT_TRUE(fits.isOk());
  EXPECT_TRUE(verifyPlan(onOneRank(model()), *fits, lengths, {largest}).isOk());
}

// A rank has an arena of its own; that another one has more does not help it.
TEST(PlannerTest, EveryRankHasItsOwnLimit) {
  Planner planner(
      *ExecutableGraph::create(model(), *parseStrategy("pp=2,layers=2+3")));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 64;
  options.schedule = Schedule::Sequential;
  std::vector<int64_t> lengths = randomLengths(3, 20, 64), needed;
  auto plan = planner.training(lengths, 9, options);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  for (const plan::RankProgram &program : plan->ranks)
    needed.push_back(program.dynamicBytes);
  ASSERT_NE(needed[0], needed[1]);
  options.dynamicLimits = needed;
  EXPECT_TRUE(planner.training(lengths, 9, options).isOk());
  for (int rank : {0, 1}) {
    options.dynamicLimits = {INT64_C(1) << 40, INT64_C(1) << 40};
    options.dynamicLimits[rank] = needed[rank] - 64;
    Status status = planner.training(lengths, 9, options).status();
    EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("on rank " + std::to_string(rank)));
  }
  options.dynamicLimits = {1};
  EXPECT_THAT(planner.training(lengths, 9, options).status().message(),
              HasSubstr("limits of 1 ranks, but the strategy has 2"));
}

// All start at once; each is waited for just before its layer's first forward.
TEST(PlannerTest, GathersTravelDuringTheFirstForward) {
  TinyOptions tiny;
  tiny.blocks = 1;
  Model one = *Model::create(tinyManifest(tiny));
  Planner planner(*ExecutableGraph::create(one, *parseStrategy("dp=2,zero=1")));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 10;
  auto plan = planner.evaluation({10, 10, 10}, 30, options);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(program(*plan), "GATHER_PARAMS_START layer 0\n"
                            "GATHER_PARAMS_START layer 1\n"
                            "GATHER_PARAMS_START layer 2\n"
                            "LOAD micro-batch 0\n"
                            "GATHER_PARAMS_WAIT layer 0\n"
                            "EVALUATE layer 0 micro-batch 0\n"
                            "GATHER_PARAMS_WAIT layer 1\n"
                            "EVALUATE layer 1 micro-batch 0\n"
                            "GATHER_PARAMS_WAIT layer 2\n"
                            "EVALUATE layer 2 micro-batch 0\n"
                            "LOAD micro-batch 1\n"
                            "EVALUATE layer 0 micro-batch 1\n"
                            "EVALUATE layer 1 micro-batch 1\n"
                            "EVALUATE layer 2 micro-batch 1\n");
}

// The gradients of a layer travel while the backwards of those before it run.
TEST(PlannerTest, ReductionsStartBehindTheLastBackwardOfTheirLayer) {
  TinyOptions tiny;
  tiny.blocks = 1;
  Model one = *Model::create(tinyManifest(tiny));
  Planner planner(*ExecutableGraph::create(one, *parseStrategy("dp=2")));
  PlanOptions options;
  options.maxTokensPerMicroBatch = 10;
  options.inFlight = 1;
  options.schedule = Schedule::GPipe;
  auto plan = planner.training({10, 10, 10, 10}, 40, options);
  ASSERT_TRUE(plan.isOk());
  std::string forward = "LOAD micro-batch 0\n"
                        "FORWARD layer 0 micro-batch 0\n"
                        "FORWARD layer 1 micro-batch 0\n"
                        "FORWARD layer 2 micro-batch 0\n";
  std::string second = "LOAD micro-batch 1\n"
                       "FORWARD layer 0 micro-batch 1\n"
                       "FORWARD layer 1 micro-batch 1\n"
                       "FORWARD layer 2 micro-batch 1\n";
  EXPECT_EQ(program(*plan), forward +
                                "BACKWARD layer 2 micro-batch 0\n"
                                "FREE layer 2 micro-batch 0\n"
                                "BACKWARD layer 1 micro-batch 0\n"
                                "FREE layer 1 micro-batch 0\n"
                                "BACKWARD layer 0 micro-batch 0\n"
                                "FREE layer 0 micro-batch 0\n" +
                                second +
                                "BACKWARD layer 2 micro-batch 1\n"
                                "FREE layer 2 micro-batch 1\n"
                                "REDUCE_GRADS_START layer 2\n"
                                "BACKWARD layer 1 micro-batch 1\n"
                                "FREE layer 1 micro-batch 1\n"
                                "REDUCE_GRADS_START layer 1\n"
                                "BACKWARD layer 0 micro-batch 1\n"
                                "FREE layer 0 micro-batch 1\n"
                                "REDUCE_GRADS_START layer 0\n"
                                "REDUCE_GRADS_WAIT layer 0\n"
                                "REDUCE_GRADS_WAIT layer 1\n"
                                "REDUCE_GRADS_WAIT layer 2\n"
                                "GRAD_NORM layer 0\n"
                                "GRAD_NORM layer 1\n"
                                "GRAD_NORM layer 2\n"
                                "COMBINE_NORM\n"
                                "UPDATE layer 0\n"
                                "UPDATE layer 1\n"
                                "UPDATE layer 2\n");
}

// Ranks with the same blocks are placed once, and no others with them: replicas
// have as many samples, of other lengths.
TEST(PlannerTest, EveryRankIsPlacedAsItWouldBeAlone) {
  for (const char *text : {"dp=2,tp=2", "dp=2,tp=2,pp=2,layers=2+3",
                           "dp=2,tp=2,zero=1,order=tp+dp+pp"}) {
    auto graph =
        *ExecutableGraph::create(modelWithDegrees(), *parseStrategy(text));
    PlanOptions options = tinyPlanOptions();
    options.maxTokensPerMicroBatch = 4096;
    auto plan = Planner(graph).training({4096, 9}, 4105, options);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    EXPECT_NE(plan->ranks.front().dynamicBytes,
              plan->ranks.back().dynamicBytes);
    plan::Plan alone = *plan;
    placeAgain(graph, alone);
    EXPECT_EQ(writePlan(alone), writePlan(*plan)) << text;
  }
}

TEST(PlannerTest, EvaluationKeepsNothing) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 64;
  std::vector<int64_t> lengths = {64, 30, 7};
  auto plan = Planner(model()).evaluation(lengths, 100, options);
  ASSERT_TRUE(plan.isOk());
  Status status = verifyPlan(onOneRank(model()), *plan, lengths, {});
  EXPECT_TRUE(status.isOk()) << status.message();
  auto training = Planner(model()).training(lengths, 100, options);
  EXPECT_LT(2 * plan->ranks[0].dynamicBytes, training->ranks[0].dynamicBytes);
}

TEST(PlannerTest, UpdateAloneAndCasts) {
  auto update = Planner(model()).update();
  ASSERT_TRUE(update.isOk());
  EXPECT_TRUE(verifyPlan(onOneRank(model()), *update, {}, {}).isOk());
  EXPECT_EQ(Planner(model()).cast()->ranks[0].count(), 0);
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  Model bf16 = *Model::create(tinyManifest(tiny));
  plan::Plan cast = *Planner(bf16).cast();
  EXPECT_EQ(cast.ranks[0].count(), 5);
  EXPECT_TRUE(verifyPlan(onOneRank(bf16), cast, {}, {}).isOk());
}

TEST(PlannerTest, BadOptionsAreRefused) {
  PlanOptions options;
  options.recompute = {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL};
  EXPECT_THAT(Planner(model()).training({5}, 5, options).status().message(),
              HasSubstr("recompute modes for 2 layers, but the model has 5"));
  options = PlanOptions();
  options.inFlight = 0;
  EXPECT_THAT(Planner(model()).training({5}, 5, options).status().message(),
              HasSubstr("0 micro-batches in flight"));
  options = PlanOptions();
  options.maxTokensPerMicroBatch = 0;
  EXPECT_FALSE(Planner(model()).training({5}, 5, options).isOk());
  options.maxTokensPerMicroBatch = 4;
  EXPECT_THAT(Planner(model()).training({5}, 5, options).status().message(),
              HasSubstr("sample 0 has 5 tokens"));
}

} // namespace
