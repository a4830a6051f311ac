//===- StoredScoresTest.cpp - Attention that keeps its scores -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/StoredScores.h"

#include "runtime/cost/CostModel.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/graph/RankMemory.h"
#include "test/runtime/plan/TinyDegrees.h"

#include <gmock/gmock.h>
#include <numeric>

using namespace dyna;
using testing::HasSubstr;

namespace {

constexpr int block = 1; // kind
constexpr double W = tinyWidth, H = tinyHidden;
constexpr int64_t perPair = 16; // flops, of all four heads

/// The tiny model with four heads, two on each of two ranks. It has no attention
/// to run.
plan::Manifest manifestWithHeads(bool causal) {
  TinyOptions options;
  options.blocks = 2;
  plan::Manifest manifest = tinyManifest(options);
  manifest.mutable_facts()->set_heads(4);
  manifest.mutable_kinds(block)->set_attention_flops_per_pair(perPair);
  manifest.mutable_kinds(block)->set_causal(causal);
  plan::LayerKind *half = addDegree(manifest, 2, false)->mutable_kinds(block);
  half->set_attention_flops_per_pair(perPair / 2);
  manifest.set_hash(manifestHash(manifest));
  return manifest;
}

Model modelOf(plan::Manifest manifest) {
  auto model = Model::create(std::move(manifest));
  EXPECT_TRUE(model.isOk()) << model.status().message();
  return *model;
}

CostTable tableOf(const std::string &text) {
  auto table = CostTable::parse(text, "costs.txt");
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return *table;
}

std::string device(const char *rates) {
  return std::string("device { f32_flops: 1 bf16_flops: 1 ") + rates +
         " } cluster {} ";
}

cost::StoredScores scores(int32_t kept, double forward, double backward) {
  cost::StoredScores scores;
  scores.set_kept_bytes(kept);
  scores.set_forward_bytes(forward);
  scores.set_backward_bytes(backward);
  return scores;
}

constexpr char described[] =
    "scores { kept_bytes: 5 forward_bytes: 13 backward_bytes: 19 }";

// Two samples of 3 and 60 tokens see 6 and 1830 pairs of 9 and 3600.
constexpr Load loadOfBoth() {
  Load load = loadOfSample(3) + loadOfSample(60);
  load.targets = load.queries;
  return load;
}
constexpr Load load = loadOfBoth();
constexpr double allPairs = 3609;

TEST(StoredScoresTest, ProductsAreOfAllPairsAndScoresMove) {
  Model model = *keepScores(modelOf(manifestWithHeads(true)), scores(5, 1, 1));
  CostModel flops = *CostModel::create(
      model,
      tableOf(device("f64_flops: 10 bytes_per_second: 1e30") + described));
  auto layer = [&](double pairs) {
    return (4 * W * H * 63 + static_cast<double>(perPair) * pairs) / 10;
  };
  EXPECT_DOUBLE_EQ(flops.seconds({block}, cost::FORWARD, load),
                   layer(allPairs));
  EXPECT_DOUBLE_EQ(flops.seconds({block}, cost::BACKWARD, load),
                   2 * layer(allPairs));
  // What is made again of the attention is all of it.
  EXPECT_DOUBLE_EQ(flops.seconds({block}, cost::RECOMPUTE_SELECTIVE, load),
                   perPair * allPairs / 10);
  CostModel bytes = *CostModel::create(
      model,
      tableOf(device("f64_flops: 1e30 bytes_per_second: 10") + described));
  Model fused = modelOf(manifestWithHeads(true));
  CostModel without = *CostModel::create(
      fused, tableOf(device("f64_flops: 1e30 bytes_per_second: 10")));
  auto more = [&](const KindAt &at, cost::Direction direction) {
    return bytes.seconds(at, direction, load) -
           without.seconds(at, direction, load);
  };
  auto moves = [](double heads, double perPair) {
    return testing::DoubleNear(heads * perPair * allPairs / 10, 1e-6);
  };
  for (auto direction :
       {cost::FORWARD, cost::RECOMPUTE_SELECTIVE, cost::RECOMPUTE_FULL})
    EXPECT_THAT(more({block}, direction), moves(4, 13));
  for (auto direction : {cost::BACKWARD, cost::BACKWARD_INPUT})
    EXPECT_THAT(more({block}, direction), moves(4, 19));
  for (auto direction : {cost::BACKWARD_WEIGHT, cost::UPDATE})
    EXPECT_THAT(more({block}, direction), moves(4, 0));
  // A rank has its own heads.
  EXPECT_THAT(more({block, 2}, cost::FORWARD), moves(2, 13));
  // Layers without attention have no scores.
  EXPECT_THAT(more({block + 1}, cost::FORWARD), moves(0, 13));
}

TEST(StoredScoresTest, PairsThatAreSeenAllAreNotCountedTwice) {
  Model model = *keepScores(modelOf(manifestWithHeads(false)), scores(5, 1, 1));
  CostModel flops = *CostModel::create(
      model,
      tableOf(device("f64_flops: 10 bytes_per_second: 1e30") + described));
  EXPECT_DOUBLE_EQ(flops.seconds({block}, cost::FORWARD, load),
                   (4 * W * H * 63 + perPair * allPairs) / 10);
}

TEST(StoredScoresTest, TheyAreKeptUntilTheyAreMadeAgain) {
  Model fused = modelOf(manifestWithHeads(true));
  Model model = *keepScores(fused, scores(5, 13, 19));
  EXPECT_NE(model.hash(), fused.hash());
  RankView with = RankView::whole(model), without = RankView::whole(fused);
  plan::MicroBatch microBatch;
  microBatch.segments = {{0, 0, 3}, {1, 0, 60}};
  const Load load = loadOf(microBatch);
  EXPECT_EQ(load.pairs, 3609);
  const int64_t bytes = dyna_align_block(4 * 5 * 3609);
  constexpr int layer = 1;
  EXPECT_EQ(with.keptBytes(layer, plan::RECOMPUTE_NONE, load),
            without.keptBytes(layer, plan::RECOMPUTE_NONE, load) + bytes);
  for (auto mode : {plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL}) {
    EXPECT_EQ(with.keptBytes(layer, mode, load),
              without.keptBytes(layer, mode, load));
    EXPECT_EQ(with.lateBytes(layer, mode, false, load),
              without.lateBytes(layer, mode, false, load) + bytes);
  }
  EXPECT_EQ(with.keptBytes(0, plan::RECOMPUTE_NONE, load),
            without.keptBytes(0, plan::RECOMPUTE_NONE, load));
}

// Whatever the lengths, what the largest micro-batch is taken for is room for it.
TEST(StoredScoresTest, PlansFitTheLeastRoom) {
  Model model =
      *keepScores(modelOf(manifestWithHeads(true)), scores(5, 13, 19));
  Strategy strategy;
  strategy.pp = 2;
  strategy.layers = {2, 2};
  auto graph = ExecutableGraph::create(model, strategy);
  ASSERT_TRUE(graph.isOk()) << graph.status().message();
  Planner planner(*graph, *CostModel::create(
                              model, tableOf(device("f64_flops: 1e9 "
                                                    "bytes_per_second: 1e9") +
                                             described)));
  PlanOptions options;
  options.schedule = Schedule::Adaptive;
  options.maxTokensPerMicroBatch = 100;
  auto least = planner.leastDynamicBytes(options, true);
  ASSERT_TRUE(least.isOk()) << least.status().message();
  options.dynamicLimits = *least;
  for (const std::vector<int64_t> &lengths :
       {std::vector<int64_t>{64, 36, 64, 64}, {50, 50, 64, 1}, {64, 64, 64}}) {
    auto plan = planner.training(
        lengths, std::accumulate(lengths.begin(), lengths.end(), INT64_C(0)),
        options);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    VerifyOptions verify;
    verify.limits = *least;
    Status proven = verifyPlan(*graph, *plan, lengths, verify);
    EXPECT_TRUE(proven.isOk()) << proven.message();
  }
}

TEST(StoredScoresTest, WhatDoesNotBelongTogetherIsRefused) {
  Model fused = modelOf(manifestWithHeads(true));
  EXPECT_THAT(
      CostModel::create(fused, tableOf(described)).status().message(),
      HasSubstr("costs.txt: has scores, of attention that is not fused"));
  Model model = *keepScores(fused, scores(5, 13, 19));
  EXPECT_THAT(CostModel::create(model, tableOf(device("f64_flops: 1 "
                                                      "bytes_per_second: 1")))
                  .status()
                  .message(),
              HasSubstr("costs.txt: has no scores, but the model keeps them"));
  EXPECT_THAT(keepScores(model, scores(5, 1, 1)).status().message(),
              HasSubstr("keeps its scores already"));
  plan::Manifest headless = manifestWithHeads(true);
  headless.mutable_facts()->set_heads(0);
  EXPECT_THAT(keepScores(modelOf(headless), scores(5, 1, 1)).status().message(),
              HasSubstr("how many heads"));
  plan::Manifest blind = tinyManifest();
  blind.mutable_facts()->set_heads(4);
  EXPECT_THAT(keepScores(modelOf(blind), scores(5, 1, 1)).status().message(),
              HasSubstr("no layer of the model has attention"));
  plan::Manifest many = manifestWithHeads(true);
  many.mutable_facts()->set_heads(1 << 20);
  EXPECT_THAT(keepScores(modelOf(many), scores(5, 1, 1)).status().message(),
              HasSubstr("bytes per pair are out of range"));
}

TEST(StoredScoresTest, NumbersAreChecked) {
  auto refused = [](const std::string &text) {
    return CostTable::parse("scores { " + text + " }", "costs.txt")
        .status()
        .message();
  };
  EXPECT_EQ(refused("forward_bytes: 1"),
            "costs.txt: scores: kept_bytes expects 1 to 64, but got 0");
  EXPECT_EQ(refused("kept_bytes: 65"),
            "costs.txt: scores: kept_bytes expects 1 to 64, but got 65");
  EXPECT_EQ(refused("kept_bytes: 5 forward_bytes: -1"),
            "costs.txt: scores: forward_bytes expects 0 to 1024, but got -1");
  EXPECT_EQ(refused("kept_bytes: 5 backward_bytes: nan"),
            "costs.txt: scores: backward_bytes expects 0 to 1024, but got nan");
  // What is described stands for what nobody says, and for nothing else.
  CostTable table = tableOf("scores { kept_bytes: 2 }");
  table.describeScores();
  EXPECT_EQ(table.scores()->kept_bytes(), 2);
  CostTable host = CostTable::host();
  EXPECT_FALSE(host.scores());
  host.describeScores();
  EXPECT_EQ(host.scores()->kept_bytes(), 5);
}

} // namespace
