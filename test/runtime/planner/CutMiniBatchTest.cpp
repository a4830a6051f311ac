//===- CutMiniBatchTest.cpp - Micro-batches by every rule -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/abi/Random.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/estimate/StageTables.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/order/MakespanWithin.h"
#include "runtime/sim/PlanTimes.h"
#include "test/runtime/planner/AttentiveModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

using namespace dyna;
using testing::HasSubstr;

namespace {

using MicroBatches = std::vector<plan::MicroBatch>;

/// Seconds of the replica with the most, if there is one stage.
double slowestReplica(const MicroBatches &cut, const StageTables &tables) {
  std::map<int, double> sums;
  double slowest = 0;
  for (const plan::MicroBatch &microBatch : cut) {
    double &sum = sums[microBatch.replica];
    sum += tables.slowest(loadOf(microBatch));
    slowest = std::max(slowest, sum);
  }
  return slowest;
}

TEST(CutMiniBatchTest, EveryRuleMakesPlansThatHold) {
  for (Batching batching : allBatchings())
    for (const char *strategy :
         {"dp=1", "dp=3,zero=1", "pp=2,layers=3+2", "dp=2,pp=3,layers=2+2+1"})
      for (uint64_t seed = 0; seed < 12; ++seed) {
        SCOPED_TRACE(std::string(ruleOf(batching).name) + " " + strategy);
        ExecutableGraph graph = graphOf(strategy);
        Planner planner(graph, costs());
        const int64_t most = 64 + static_cast<int64_t>(seed % 5) * 30;
        PlanOptions options = optionsOf(batching, most);
        Lengths lengths =
            randomLengths(seed, static_cast<int>(1 + seed * 5 % 40), 64);
        options.dynamicLimits = *planner.largestDynamicBytes(options, true);
        for (bool trains : {true, false}) {
          auto plan = trains ? planner.training(lengths, 1, options)
                             : planner.evaluation(lengths, 1, options);
          ASSERT_TRUE(plan.isOk()) << plan.status().message();
          Status status = verifyPlan(graph, *plan, lengths, {});
          EXPECT_TRUE(status.isOk()) << status.message();
          int replica = 0;
          for (const plan::MicroBatch &microBatch : plan->microBatches) {
            EXPECT_LE(loadOf(microBatch).queries, most);
            EXPECT_GE(microBatch.replica, replica);
            replica = microBatch.replica;
            for (const plan::Segment &segment : microBatch.segments) {
              const int64_t length = lengths[segment.sample];
              if (!ruleOf(batching).pads || !trains)
                EXPECT_EQ(segment.length, length);
              else if (batching == Batching::Packed)
                EXPECT_EQ(segment.length, 64);
              else if (batching == Batching::PackedMasked)
                EXPECT_GE(segment.length, length);
              else
                EXPECT_EQ(segment.length, microBatch.segments[0].length);
            }
          }
        }
      }
}

// With one stage the objective would have one micro-batch of all.
TEST(CutMiniBatchTest, NoReplicaIsIdleWhereThereAreSamples) {
  for (Batching batching : {Batching::Ragged, Batching::Padded})
    for (int replicas : {2, 3, 4})
      for (int samples = 1; samples <= 9; ++samples)
        for (const char *stages : {",pp=1", ",pp=2,layers=3+2"}) {
          auto cut =
              cutMiniBatch(graphOf("dp=" + std::to_string(replicas) + stages),
                           costs(1), randomLengths(replicas, samples, 20),
                           optionsOf(batching, 1024), true);
          ASSERT_TRUE(cut.isOk()) << cut.status().message();
          std::set<int> busy;
          for (const plan::MicroBatch &microBatch : *cut)
            busy.insert(microBatch.replica);
          EXPECT_EQ(busy.size(), std::min(replicas, samples))
              << ruleOf(batching).name << stages << " " << samples;
        }
}

TEST(CutMiniBatchTest, ReplicasAreNoLessEvenThanWithoutMicroBatches) {
  ExecutableGraph graph = graphOf("dp=4");
  CostModel known = costs();
  double ratios = 0;
  constexpr int rounds = 40;
  for (uint64_t seed = 0; seed < rounds; ++seed) {
    Lengths lengths = randomLengths(seed, 60 + static_cast<int>(seed), 64);
    PlanOptions options = optionsOf(Batching::Ragged, 256);
    StageTables tables(graph, known, options, true, 256);
    double slowest[2];
    for (Batching batching : {Batching::Ragged, Batching::Tokens}) {
      options.batching = batching;
      auto cut = cutMiniBatch(graph, known, lengths, options, true);
      slowest[batching == Batching::Tokens] = slowestReplica(*cut, tables);
    }
    EXPECT_LE(slowest[0], 1.02 * slowest[1]) << seed;
    ratios += slowest[0] / slowest[1] / rounds;
  }
  EXPECT_LE(ratios, 1.005);
}

/// All ways to put samples into micro-batches and these onto replicas.
double bestOfAll(const Lengths &lengths, int replicas, int64_t most, bool pads,
                 const StageTables &tables) {
  struct Bin {
    int replica;
    std::vector<int64_t> lengths;
  };
  std::vector<Bin> bins;
  double best = std::numeric_limits<double>::infinity();
  auto load = [&](const Bin &bin) {
    Load load;
    int64_t longest = *std::max_element(bin.lengths.begin(), bin.lengths.end());
    for (int64_t length : bin.lengths)
      load += loadOfSample(pads ? longest : length);
    return load;
  };
  std::function<void(size_t)> place = [&](size_t sample) {
    if (sample == lengths.size()) {
      std::vector<double> sums(replicas, 0);
      for (const Bin &bin : bins)
        sums[bin.replica] += tables.slowest(load(bin));
      best = std::min(best, *std::max_element(sums.begin(), sums.end()));
      return;
    }
    for (size_t b = 0; b < bins.size(); ++b) {
      bins[b].lengths.push_back(lengths[sample]);
      if (load(bins[b]).queries <= most)
        place(sample + 1);
      bins[b].lengths.pop_back();
    }
    for (int replica = 0; replica < replicas; ++replica) {
      bins.push_back({replica, {lengths[sample]}});
      place(sample + 1);
      bins.pop_back();
    }
  };
  place(0);
  return best;
}

// Equations of the objective are exact, replicas are not: what is left of a
// few samples' fit onto replicas.
TEST(CutMiniBatchTest, NearTheBestOfAllCutsOnReplicas) {
  for (Batching batching : {Batching::Ragged, Batching::Padded}) {
    int optimal = 0;
    double ratios = 0, worst = 0;
    constexpr int rounds = 60;
    for (uint64_t seed = 0; seed < rounds; ++seed) {
      const int replicas = 1 + static_cast<int>(seed % 3);
      ExecutableGraph graph = graphOf("dp=" + std::to_string(replicas));
      Lengths lengths = randomLengths(seed, 2 + static_cast<int>(seed % 4), 60);
      PlanOptions options = optionsOf(batching, 80);
      CostModel known = costs(1e-5);
      StageTables tables(graph, known, options, true, 80);
      auto cut = cutMiniBatch(graph, known, lengths, options, true);
      double best = bestOfAll(lengths, replicas, 80,
                              batching == Batching::Padded, tables);
      double ratio = slowestReplica(*cut, tables) / best;
      EXPECT_GE(ratio, 1 - 1e-12);
      optimal += ratio < 1 + 1e-9;
      ratios += ratio / rounds;
      worst = std::max(worst, ratio);
    }
    EXPECT_GE(optimal, rounds * 8 / 10) << ruleOf(batching).name;
    EXPECT_LE(ratios, 1.02) << ruleOf(batching).name;
    EXPECT_LE(worst, 1.5) << ruleOf(batching).name;
  }
}

// Rules that pack by tokens weigh pairs by what they cost.
TEST(CutMiniBatchTest, PairsWeighInRulesThatGoByTokens) {
  auto shortBesideLong = [](const CostModel &costs) {
    auto cut = cutMiniBatch(graphOf("dp=2"), costs, {40, 8, 8, 8, 8, 8, 8, 8},
                            optionsOf(Batching::Tokens, 256), true);
    EXPECT_TRUE(cut.isOk()) << cut.status().message();
    size_t beside = 0;
    for (const plan::MicroBatch &microBatch : *cut)
      for (const plan::Segment &segment : microBatch.segments)
        if (segment.sample == 0)
          beside = microBatch.segments.size() - 1;
    return beside;
  };
  // Of 96 tokens 40 and 8 are half. Blocks take 1080 flops for a token and 67.5
  // for a pair, the head 396: with a pair as 0.046 tokens, 40 in a row are 77, and
  // seven times 8 are 66.
  EXPECT_EQ(shortBesideLong(costs()), 0u);
  EXPECT_EQ(shortBesideLong(costs(1)), 1u); // where work costs nothing
}

// Whether an order other than 1F1B is needed, and seconds of the slowest replica,
// by what the search is documented to go by.
std::pair<bool, double> timeOf(const MicroBatches &cut,
                               const ExecutableGraph &graph,
                               const StageTables &tables,
                               const PlanOptions &options) {
  std::pair<bool, double> slowest = {false, 0};
  plan::Plan plan;
  plan.microBatches = cut;
  for (int replica = 0; replica < graph.replicas(); ++replica) {
    PipelineProblem problem;
    std::vector<int> own;
    for (int m = 0; m < plan.microBatchCount(); ++m)
      if (cut[m].replica == replica)
        own.push_back(m);
    for (int stage = 0; stage < graph.stages(); ++stage) {
      problem.forward.emplace_back();
      problem.backward.emplace_back();
      for (int m : own) {
        problem.forward[stage].push_back(tables.forward(stage, loadOf(cut[m])));
        problem.backward[stage].push_back(
            tables.backward(stage, loadOf(cut[m])));
      }
    }
    if (!options.dynamicLimits.empty()) {
      holdBlocks(problem, graph, plan, own, options);
      limitStages(problem, graph, replica, options,
                  std::vector<int64_t>(graph.ranks(), 0));
    }
    double seconds = makespanWithin(problem, options.schedule);
    if (std::isinf(seconds)) {
      slowest.first = true;
      seconds = makespanWithin(problem, Schedule::Adaptive);
    }
    slowest.second = std::max(slowest.second, seconds);
  }
  return slowest;
}

// Of what a replica has, or may have, in 1, 2, 3, 4, 6 and 8 micro-batches, and of
// what leaves room for as many as 1F1B has in flight, none is better.
TEST(CutMiniBatchTest, NoShareIsBetter) {
  int others = 0, better = 0;
  for (uint64_t seed = 0; seed < 240; ++seed) {
    SCOPED_TRACE(seed);
    const char *strategies[] = {"pp=2,layers=3+2", "pp=5,layers=1+1+1+1+1",
                                "dp=2,pp=3,layers=2+2+1", "dp=3"};
    ExecutableGraph graph = graphOf(strategies[seed % 4]);
    const int replicas = graph.replicas();
    CostModel known = costs(seed % 3 ? 3e-6 : 3e-5);
    PlanOptions options =
        optionsOf(seed % 8 < 4 ? Batching::Ragged : Batching::Padded, 1024);
    Lengths lengths = randomLengths(seed, 12 + static_cast<int>(seed % 29), 64);
    const int64_t tokens =
        std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
    StageTables tables(graph, known, options, true, 1024);
    BatchingProblem problem;
    problem.lengths = lengths;
    problem.stages = graph.stages();
    problem.replicas = replicas;
    problem.maxTokens = 1024;
    problem.seconds = [&](const Load &load) { return tables.slowest(load); };
    problem.held = [](const Load &load) { return load.queries; };
    problem.limit = 1024;
    const bool isLimited = seed % 16 >= 5;
    std::optional<HeldBytes> held;
    if (isLimited) {
      for (int rank = 0; rank < graph.ranks(); ++rank)
        options.dynamicLimits.push_back(static_cast<int64_t>(
            (41000 +
             dyna_mix64(seed * 10 + static_cast<uint64_t>(rank)) % 60000) /
            (graph.stages() > 3 ? 3 : 1)));
      held.emplace(graph, options);
      problem.held = [&](const Load &load) { return held->of(load); };
      problem.limit = held->limit();
    }
    auto chosen = cutMiniBatch(graph, known, lengths, options, true);
    ASSERT_TRUE(chosen.isOk()) << chosen.status().message();
    const auto time = timeOf(*chosen, graph, tables, options);
    double squares = 0;
    for (int64_t length : lengths)
      squares += static_cast<double>(length * length);
    const int64_t own = std::min<int64_t>(1024, tokens / replicas);
    const double part = static_cast<double>(own) / static_cast<double>(tokens);
    Load mean;
    mean.queries = mean.keys = own;
    mean.segments = static_cast<int64_t>(lengths.size()) * own / tokens;
    mean.pairs = static_cast<int64_t>(squares * part);
    const int64_t whole = std::min(problem.limit, problem.held(mean));
    std::vector<int64_t> shares;
    for (int64_t parts : {1, 2, 3, 4, 6, 8})
      shares.push_back(whole / parts);
    if (isLimited)
      shares.push_back(problem.limit / problem.stages);
    problem.stages += replicas > 1; // as replicas are not level
    for (int64_t share : shares) {
      problem.share = share;
      auto cut = ruleOf(options.batching).cut(problem);
      ASSERT_TRUE(cut.isOk()) << cut.status().message();
      const auto other = timeOf(*cut, graph, tables, options);
      EXPECT_LE(time, other) << share;
      others += other.first;
      better += time < other;
    }
  }
  EXPECT_GT(others, 50); // cuts that 1F1B cannot run
  EXPECT_GT(better, 500);
}

TEST(CutMiniBatchTest, RowsAreAsOtherProgramsMakeThem) {
  const Lengths lengths = {40, 30, 20, 10, 60, 4, 24};
  auto textOf = [&](Batching batching, int64_t most, const Lengths &lengths) {
    std::string text;
    auto cut = cutMiniBatch(graphOf("dp=2"), costs(), lengths,
                            optionsOf(batching, most), true);
    EXPECT_TRUE(cut.isOk()) << cut.status().message();
    for (const plan::MicroBatch &microBatch : *cut) {
      text += std::to_string(microBatch.replica) + ":";
      for (const plan::Segment &segment : microBatch.segments)
        text += " " + std::to_string(segment.sample) + "x" +
                std::to_string(segment.length);
      text += "; ";
    }
    return text;
  };
  // 64 positions: two rows fit 128 tokens, and 150 too.
  EXPECT_EQ(textOf(Batching::Samples, 128, lengths),
            "0: 0x40 1x40; 0: 4x60 5x60; 1: 2x20 3x20; 1: 6x24; ");
  EXPECT_EQ(textOf(Batching::PackedMasked, 150, lengths),
            "0: 0x40 2x20 5x4 1x30 3x10 6x24; 1: 4x64; ");
  PlanOptions options = optionsOf(Batching::Packed, 150);
  EXPECT_EQ(joinedSamples(model(), lengths, options),
            (std::vector<Lengths>{{0, 2, 5}, {1, 3, 6}, {4}}));
  const Lengths joined = joinedLengths(model(), lengths, options);
  EXPECT_EQ(joined, (Lengths{64, 64, 60}));
  EXPECT_EQ(textOf(Batching::Packed, 150, joined), "0: 0x64 1x64; 1: 2x64; ");
  // No row is longer than a micro-batch or the model's positions.
  options.maxTokensPerMicroBatch = 60;
  EXPECT_EQ(joinedLengths(model(), lengths, options),
            (Lengths{60, 44, 60, 24}));
  for (Batching batching : allBatchings()) {
    options.batching = batching;
    if (!ruleOf(batching).joins)
      EXPECT_EQ(joinedLengths(model(), lengths, options), lengths);
  }
}

// Where nobody says, which docs, help and the choice of strategies go by.
TEST(CutMiniBatchTest, MicroBatchesUsuallyHave4096Tokens) {
  PlanOptions options;
  options.batching = Batching::Tokens;
  auto cut =
      cutMiniBatch(graphOf("pp=1"), costs(), Lengths(12, 1024), options, true);
  ASSERT_TRUE(cut.isOk()) << cut.status().message();
  EXPECT_EQ(cut->size(), 3);
  for (const plan::MicroBatch &microBatch : *cut)
    EXPECT_EQ(loadOf(microBatch).queries, 4096);
}

TEST(CutMiniBatchTest, LongSamplesStandAloneAndRelaxNothing) {
  // Of 100 tokens at most; in shares one of 90 is above every other.
  Lengths lengths(40, 10);
  lengths.push_back(90);
  auto cut = cutMiniBatch(graphOf("pp=4,layers=1+2+1+1"), costs(), lengths,
                          optionsOf(Batching::Padded, 100), true);
  ASSERT_TRUE(cut.isOk()) << cut.status().message();
  for (const plan::MicroBatch &microBatch : *cut)
    if (microBatch.segments[0].length == 90)
      EXPECT_EQ(microBatch.segments.size(), 1);
    else
      EXPECT_LE(loadOf(microBatch).queries, 100);
}

TEST(CutMiniBatchTest, WhatCannotBeCutIsNamed) {
  auto message = [](const Lengths &lengths, Batching batching) {
    return cutMiniBatch(graphOf("dp=2"), costs(), lengths,
                        optionsOf(batching, 32), true)
        .status()
        .message();
  };
  for (Batching batching : allBatchings()) {
    EXPECT_EQ(message({5, 33, 4}, batching),
              "sample 1 has 33 tokens, but a micro-batch holds at most 32");
    EXPECT_THAT(message({-1}, batching), HasSubstr("sample 0 has -1 tokens"));
    EXPECT_EQ(message({}, batching), "");
    EXPECT_EQ(message({0, 0, 3}, batching), "");
  }
}

// What is behind a sample must be nobody's business.
// Slices that the clock of the schedule finds faster can be slower as programs. They are
// compared with the programs of whole micro-batches at the end.
TEST(AutoSlicesTest, SlicesThatAreSlowerAsProgramsStayWhole) {
  struct Case {
    const char *strategy;
    double launch;
    int64_t tokens;
    Schedule schedule;
    Lengths lengths;
  };
  for (const Case &one : {Case{"dp=2,pp=3,layers=1+3+1",
                               3e-5,
                               768,
                               Schedule::Adaptive,
                               {572, 630, 302, 270, 621}},
                          {"dp=2,pp=3,layers=1+3+1",
                           1e-4,
                           889,
                           Schedule::Adaptive,
                           {522, 105, 251, 33, 339, 455}},
                          {"dp=2,pp=3,layers=1+3+1",
                           3e-5,
                           439,
                           Schedule::OneForwardOneBackward,
                           {157, 292, 381, 309}}}) {
    SCOPED_TRACE(one.strategy);
    const ExecutableGraph graph = graphOf(one.strategy);
    const CostModel cost = costs(one.launch);
    const Planner planner(graph, cost);
    PlanOptions options = optionsOf(Batching::Ragged, one.tokens);
    options.schedule = one.schedule;
    const int64_t tokens =
        std::accumulate(one.lengths.begin(), one.lengths.end(), INT64_C(0));
    const auto whole = planner.training(one.lengths, tokens, options);
    options.slices.policy = SlicePolicy::Auto;
    const auto chosen = planner.training(one.lengths, tokens, options);
    ASSERT_TRUE(whole.isOk() && chosen.isOk());
    EXPECT_LE(timePlan(graph, *chosen, cost)->makespan,
              timePlan(graph, *whole, cost)->makespan);
  }
}

TEST(CutMiniBatchTest, AttentionThatLooksBehindIsNotPadded) {
  plan::Manifest manifest = attentive();
  manifest.mutable_kinds(1)->set_causal(false);
  manifest.set_hash(manifestHash(manifest));
  Model whole = *Model::create(manifest);
  Planner planner(whole);
  Lengths lengths = {5, 9};
  for (Batching batching : allBatchings()) {
    auto plan = planner.training(lengths, 14, optionsOf(batching, 32));
    EXPECT_EQ(plan.isOk(), !ruleOf(batching).pads);
    if (!plan.isOk()) {
      EXPECT_THAT(plan.status().message(), HasSubstr("is not causal"));
      continue;
    }
    ExecutableGraph graph = planner.graph();
    VerifyOptions verify;
    EXPECT_TRUE(verifyPlan(graph, *plan, lengths, verify).isOk());
    // A plan that was changed by hand is proven too.
    plan->microBatches[0].segments[0].length += 1;
    EXPECT_THAT(verifyPlan(graph, *plan, lengths, verify).message(),
                HasSubstr("has attention that is not causal"));
  }
}

} // namespace
