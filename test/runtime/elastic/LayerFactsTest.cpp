//===- LayerFactsTest.cpp - What balancing and packing ask of layers ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/balance/LayerFacts.h"
#include "runtime/plan/graph/MovedState.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/StateBytes.h"
#include "runtime/plan/graph/StateTensors.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "test/runtime/executor/TinyModel.h"

#include <gmock/gmock.h>

#include <numeric>

using namespace dyna;
using testing::DoubleEq;
using testing::ElementsAre;

namespace {

const char *const hardware =
    "device { f64_flops: 1e9 f32_flops: 1e9 bf16_flops: 1e9 "
    "bytes_per_second: 1e12 launch_seconds: 1e-6 } "
    "cluster { nodes: 2 devices_per_node: 2 "
    "inside { latency_seconds: 1e-6 bytes_per_second: 1e9 } "
    "between { latency_seconds: 1e-3 bytes_per_second: 1e6 } } "
    "sparse { points { sparsity: 0.5 forward: 1.5 } "
    "points { sparsity: 0.9 forward: 0.3 } }";

Model model() {
  TinyOptions options;
  options.blocks = 6;
  options.hidden = 300;
  return *Model::create(tinyManifest(options));
}

/// Block 2 is CSR, block 3 masked.
CostModel costsOf(const Model &model) {
  CostModel costs =
      *CostModel::create(model, *CostTable::parse(hardware, "costs"));
  LayerStates states(model.layers());
  states[2].sparsity = 0.9;
  states[3].sparsity = 0.4;
  EXPECT_TRUE(costs.setStates(states).isOk());
  EXPECT_EQ(costs.layerStates()[2].form, WeightForm::Csr);
  EXPECT_EQ(costs.layerStates()[3].form, WeightForm::Masked);
  return costs;
}

template <typename T>
T sumOf(const std::vector<T> &values, int begin, int end) {
  return std::accumulate(values.begin() + begin, values.begin() + end, T());
}

// What ranks of any cut have is the sum over their layers.
TEST(LayerFactsTest, StagesAreSumsOfTheirLayers) {
  const Model tiny = model();
  const CostModel costs = costsOf(tiny);
  const Load load = loadOfEqual(20, 60);
  for (const char *text : {"pp=3,layers=3+2+3", "dp=2,pp=2,layers=1+7"}) {
    const Strategy strategy = *parseStrategy(text);
    const auto graph = *ExecutableGraph::create(tiny, strategy);
    for (plan::Recompute mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL}) {
      const LayerFacts facts = *layerFacts(costs, strategy, mode, load);
      for (int s = 0; s < strategy.pp; ++s) {
        const auto [begin, end] = graph.stage(s);
        const int rank = graph.rankAt({0, s, 0});
        const RankView view = graph.rankView(rank);
        EXPECT_EQ(sumOf(facts.ownBytes, begin, end),
                  persistentBytes(view, costs.layerStates()));
        int64_t kept = 0;
        for (int l = begin; l < end; ++l)
          kept += view.keptBytes(l, mode, load);
        EXPECT_EQ(sumOf(facts.keptBytes, begin, end), kept);
      }
    }
  }
}

TEST(LayerFactsTest, SecondsAreThoseOfCuts) {
  const Model tiny = model();
  const CostModel costs = costsOf(tiny);
  const Strategy strategy = *parseStrategy("pp=2");
  const int64_t positions = tiny.manifest().facts().positions();
  const int64_t sample =
      positions > 0 ? std::min<int64_t>(positions, 1024) : 1024;
  for (plan::Recompute mode : {plan::RECOMPUTE_NONE, plan::RECOMPUTE_FULL}) {
    const LayerFacts facts =
        *layerFacts(costs, strategy, mode, loadOfEqual(sample, 4096));
    const std::vector<double> expected = layerCosts(costs, strategy, {mode});
    ASSERT_EQ(facts.seconds.size(), expected.size());
    for (size_t l = 0; l < expected.size(); ++l)
      EXPECT_THAT(facts.seconds[l], DoubleEq(expected[l]));
    EXPECT_LT(facts.seconds[2], facts.seconds[3]);
    EXPECT_EQ(facts.seconds[1], facts.seconds[3]);
  }
}

TEST(LayerFactsTest, ParametersAreWhatIsLeft) {
  const Model tiny = model();
  const LayerFacts facts = *layerFacts(costsOf(tiny), *parseStrategy("pp=2"),
                                       plan::RECOMPUTE_NONE, loadOfEqual(4, 4));
  const double matrices = 2.0 * tinyWidth * 300;
  const double vectors = facts.parameters[1] - matrices;
  EXPECT_GT(vectors, 0);
  EXPECT_EQ(facts.parameters[2], 0.1 * matrices + vectors);
  EXPECT_EQ(facts.parameters[3], 0.6 * matrices + vectors);
  EXPECT_EQ(facts.names[2], tiny.layer(2).name());
}

