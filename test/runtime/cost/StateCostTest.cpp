//===- StateCostTest.cpp - Seconds of pruned and frozen layers ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostModel.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/plan/TinyDegrees.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::DoubleNear;
using testing::HasSubstr;

namespace {

constexpr int block = 1, head = 4; // layers
constexpr double W = tinyWidth, H = tinyHidden, V = tinyVocabulary;
const char *const table = "sparse { "
                          "points { sparsity: 0.5 forward: 1.8 } "
                          "points { sparsity: 0.75 forward: 1.1 "
                          "input_gradient: 1 weight_gradient: 0.9 } "
                          "points { sparsity: 0.9 forward: 0.5 "
                          "input_gradient: 0.6 weight_gradient: 0.7 } } ";

Model tiny() { return *Model::create(tinyManifest()); }

StatusOr<CostTable> parse(const std::string &more) {
  return CostTable::parse("device { f64_flops: 10 f32_flops: 1 bf16_flops: 1 "
                          "bytes_per_second: 1e30 launch_seconds: 3 } " +
                              more,
                          "costs.txt");
}

CostModel costsOf(const Model &model, const std::string &more = table) {
  return *CostModel::create(model, *parse(more));
}

LayerStates with(const Model &model, int layer, double sparsity,
                 bool frozen = false) {
  LayerStates states(model.layers());
  states[layer].sparsity = sparsity;
  states[layer].frozen = frozen;
  return states;
}

double seconds(const CostModel &costs, int layer, cost::Direction direction,
               const Load &load = callLoad(64, 0, 64)) {
  return costs.seconds(costs.at(layer, Strategy()), direction, load);
}

constexpr cost::Direction allDirections[] = {
    cost::FORWARD,         cost::BACKWARD,       cost::BACKWARD_INPUT,
    cost::BACKWARD_WEIGHT, cost::RECOMPUTE_FULL, cost::RECOMPUTE_SELECTIVE,
    cost::UPDATE,          cost::GRAD_NORM};

TEST(StateCostTest, DenseStatesChangeNothing) {
  Model model = tiny();
  const CostModel before = costsOf(model);
  CostModel costs = before;
  ASSERT_TRUE(costs.setStates(LayerStates(model.layers())).isOk());
  EXPECT_EQ(costs.variants(), before.variants());
  for (int l = 0; l < model.layers(); ++l)
    for (cost::Direction direction : allDirections)
      EXPECT_EQ(seconds(costs, l, direction), seconds(before, l, direction));
  EXPECT_EQ(before.variantOf(block), model.layer(block).kind());
}

TEST(StateCostTest, ProductsTakeTheirShareOfTheTable) {
  Model model = tiny();
  CostModel costs = costsOf(model);
  ASSERT_TRUE(costs.setStates(with(model, block, 0.9)).isOk());
  EXPECT_EQ(costs.layerStates()[block].form, WeightForm::Csr);
  const double products = 4 * W * H * 64 / 10, launch = 3;
  auto is = [&](double share) {
    return DoubleNear(share * products + launch, 1e-9);
  };
  EXPECT_THAT(seconds(costs, block, cost::FORWARD), is(0.5));
  EXPECT_THAT(seconds(costs, block, cost::RECOMPUTE_FULL), is(0.5));
  EXPECT_THAT(seconds(costs, block, cost::BACKWARD), is(0.6 + 0.7));
  EXPECT_THAT(seconds(costs, block, cost::BACKWARD_INPUT), is(0.6));
  EXPECT_THAT(seconds(costs, block, cost::BACKWARD_WEIGHT), is(0.7));
  EXPECT_THAT(seconds(costs, block + 1, cost::FORWARD), is(1)); // dense
  EXPECT_NE(costs.variantOf(block), costs.variantOf(block + 1));
  EXPECT_EQ(costs.variantOf(block + 1), costs.variantOf(block + 2));
  // Two matrices of W x H, and a vector of H.
  EXPECT_NEAR(seconds(costs, block, cost::UPDATE) /
                  seconds(costs, block + 1, cost::UPDATE),
              (0.1 * 2 * W * H + H) / (2 * W * H + H), 1e-9);
}

TEST(StateCostTest, HeadsComputeThreeProductsForward) {
  Model model = tiny();
  CostModel costs = costsOf(model);
  ASSERT_TRUE(costs.setStates(with(model, head, 0.9)).isOk());
  const double products = 2 * W * V * 64 / 10;
  EXPECT_NEAR(seconds(costs, head, cost::FORWARD),
              (0.5 + 0.6 + 0.7) * products + 3, 1e-9);
}

TEST(StateCostTest, SharesLieOnLines) {
  Model model = tiny();
  const CostModel costs = costsOf(model);
  const SparseProducts &sparse = costs.table().sparse();
  auto share = [&](double sparsity, Product product = Product::Forward) {
    return sparse.share(product, WeightForm::Csr, sparsity);
  };
  EXPECT_DOUBLE_EQ(share(0.1), 1.8);
  EXPECT_DOUBLE_EQ(share(0.5), 1.8);
  EXPECT_DOUBLE_EQ(share(0.625), 1.45);
  EXPECT_DOUBLE_EQ(share(0.75), 1.1);
  EXPECT_DOUBLE_EQ(share(0.8), 0.9);
  EXPECT_DOUBLE_EQ(share(0.99), 0.5);
  EXPECT_DOUBLE_EQ(share(0.625, Product::WeightGradient), 1.35);
  EXPECT_DOUBLE_EQ(share(0.9, Product::InputGradient), 0.6);
  for (WeightForm form : {WeightForm::Dense, WeightForm::Masked})
    EXPECT_DOUBLE_EQ(sparse.share(Product::Forward, form, 0.9), 1);
}

TEST(StateCostTest, TheFasterFormIsChosen) {
  Model model = tiny();
  CostModel costs = costsOf(model);
  // The table has 3 at 75 %: masked weights are as fast, and stay.
  for (auto [sparsity, form] : {std::pair(0.0, WeightForm::Dense),
                                {0.01, WeightForm::Masked},
                                {0.5, WeightForm::Masked},
                                {0.75, WeightForm::Masked},
                                {0.76, WeightForm::Csr},
                                {0.95, WeightForm::Csr}}) {
    ASSERT_TRUE(costs.setStates(with(model, block, sparsity)).isOk());
    EXPECT_EQ(costs.layerStates()[block].form, form) << sparsity;
  }
  // Forward alone is slower at 76 %, and a frozen block needs no weight gradient.
  ASSERT_TRUE(costs.setStates(with(model, block, 0.76, true)).isOk());
  EXPECT_EQ(costs.layerStates()[block].form, WeightForm::Masked);
  LayerStates asked = with(model, block, 0.95);
  asked[block].form = WeightForm::Masked;
  ASSERT_TRUE(costs.setStates(asked).isOk());
  EXPECT_EQ(costs.layerStates()[block].form, WeightForm::Masked);
  CostModel none = costsOf(model, "");
  ASSERT_TRUE(none.setStates(with(model, block, 0.95)).isOk());
  EXPECT_EQ(none.layerStates()[block].form, WeightForm::Masked);
}

TEST(StateCostTest, FrozenLayersPassGradientsAlone) {
  Model model = tiny();
  CostModel costs = costsOf(model);
  ASSERT_TRUE(costs.setStates(with(model, block, 0, true)).isOk());
  const double products = 4 * W * H * 64 / 10;
  EXPECT_NEAR(seconds(costs, block, cost::FORWARD), products + 3, 1e-9);
  EXPECT_NEAR(seconds(costs, block, cost::BACKWARD), products + 3, 1e-9);
  EXPECT_NEAR(seconds(costs, block, cost::BACKWARD_INPUT), products + 3, 1e-9);
  EXPECT_EQ(seconds(costs, block, cost::BACKWARD_WEIGHT), 0);
  EXPECT_EQ(seconds(costs, block, cost::UPDATE), 0);
}

TEST(StateCostTest, PrefixesRunForwardAlone) {
  Model model = tiny();
  CostModel costs = costsOf(model);
  LayerStates states = with(model, block, 0.9, true);
  states.front().frozen = states.back().frozen = true; // one shared table
  ASSERT_TRUE(costs.setStates(states).isOk());
  EXPECT_TRUE(costs.layerStates()[block].prefix);
  EXPECT_NEAR(seconds(costs, block, cost::FORWARD),
              0.5 * 4 * W * H * 64 / 10 + 3, 1e-9);
  for (cost::Direction direction : allDirections)
    if (direction != cost::FORWARD)
      EXPECT_EQ(seconds(costs, block, direction), 0);
  // A frozen head makes the gradient of its input, and no more.
  EXPECT_NEAR(seconds(costs, head, cost::FORWARD), 2 * 2 * W * V * 64 / 10 + 3,
              1e-9);
}

// Of measured seconds, products have the share that they have of the estimate.
TEST(StateCostTest, MeasuredSecondsAreScaled) {
  Model model = tiny();
  CostModel costs = costsOf(model, std::string(table) +
                                       "entries { kind: \"block\" direction: "
                                       "FORWARD points { tokens: 64 pairs: 0 "
                                       "seconds: 77 } }");
  ASSERT_TRUE(costs.setStates(with(model, block, 0.9)).isOk());
  const double products = 4 * W * H * 64 / 10;
  const double share = products / (products + 3);
  EXPECT_NEAR(seconds(costs, block, cost::FORWARD), 77 * (1 - 0.5 * share),
              1e-9);
}

TEST(StateCostTest, BadTablesAreRefused) {
  auto refusal = [](const std::string &points) {
    auto made = parse("sparse { " + points + " }");
    return made.isOk() ? std::string() : made.status().message();
  };
  const std::string good = "points { sparsity: 0.5 forward: 1 } ";
  EXPECT_EQ(refusal(good), "");
  EXPECT_THAT(refusal("points { sparsity: 1 forward: 1 }"),
              HasSubstr("costs.txt: sparse: point 1: sparsity expects 0 or "
                        "more and less than 1, but got 1"));
  EXPECT_THAT(refusal(good + good),
              HasSubstr("point 2: sparsity 0.5 follows 0.5: give the points in "
                        "ascending order"));
  EXPECT_THAT(refusal("points { sparsity: 0.5 }"),
              HasSubstr("point 1: forward expects the duration of a dense "
                        "product as 1"));
  EXPECT_THAT(
      refusal("points { sparsity: 0.5 forward: 1 weight_gradient: -1 }"),
      HasSubstr("weight_gradient expects 0, as forward, or a number"));
}

TEST(StateCostTest, DescribedDevicesKnowSparseProducts) {
  for (const char *name : {"a100-40g", "a100-80g", "v100"}) {
    const CostTable described = *CostTable::described(name);
    EXPECT_NEAR(
        described.sparse().share(Product::Forward, WeightForm::Csr, 0.9),
        4.02 / 7.29, 1e-3)
        << name;
  }
}

TEST(StateCostTest, LayersBehindExitsTakeTheSecondsOfFewerTokens) {
  Model model = tiny();
  const CostModel dense = costsOf(model);
  for (bool byTokens : {false, true}) {
    CostModel costs = costsOf(model);
    LayerStates states(model.layers());
    for (int l = block + 1; l < model.layers(); ++l) {
      states[l].reach = 0.25;
      states[l].byTokens = byTokens;
    }
    ASSERT_TRUE(costs.setStates(states).isOk());
    const Load load = callLoad(64, 0, 64);
    const Load left = loadThatReaches(load, states[head]);
    ASSERT_EQ(left.targets, 16);
    for (int l = 0; l < model.layers(); ++l)
      for (cost::Direction direction : allDirections)
        EXPECT_EQ(seconds(costs, l, direction, load),
                  seconds(dense, l, direction, l <= block ? load : left));
    EXPECT_LT(seconds(costs, head, cost::FORWARD, load),
              0.5 * seconds(dense, head, cost::FORWARD, load));
    // Parameters are updated for all tokens together.
    EXPECT_EQ(seconds(costs, head, cost::UPDATE, load),
              seconds(dense, head, cost::UPDATE, load));
  }
}

TEST(StateCostTest, SparseLayersBehindExitsAreBoth) {
  Model model = tiny();
  LayerStates states = with(model, block, 0.9);
  CostModel sparse = costsOf(model), both = costsOf(model);
  ASSERT_TRUE(sparse.setStates(states).isOk());
  states[block].reach = 0.5;
  ASSERT_TRUE(both.setStates(states).isOk());
  EXPECT_EQ(seconds(both, block, cost::BACKWARD, callLoad(64, 0, 64)),
            seconds(sparse, block, cost::BACKWARD, callLoad(32, 0, 32)));
}

} // namespace
