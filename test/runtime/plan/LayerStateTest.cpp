//===- LayerStateTest.cpp - States of layers, and their bytes -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/StateBytes.h"
#include "test/runtime/executor/TinyModel.h"
#include "test/runtime/plan/TinyDegrees.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace dyna;
using testing::HasSubstr;

namespace {

Model tiny(const TinyOptions &options = {}) {
  auto model = Model::create(tinyManifest(options));
  EXPECT_TRUE(model.isOk()) << model.status().message();
  return *model;
}

LayerState sparse(double sparsity) {
  LayerState state;
  state.sparsity = sparsity;
  return state;
}

LayerState frozen() {
  LayerState state;
  state.frozen = true;
  return state;
}

std::string refusal(const Model &model, LayerStates states) {
  auto made = resolveStates(model, std::move(states));
  return made.isOk() ? "" : made.status().message();
}

TEST(LayerStateTest, PrefixesEndAtTheFirstLayerThatTrains) {
  // Untied: the embedding alone may be frozen.
  plan::Manifest manifest = tinyManifest();
  plan::Parameter *own = manifest.add_parameters();
  *own = manifest.parameters(manifest.layers(0).parameters(0));
  own->set_name("own");
  manifest.mutable_layers(0)->set_parameters(0, manifest.parameters_size() - 1);
  Model model = Model::unchecked(manifest);
  const int layers = model.layers();
  ASSERT_EQ(layers, 5);
  for (int bits = 0; bits + 1 < 1 << layers; ++bits) {
    LayerStates states(layers);
    for (int l = 0; l < layers; ++l)
      states[l].frozen = bits >> l & 1;
    auto made = resolveStates(model, states);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    bool all = true; // frozen so far
    for (int l = 0; l < layers; ++l) {
      all &= states[l].frozen;
      EXPECT_EQ((*made)[l].prefix, all) << bits << " " << l;
      EXPECT_EQ((*made)[l].frozen, states[l].frozen);
    }
  }
  EXPECT_THAT(refusal(model, LayerStates(layers, frozen())),
              HasSubstr("all layers are frozen, so nothing trains"));
}

TEST(LayerStateTest, BadStatesAreRefused) {
  Model model = tiny();
  auto with = [&](int layer, LayerState state) {
    LayerStates states(model.layers());
    states[layer] = state;
    return refusal(model, states);
  };
  EXPECT_EQ(with(1, sparse(0.9)), "");
  for (double sparsity : {-0.1, 1.0, 1.5, std::nan("")})
    EXPECT_THAT(with(1, sparse(sparsity)),
                HasSubstr("sparsity expects 0 or more and less than 1"));
  EXPECT_THAT(with(0, sparse(0.5)), HasSubstr("no matrix products"));
  // The table is that of the head, too.
  EXPECT_THAT(with(0, frozen()), HasSubstr("is shared by layer"));
  EXPECT_THAT(with(4, frozen()), HasSubstr("freeze both or none"));
  LayerStates both(model.layers());
  both.front() = both.back() = frozen();
  EXPECT_EQ(refusal(model, both), "");
  EXPECT_THAT(refusal(model, LayerStates(2)),
              HasSubstr("2 states of layers, but the model has 5"));
}

TEST(LayerStateTest, TiedWeightsAreAsDenseAsTheirDensestLayer) {
  TinyOptions options;
  options.hidden = tinyWidth;
  options.shares = {{0, 1, 2}, {3, 4, 0}, {5, 6, 7}}; // w1 of the first, w2
  Model model = tiny(options);
  LayerStates states(model.layers());
  states[1] = sparse(0.5), states[2] = sparse(0.9);
  states = *resolveStates(model, states);
  auto sparsityOf = [&](int layer, int slot) {
    return parameterState(model, states, model.layer(layer).parameters(slot))
        .sparsity;
  };
  EXPECT_EQ(sparsityOf(1, 0), 0.5);
  EXPECT_EQ(sparsityOf(2, 2), 0.5); // the same
  EXPECT_EQ(sparsityOf(2, 0), 0.9);
  EXPECT_EQ(sparsityOf(2, 1), 0); // a vector
  EXPECT_EQ(sparsityOf(3, 0), 0);
}

/// Adds up what a rank keeps of each weight, number by number.
int64_t countedBytes(const RankView &view, const LayerStates &states) {
  const int64_t word = elementBytes(view.masterType());
  int64_t bytes = 0;
  for (int p = 0; p < view.parameters(); ++p) {
    const LayerState state = parameterState(view.model(), states, p);
    const int64_t compute = elementBytes(view.computeType(p));
    const int64_t gradient = elementBytes(view.gradientType());
    int64_t left = 0; // elements
    for (int64_t i = 0; i < view.elements(p); ++i)
      left += state.form != WeightForm::Csr ||
              static_cast<double>(i) + 0.5 <
                  (1 - state.sparsity) * static_cast<double>(view.elements(p));
    std::vector<int64_t> arrays = {left * compute};
    if (view.hasCopy(p) && !state.frozen)
      arrays.push_back(left * word);
    if (!state.frozen)
      arrays.insert(arrays.end(), {left * gradient, left * word, left * word});
    if (state.form == WeightForm::Masked && !state.frozen)
      arrays.push_back(left);
    int64_t tiles = 0; // of 128 x 128 weights
    for (int64_t row = 0; row < view.rows(p); row += 128)
      for (int64_t column = 0; column < view.rowElements(p); column += 128)
        ++tiles;
    if (state.form ==
        WeightForm::Csr) { // begins, lines, counts, depths, places
      arrays.insert(arrays.end(),
                    {8 * tiles + 8, 128 * tiles, 128 * tiles, left});
      if (!state.prefix)
        arrays.insert(arrays.end(), {8 * tiles + 8, 128 * tiles, 128 * tiles,
                                     left, 2 * left});
    }
    for (int64_t array : arrays)
      bytes += dyna_align_block(array);
  }
  return bytes;
}

TEST(StateBytesTest, BytesAreCounted) {
  for (plan::ElementType type : {plan::F64, plan::BF16}) {
    TinyOptions options;
    options.compute = type;
    options.hidden =
        4100; // 33 tiles of one weight, the last with 4 of 128 lines
    Model model = tiny(options);
    RankView view = RankView::whole(model);
    const int64_t dense = persistentLayout(view).bytes;
    EXPECT_EQ(persistentBytes(view, {}), dense);
    LayerStates states(model.layers());
    EXPECT_EQ(persistentBytes(view, states), dense);
    states[1] = states[3] = sparse(0.9);
    states = *resolveStates(model, states);
    EXPECT_EQ(states[1].form, WeightForm::Masked);
    EXPECT_EQ(persistentBytes(view, states), countedBytes(view, states));
    EXPECT_GT(persistentBytes(view, states), dense);
    states[1].form = WeightForm::Csr;
    states[2].frozen = states[3].frozen = true;
    EXPECT_EQ(persistentBytes(view, states), countedBytes(view, states));
    EXPECT_LT(persistentBytes(view, states), dense);
    for (int l = 0; l < model.layers(); ++l)
      states[l].frozen = states[l].prefix = l != 3;
    states[3].form = WeightForm::Csr, states[3].sparsity = 0.5;
    EXPECT_EQ(persistentBytes(view, states), countedBytes(view, states));
  }
}

// Masks of states take what masks of a run take: there the layout has them.
TEST(StateBytesTest, MasksAreThoseOfRuns) {
  Model model = tiny();
  LayerStates states(model.layers());
  states[1] = sparse(0.9);
  states = *resolveStates(model, states);
  std::vector<bool> masked(model.parameters());
  for (int p : model.layer(1).parameters())
    masked[p] = model.parameter(p).shape_size() > 1;
  Model run = model;
  run.setMasks(masked);
  for (Persistent persistent : {Persistent::Training, Persistent::Gradients}) {
    const int64_t own =
        persistentBytes(RankView::whole(model), states, persistent);
    RankView view = RankView::whole(run);
    EXPECT_EQ(own, persistentLayout(view, persistent).bytes);
    EXPECT_EQ(own, persistentBytes(view, states, persistent));
    // A run has masks before its first event, too.
    EXPECT_EQ(own,
              persistentBytes(view, LayerStates(model.layers()), persistent));
  }
}

// A score of the type of masters comes on top, on ranks with optimizer state.
TEST(StateBytesTest, ScoresTakeANumberForEachMaskedWeight) {
  Model model = tiny();
  std::vector<bool> masked(model.parameters());
  int64_t scores = 0;
  for (int p : model.layer(1).parameters())
    if ((masked[p] = model.parameter(p).shape_size() > 1))
      scores += dyna_align_block(elementBytes(model.masterType()) *
                                 model.elements(p));
  model.setMasks(masked);
  Model scored = model;
  scored.setScores(true);
  EXPECT_GT(scores, 0);
  for (Persistent persistent : {Persistent::Training, Persistent::Gradients}) {
    const RankView view = RankView::whole(scored);
    const int64_t bytes = persistentLayout(view, persistent).bytes;
    EXPECT_EQ(bytes -
                  persistentLayout(RankView::whole(model), persistent).bytes,
              persistent == Persistent::Training ? scores : 0);
    EXPECT_EQ(bytes,
              persistentBytes(view, LayerStates(scored.layers()), persistent));
  }
  // Without masks there are no scores.
  model.setMasks({});
  model.setScores(true);
  EXPECT_EQ(persistentLayout(RankView::whole(model)).bytes,
            persistentLayout(RankView::whole(tiny())).bytes);
}

// 16 bytes of a weight in f32 become 17 if it is masked, and 2.03 in CSR at 90 %.
TEST(StateBytesTest, ASurvivorTakes20Bytes) {
  EXPECT_EQ(csrSideBytes(4096, 4096, 1677722, /*isByColumn=*/false),
            1024 * 264 + 64 + 1677760); // blocks begin at multiples of 64
  const double weights = 4096.0 * 4096;
  const auto index =
      static_cast<double>(csrSideBytes(4096, 4096, 1677722, false) +
                          csrSideBytes(4096, 4096, 1677722, true));
  EXPECT_NEAR((16 * 1677722 + index) / weights, 2.03, 0.005);
}

TEST(StateBytesTest, SomethingSurvives) {
  EXPECT_EQ(survivorsOf(0, 0.5), 0);
  EXPECT_EQ(survivorsOf(1, 0.999), 1);
  EXPECT_EQ(survivorsOf(1000, 0.9), 100);
  EXPECT_EQ(survivorsOf(1000, 0), 1000);
}

TEST(StateBytesTest, PrefixesKeepNothing) {
  Model model = tiny();
  RankView view = RankView::whole(model);
  const Load load = loadOfSample(40);
  const int64_t dense = view.keptBytes(1, plan::RECOMPUTE_NONE, load);
  LayerStates states(model.layers());
  EXPECT_EQ(keptBytes(view, {}, 1, plan::RECOMPUTE_NONE, load), dense);
  EXPECT_EQ(keptBytes(view, states, 1, plan::RECOMPUTE_NONE, load), dense);
  states[1].frozen = true;
  EXPECT_EQ(keptBytes(view, states, 1, plan::RECOMPUTE_NONE, load), dense);
  states[1].prefix = true;
  EXPECT_EQ(keptBytes(view, states, 1, plan::RECOMPUTE_NONE, load), 0);
}

//===----------------------------------------------------------------------===//
// Tokens that reach a layer
//===----------------------------------------------------------------------===//

LayerState reached(double share, bool byTokens) {
  LayerState state;
  state.reach = share;
  state.byTokens = byTokens;
  return state;
}

/// Expected counts, which need not be whole.
struct ExpectedLoad {
  double queries = 0, pairs = 0, causalPairs = 0;
};

/// Adds up the load of every subset of the keys, times its probability. The queries are the
/// last keys.
ExpectedLoad overSubsets(int queries, int keys, double share) {
  ExpectedLoad all;
  for (int bits = 0; bits < 1 << keys; ++bits) {
    double probability = 1;
    ExpectedLoad one;
    for (int key = 0; key < keys; ++key) {
      const bool stays = bits >> key & 1;
      probability *= stays ? share : 1 - share;
      if (!stays)
        continue;
      one.queries += key >= keys - queries;
      for (int query = keys - queries; query < keys; ++query) {
        one.pairs += bits >> query & 1;
        one.causalPairs += key <= query && (bits >> query & 1);
      }
    }
    all.queries += probability * one.queries;
    all.pairs += probability * one.pairs;
    all.causalPairs += probability * one.causalPairs;
  }
  return all;
}

TEST(LayerStateTest, TokensThatLeaveAreExpectedLoad) {
  // Many equal segments, so that rounding does not matter.
  constexpr int64_t segments = 1'000'000'000;
  const std::pair<int, int> shapes[] = {{1, 1}, {6, 6}, {3, 7}, {1, 5}};
  for (auto [queries, keys] : shapes)
    for (double share : {0.125, 0.4, 0.5, 0.9}) {
      const Load load =
          times(loadOf({keys - queries, queries}, {0, keys}), segments);
      const Load left = loadThatReaches(load, reached(share, true));
      const ExpectedLoad expected = overSubsets(queries, keys, share);
      EXPECT_NEAR(left.queries, expected.queries * segments, 8);
      EXPECT_NEAR(left.pairs, expected.pairs * segments, 8);
      EXPECT_NEAR(left.causalPairs, expected.causalPairs * segments, 8);
      EXPECT_EQ(left.segments, load.segments);
    }
}

TEST(LayerStateTest, SamplesThatLeaveTakeTheirPairsWithThem) {
  Load load;
  for (int64_t tokens : {10, 40, 20, 30})
    load += loadOfSample(tokens);
  load.targets = load.queries;
  // Every sample is there equally often, so a half is the mean over all pairs of them.
  const Load left = loadThatReaches(load, reached(0.5, false));
  EXPECT_EQ(left, (Load{load.queries / 2, load.keys / 2, 2, load.pairs / 2,
                        load.causalPairs / 2, load.targets / 2, 0}));
}

TEST(LayerStateTest, CountsStayWithinTheLoad) {
  for (bool byTokens : {false, true})
    for (double share : {1e-9, 0.3, 1 - 1e-9, 1.0})
      for (int64_t tokens : {0, 1, 2, 1000}) {
        const Load load = loadOfSample(tokens);
        const Load left = loadThatReaches(load, reached(share, byTokens));
        EXPECT_EQ(left.queries > 0, tokens > 0);
        EXPECT_LE(left.queries, load.queries);
        EXPECT_LE(left.pairs, load.pairs);
        EXPECT_LE(left.causalPairs, left.pairs);
        EXPECT_GE(left.causalPairs, std::min<int64_t>(tokens, 1));
        if (share == 1)
          EXPECT_EQ(left, load);
      }
}

TEST(LayerStateTest, SharesOutsideOfTheirRangeAreRefused) {
  const Model model = tiny();
  for (double share : {0.0, -0.5, 1.5, std::nan("")}) {
    LayerStates states(model.layers());
    states[2].reach = share;
    EXPECT_THAT(refusal(model, states),
                HasSubstr("layer '" + model.layer(2).name() +
                          "': the share of tokens that reach it expects more "
                          "than 0 and at most 1, but got"));
  }
}

} // namespace