// A layer that goes to another stage has the bytes of the switch.
TEST(LayerFactsTest, StateBytesAreThoseOfMoves) {
  const Model tiny = model();
  const CostModel costs = costsOf(tiny);
  const Strategy from = *parseStrategy("pp=2,layers=4+4");
  const LayerFacts facts =
      *layerFacts(costs, from, plan::RECOMPUTE_NONE, loadOfEqual(4, 4));
  const auto before = *ExecutableGraph::create(tiny, from);
  for (int first = 1; first < 4; ++first) {
    Strategy to = from;
    to.layers = {first, 8 - first};
    const auto behind = *ExecutableGraph::create(tiny, to);
    EXPECT_EQ(missingBytes(movedState(before, behind, costs.layerStates())),
              sumOf(facts.stateBytes, first, 4));
  }
}

// The slow link is between stages 1 and 2.
TEST(LayerFactsTest, WaitsAreThoseOfLinks) {
  const Model tiny = model();
  const CostModel costs = costsOf(tiny);
  const auto graph =
      *ExecutableGraph::create(tiny, *parseStrategy("pp=4,layers=2+2+2+2"));
  const Load load = loadOfEqual(10, 50);
  const double bytes = 50 * tinyWidth * 8;
  const double fast = 1e-6 + bytes / 1e9, slow = 1e-3 + bytes / 1e6;
  EXPECT_THAT(linkWaits(graph, costs, load),
              ElementsAre(DoubleEq(fast), DoubleEq(fast + slow),
                          DoubleEq(slow + fast), DoubleEq(fast)));
  CostTable table = costs.table();
  table.dropLinks();
  const CostModel free = *CostModel::create(tiny, std::move(table));
  EXPECT_THAT(linkWaits(graph, free, load), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(free.cluster().devices(), 0);
}

TEST(LayerFactsTest, EarlyStagesKeepMore) {
  EXPECT_THAT(inFlightOf(4, 9), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(inFlightOf(4, 2), ElementsAre(2, 2, 2, 1));
}

// Ranks of any cut have the sum over their layers, or less if two of them share a weight.
TEST(LayerFactsTest, BytesOfRunsAreThoseOfRanks) {
  for (bool isTied : {false, true})
    for (const char *degrees : {"", "tp=2,", "dp=2,", "dp=2,zero=1,"}) {
      SCOPED_TRACE(degrees);
      TinyOptions options;
      options.hidden = 12;
      options.degrees = {{2, false}};
      options.nestedTie = isTied;
      const Model tiny = *Model::create(tinyManifest(options));
      const std::string text = std::string(degrees) + "pp=2,layers=";
      const BytesOfLayers bytes =
          *bytesOfLayers(tiny, *parseStrategy(text + "2+3"));
      int less = 0;
      for (int first = 1; first < tiny.layers(); ++first) {
        const Strategy strategy =
            *parseStrategy(text + std::to_string(first) + "+" +
                           std::to_string(tiny.layers() - first));
        const auto graph = *ExecutableGraph::create(tiny, strategy);
        for (int rank = 0; rank < graph.ranks(); ++rank) {
          const auto [begin, end] = graph.stage(graph.placeOf(rank).stage);
          const int64_t held =
              persistentLayout(graph.rankView(rank), Persistent::Training)
                  .bytes;
          const int64_t sum = sumOf(bytes.tensors, begin, end);
          EXPECT_GE(sum, held);
          less += held < sum;
        }
      }
      // Shards need not be alike, and ZeRO deals rows.
      if (const std::string words = degrees;
          words.empty() || words == "dp=2,") {
        EXPECT_EQ(less > 0, isTied);
      }
    }
}

// What a move sends is the state of the layers that change their stage.
TEST(LayerFactsTest, StateOfRunsIsWhatMoves) {
  const Model tiny = model();
  const BytesOfLayers bytes =
      *bytesOfLayers(tiny, *parseStrategy("pp=2,layers=4+4"));
  for (int first = 1; first < tiny.layers(); ++first)
    for (int next = 1; next < tiny.layers(); ++next) {
      auto graphOf = [&](int layers) {
        return *ExecutableGraph::create(
            tiny, *parseStrategy("pp=2,layers=" + std::to_string(layers) + "+" +
                                 std::to_string(tiny.layers() - layers)));
      };
      EXPECT_EQ(
          missingBytes(stateTensors(graphOf(first), graphOf(next))),
          sumOf(bytes.state, std::min(first, next), std::max(first, next)));
    }
}

} // namespace
