//===- CostEstimateTest.cpp - Estimates, worked out by hand ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostModel.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "test/runtime/plan/TinyDegrees.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::DoubleEq;
using testing::ElementsAre;

namespace {

constexpr int block = 1;                        // kind
constexpr double W = tinyWidth, H = tinyHidden; // of f64

/// The tiny model, and what two ranks have of it: three hidden columns each,
/// half of the tokens between layers.
plan::Manifest manifestOfTwo() {
  plan::Manifest manifest = tinyManifest();
  plan::LayerKind *half = addDegree(manifest, 2, true)->mutable_kinds(block);
  half->set_flops_per_token(static_cast<int64_t>(4 * W * 3));
  half->mutable_tiers(DYNA_TIER_PRODUCTS)->set_tq(static_cast<int64_t>(8 * 3));
  half->mutable_tiers(DYNA_TIER_ELEMENTWISE)
      ->set_tq(static_cast<int64_t>(8 * (W + 3)));
  return manifest;
}

Model viewOf(plan::Manifest manifest) {
  auto model = Model::create(std::move(manifest));
  EXPECT_TRUE(model.isOk()) << model.status().message();
  return *model;
}

CostModel costsOf(const Model &model, const std::string &rates,
                  const std::string &cluster = "") {
  auto table = CostTable::parse("device { f32_flops: 1 bf16_flops: 1 " + rates +
                                    " } cluster { " + cluster + " }",
                                "costs.txt");
  EXPECT_TRUE(table.isOk()) << table.status().message();
  auto costs = CostModel::create(model, *table);
  EXPECT_TRUE(costs.isOk()) << costs.status().message();
  return *costs;
}

// Tiers have room for a multiple of 32 rows.
constexpr Load load = callLoad(63, 0, 63);
constexpr double room = 64;

TEST(CostEstimateTest, OneRank) {
  Model model = viewOf(manifestOfTwo());
  CostModel bytes = costsOf(model, "f64_flops: 1e30 bytes_per_second: 8");
  double weights = 2 * H * W + H, rows = 63 * W;
  double products = room * H, elementwise = room * (W + H);
  double deferred = room * (W + H);
  auto seconds = [&](cost::Direction direction) {
    return bytes.seconds({block}, direction, load);
  };
  double saved = rows + products + elementwise;
  EXPECT_DOUBLE_EQ(seconds(cost::FORWARD), weights + saved + rows);
  EXPECT_DOUBLE_EQ(seconds(cost::BACKWARD), 3 * weights + saved + 2 * rows);
  EXPECT_DOUBLE_EQ(seconds(cost::BACKWARD_INPUT),
                   weights + saved + 2 * rows + deferred);
  EXPECT_DOUBLE_EQ(seconds(cost::BACKWARD_WEIGHT),
                   saved + deferred + 2 * weights);
  EXPECT_DOUBLE_EQ(seconds(cost::RECOMPUTE_SELECTIVE), saved);
  EXPECT_DOUBLE_EQ(seconds(cost::RECOMPUTE_FULL), weights + saved);
}

// Of 63 tokens the first of two ranks has 32 between layers.
TEST(CostEstimateTest, OneOfTwoRanks) {
  Model model = viewOf(manifestOfTwo());
  KindAt half{block, 2, true};
  CostModel bytes = costsOf(model, "f64_flops: 1e30 bytes_per_second: 8");
  double weights = 2 * 3 * W + 3, rows = 32 * W;
  double saved = rows + room * 3 + room * (W + 3);
  EXPECT_DOUBLE_EQ(bytes.seconds(half, cost::FORWARD, load),
                   weights + saved + rows);
  EXPECT_DOUBLE_EQ(bytes.seconds(half, cost::RECOMPUTE_SELECTIVE, load), saved);
  CostModel flops = costsOf(model, "f64_flops: 10 bytes_per_second: 1e30");
  EXPECT_DOUBLE_EQ(flops.seconds(half, cost::FORWARD, load),
                   4 * W * 3 * 63 / 10);
  // Without sp all ranks have all tokens, and here a degree of its own.
  EXPECT_DOUBLE_EQ(flops.seconds({block}, cost::FORWARD, load),
                   4 * W * H * 63 / 10);
}

// A device reaches a part of its rates.
TEST(CostEstimateTest, ReachesCount) {
  Model model = viewOf(manifestOfTwo());
  for (const char *rates : {"f64_flops: 10 bytes_per_second: 1e30",
                            "f64_flops: 1e30 bytes_per_second: 10"}) {
    std::string text = rates;
    double all = costsOf(model, text).seconds({block}, cost::FORWARD, load);
    CostModel half =
        costsOf(model, text + " flops_reach: 0.5 bytes_reach: 0.5");
    EXPECT_DOUBLE_EQ(half.seconds({block}, cost::FORWARD, load), 2 * all);
  }
}

// What the manifest says of a function's exchanges, on one node and on two.
TEST(CostEstimateTest, ExchangesComeOnTop) {
  plan::Manifest manifest = manifestOfTwo();
  plan::LayerKind *half = manifest.mutable_degrees(0)->mutable_kinds(block);
  auto *role = half->mutable_roles(DYNA_ROLE_FORWARD);
  role->clear_exchanges();
  plan::LayerExchange *gather = role->add_exchanges();
  gather->set_group(DYNA_GROUP_TP);
  for (int i = 0; i < 2; ++i) { // two tensors as one
    auto *tensor = gather->add_tensors();
    tensor->set_kind(plan::LayerExchange::ALL_GATHER);
    tensor->mutable_bytes()->set_tq(8);
  }
  auto *dealt = gather->add_tensors(); // each of the two has half of its tokens
  dealt->set_kind(plan::LayerExchange::ALL_GATHER);
  dealt->set_dealt_group(DYNA_GROUP_TP);
  dealt->mutable_bytes()->set_tq(24);
  auto *chunks = role->add_exchanges();
  chunks->set_group(DYNA_GROUP_TP);
  chunks->set_per_chunk(true);
  auto *sum = chunks->add_tensors();
  sum->set_kind(plan::LayerExchange::ALL_REDUCE);
  sum->mutable_bytes()->set_tq(4);
  Model model = viewOf(std::move(manifest));
  CostModel costs =
      costsOf(model, "f64_flops: 1e30 bytes_per_second: 1e30",
              "devices_per_node: 2 inside { latency_seconds: 3 "
              "bytes_per_second: 2 } between { latency_seconds: 50 "
              "bytes_per_second: 1 }");
  // 600 targets are two chunks of 512 rows.
  const Load tokens = callLoad(1000, 0, 600);
  double gathers = 2 * (3 + 8 * 1000 / 2 / 2.0) + 3 + 24 * 500 / 2 / 2.0;
  double sums = 2 * 2 * (3 + 4 * 300 / 2 / 2.0);
  auto seconds = [&](int perNode, cost::Direction direction) {
    return costs.estimateExchanges({block, 2, true, perNode}, direction,
                                   tokens);
  };
  EXPECT_DOUBLE_EQ(seconds(2, cost::FORWARD), gathers + sums);
  EXPECT_DOUBLE_EQ(seconds(0, cost::FORWARD), gathers + sums);
  EXPECT_DOUBLE_EQ(seconds(1, cost::FORWARD), 2 * (50 + 8 * 1000 / 2) + 50 +
                                                  24 * 500 / 2 +
                                                  2 * 2 * (50 + 4 * 300 / 2));
  EXPECT_NEAR(costs.seconds({block, 2, true, 2}, cost::FORWARD, tokens),
              gathers + sums, 1e-9);
  EXPECT_DOUBLE_EQ(seconds(2, cost::UPDATE), 0);
  EXPECT_DOUBLE_EQ(costs.estimateExchanges({block}, cost::FORWARD, tokens), 0);
}

// The cut is for 4096 tokens in samples as long as the model takes, here 64:
// 64 samples of 64 * 65 / 2 pairs.
TEST(CostEstimateTest, TheCutCountsAttention) {
  plan::Manifest manifest = tinyManifest();
  manifest.mutable_kinds(block)->set_causal(true);
  manifest.mutable_kinds(block)->set_attention_flops_per_pair(5);
  Model model = viewOf(std::move(manifest));
  CostModel flops = costsOf(model, "f64_flops: 3 bytes_per_second: 1e30");
  double forward = 4 * W * H * 4096 + 5.0 * 64 * (64 * 65 / 2);
  double head = 2.0 * tinyVocabulary * W * 4096;
  std::vector<double> costs =
      layerCosts(flops, Strategy(), {plan::RECOMPUTE_NONE});
  EXPECT_THAT(std::vector<double>(costs.begin() + 1, costs.end()),
              ElementsAre(DoubleEq(forward), DoubleEq(forward),
                          DoubleEq(forward), DoubleEq(head)));
}

} // namespace
