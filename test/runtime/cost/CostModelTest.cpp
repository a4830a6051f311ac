//===- CostModelTest.cpp - Measured, estimated, cut by --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostModel.h"

#include "runtime/abi/Random.h"
#include "runtime/cost/CostText.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "test/runtime/executor/TinyModel.h"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr int embedding = 0, block = 1, head = 2; // kinds

class CostModelTest : public testing::Test {
protected:
  explicit CostModelTest(int blocks = 6) {
    TinyOptions options;
    options.blocks = blocks;
    model = std::make_unique<Model>(*Model::create(tinyManifest(options)));
  }
  CostModel costs(const std::string &text) {
    auto table = CostTable::parse(text, "costs.txt");
    EXPECT_TRUE(table.isOk()) << table.status().message();
    auto made = CostModel::create(*model, *table);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    return *made;
  }
  static std::string entry(const std::string &kind, const char *direction,
                           double seconds) {
    return "entries { kind: \"" + kind + "\" direction: " + direction +
           " points { tokens: 4096 seconds: " + std::to_string(seconds) +
           " } }\n";
  }
  static std::string bothWays(const std::string &kind, double forward,
                              double backward) {
    return entry(kind, "FORWARD", forward) + entry(kind, "BACKWARD", backward);
  }

  std::unique_ptr<Model> model;
};

TEST_F(CostModelTest, MeasuredWhereThereIsAnEntry) {
  CostModel costs = this->costs(entry("block", "FORWARD", 3));
  const Load load = callLoad(8192, 0, 0);
  EXPECT_DOUBLE_EQ(costs.seconds({block}, cost::FORWARD, load), 6);
  EXPECT_TRUE(costs.isMeasured({block}, cost::FORWARD));
  for (KindAt at : {KindAt{block, 2}, KindAt{block, 1, true}, KindAt{head}}) {
    EXPECT_FALSE(costs.isMeasured(at, cost::FORWARD));
    EXPECT_DOUBLE_EQ(costs.seconds(at, cost::FORWARD, load),
                     costs.estimate(at, cost::FORWARD, load));
  }
  EXPECT_FALSE(costs.isMeasured({block}, cost::BACKWARD));
}

TEST_F(CostModelTest, EntriesOfAnotherModelAreRefused) {
  auto table = CostTable::parse(entry("blok", "FORWARD", 3), "costs.txt");
  auto made = CostModel::create(*model, *table);
  EXPECT_THAT(made.status().message(),
              testing::AllOf(HasSubstr("costs.txt: entry blok tp=1 FORWARD"),
                             HasSubstr("embedding, block, head")));
}

// Layers have the same names in many models.
TEST_F(CostModelTest, LayersOfOtherSizesAreAnotherModels) {
  const cost::Layer here = layerOf(model->manifest().kinds(block));
  EXPECT_EQ(here.parameters(), 2 * tinyWidth * tinyHidden + tinyHidden);
  EXPECT_EQ(here.flops_per_token(), 4 * tinyWidth * tinyHidden);
  auto refusal = [&](const cost::Layer &layer) {
    cost::Table table;
    *table.add_layers() = layer;
    auto read = CostTable::parse(
        writeCosts(table, {}) + entry("block", "FORWARD", 3), "costs.txt");
    EXPECT_TRUE(read.isOk()) << read.status().message();
    return CostModel::create(*model, *read).status().message();
  };
  EXPECT_EQ(refusal(here), "");
  auto with = [&](void (cost::Layer::*set)(int64_t)) {
    cost::Layer other = here;
    (other.*set)(77);
    return refusal(other);
  };
  EXPECT_THAT(with(&cost::Layer::set_parameters),
              HasSubstr("costs.txt: is of another model: its layers 'block' "
                        "have 77 parameters, those of this one " +
                        std::to_string(here.parameters())));
  EXPECT_THAT(with(&cost::Layer::set_flops_per_token),
              HasSubstr("have 77 flops a token"));
  EXPECT_THAT(with(&cost::Layer::set_flops_per_pair),
              HasSubstr("have 77 flops a pair"));
  EXPECT_THAT(with(&cost::Layer::set_flops_per_target),
              HasSubstr("have 77 flops a target"));
  // Written by hand, a file need not describe them; what it has of kinds that
  // have no entries is no matter.
  EXPECT_EQ(refusal({}), "");
}

// Samples of this model end at 100 tokens.
TEST_F(CostModelTest, SlicesBehindThePositionsAreRefused) {
  plan::Manifest manifest = model->manifest();
  manifest.mutable_facts()->set_positions(100);
  model = std::make_unique<Model>(*Model::create(std::move(manifest)));
  auto refusal = [&](int64_t tokens, int64_t context) {
    auto table = CostTable::parse(
        "entries { kind: \"block\" direction: FORWARD "
        "points { tokens: 4 pairs: 10 seconds: 1 } points { tokens: " +
            std::to_string(tokens) + " context: " + std::to_string(context) +
            " pairs: " + std::to_string(sliceLoad(tokens, context).pairs) +
            " seconds: 1 } }",
        "costs.txt");
    EXPECT_TRUE(table.isOk()) << table.status().message();
    return CostModel::create(*model, *table).status().message();
  };
  EXPECT_EQ(refusal(20, 80), "");
  EXPECT_EQ(refusal(20, 81),
            "costs.txt: entry block tp=1 FORWARD: point 2: a slice of 20 "
            "tokens after 81 ends behind the 100 positions of this model; "
            "measure this model with --profile");
  // Any length.
  manifest = model->manifest();
  manifest.mutable_facts()->set_positions(0);
  model = std::make_unique<Model>(*Model::create(std::move(manifest)));
  EXPECT_EQ(refusal(20, 81), "");
}

TEST_F(CostModelTest, SlicesCostByTheirContext) {
  CostModel costs =
      this->costs("entries { kind: \"block\" direction: FORWARD "
                  "points { tokens: 4 pairs: 10 seconds: 1 } "
                  "points { tokens: 4 pairs: 42 context: 8 seconds: 7 } } " +
                  entry("block", "BACKWARD", 3));
  EXPECT_TRUE(costs.measuresSlices());
  const Load slice = loadOf({8, 4}, {0, 12});
  EXPECT_EQ(slice.context, 8);
  EXPECT_DOUBLE_EQ(costs.seconds({block}, cost::FORWARD, slice), 7);
  EXPECT_DOUBLE_EQ(costs.seconds({block}, cost::FORWARD, loadOfSample(4)), 1);
  // A function whose slices nobody measured.
  EXPECT_DOUBLE_EQ(costs.seconds({block}, cost::BACKWARD, slice),
                   costs.seconds({block}, cost::BACKWARD, loadOfSample(4)));
  EXPECT_FALSE(this->costs(entry("block", "FORWARD", 3)).measuresSlices());
}

// The estimate, worked out by hand: device rates that make one side count.
TEST_F(CostModelTest, EstimatesFlopsOrBytes) {
  std::string rates = "f32_flops: 1 bf16_flops: 1 launch_seconds: 0.5 }";
  CostModel flops =
      costs("device { f64_flops: 10 bytes_per_second: 1e30 " + rates);
  int64_t tokens = 64;
  const Load load = callLoad(tokens, 0, tokens);
  double layer = 4.0 * tinyWidth * tinyHidden * 64;
  double loss = 2.0 * tinyVocabulary * tinyWidth * 64;
  EXPECT_DOUBLE_EQ(flops.seconds({block}, cost::FORWARD, load),
                   layer / 10 + 0.5);
  EXPECT_DOUBLE_EQ(flops.seconds({block}, cost::BACKWARD, load),
                   2 * layer / 10 + 0.5);
  EXPECT_DOUBLE_EQ(flops.seconds({block}, cost::BACKWARD_WEIGHT, load),
                   layer / 10 + 0.5);
  EXPECT_DOUBLE_EQ(flops.seconds({head}, cost::FORWARD, load),
                   3 * loss / 10 + 0.5);
  CostModel bytes =
      costs("device { f64_flops: 1e30 bytes_per_second: 4 " + rates);
  // 64 rows of 6 numbers from 64 ids; the whole table has only 11 rows.
  double ids = 64 * 4, out = 64 * tinyWidth * 8;
  double table = tinyVocabulary * tinyWidth * 8;
  EXPECT_DOUBLE_EQ(bytes.seconds({embedding}, cost::FORWARD, load),
                   (table + ids + out) / 4 + 0.5);
  EXPECT_DOUBLE_EQ(bytes.seconds({embedding}, cost::UPDATE, load),
                   8 * table / 4 + 0.5);
  // Few ids read few rows.
  double one = tinyWidth * 8;
  EXPECT_DOUBLE_EQ(bytes.seconds({embedding}, cost::FORWARD, callLoad(1, 0, 1)),
                   (one + 4 + one) / 4 + 0.5);
}

// Whichever takes longer hides the other.
TEST_F(CostModelTest, FlopsAndBytesOverlap) {
  auto secondsAt = [&](const char *flops, const char *bytes) {
    return costs(std::string("device { f32_flops: 1 bf16_flops: 1 ") +
                 "f64_flops: " + flops + " bytes_per_second: " + bytes + " }")
        .seconds({block}, cost::FORWARD, callLoad(64, 0, 64));
  };
  double flops = secondsAt("1e3", "1e30"), bytes = secondsAt("1e30", "1e3");
  EXPECT_GT(std::min(flops, bytes), 0);
  EXPECT_DOUBLE_EQ(secondsAt("1e3", "1e3"), std::max(flops, bytes));
}

TEST_F(CostModelTest, TheCutFollowsTheTable) {
  Strategy strategy;
  strategy.pp = 2;
  // embedding, six blocks, head
  auto even =
      chooseLayers(costs(bothWays("embedding", 0, 0) + bothWays("block", 1, 2) +
                         bothWays("head", 1, 2)),
                   strategy);
  ASSERT_TRUE(even.isOk());
  EXPECT_THAT(even->strategy.layers, ElementsAre(5, 3));
  EXPECT_EQ(even->note, "stage cut 5+3: costs from costs.txt");
  auto heavy =
      chooseLayers(costs(bothWays("embedding", 0, 0) + bothWays("block", 1, 2) +
                         bothWays("head", 12, 0)),
                   strategy);
  EXPECT_THAT(heavy->strategy.layers, ElementsAre(6, 2));
  // What is given stays, and nothing is said.
  strategy.layers = {1, 7};
  auto given = chooseLayers(costs(bothWays("head", 12, 0)), strategy);
  EXPECT_THAT(given->strategy.layers, ElementsAre(1, 7));
  EXPECT_EQ(given->note, "");
}

TEST_F(CostModelTest, TheNoteSaysWhatWasUsed) {
  Strategy strategy;
  strategy.pp = 2;
  EXPECT_THAT(chooseLayers(CostModel(*model), strategy)->note,
              testing::EndsWith("estimated from flops and bytes of device "
                                "'host'"));
  EXPECT_THAT(
      chooseLayers(costs(bothWays("block", 1, 2) + bothWays("head", 1, 1) +
                         entry("embedding", "FORWARD", 1)),
                   strategy)
          ->note,
      HasSubstr("costs from costs.txt; it lacks embedding tp=1 BACKWARD: "
                "estimated from flops and bytes of device 'host'"));
  // A table for other degrees has nothing for this one.
  EXPECT_THAT(chooseLayers(costs("entries { kind: \"block\" tp: 4 direction: "
                                 "FORWARD points { tokens: 1 seconds: 1 } }"),
                           strategy)
                  ->note,
              HasSubstr(": costs.txt has no entry for this strategy: "
                        "estimated from"));
  // A device alone is what is estimated from.
  EXPECT_THAT(
      chooseLayers(costs("device { name: \"d\" f64_flops: 1e9 f32_flops: 1e9 "
                         "bf16_flops: 1e9 bytes_per_second: 1e9 }"),
                   strategy)
          ->note,
      HasSubstr(": costs from costs.txt: estimated from flops and bytes of "
                "device 'd'"));
  strategy.pp = 1;
  EXPECT_EQ(chooseLayers(CostModel(*model), strategy)->note, "");
}

// The tiny model computes in f64.
TEST_F(CostModelTest, KnowsInWhatItWasMeasured) {
  const std::string measured = entry("block", "FORWARD", 3);
  auto told = [&](const std::string &text) {
    return costs(text).describeOtherType();
  };
  EXPECT_EQ(told("compute_type: \"f32\" " + measured),
            "costs.txt: costs were measured in f32, this program computes in "
            "f64: measure again with --profile");
  EXPECT_EQ(costs("compute_type: \"bf16\" " + measured).otherComputeType(),
            "bf16");
  EXPECT_EQ(told("compute_type: \"f64\" " + measured), "");
  // Older files do not say; nor is there something wrong with a device alone.
  EXPECT_EQ(told(measured), "");
  EXPECT_EQ(told("compute_type: \"f32\" cluster {}"), "");
  EXPECT_EQ(CostModel(*model).describeOtherType(), "");
}

TEST_F(CostModelTest, TheCutTakesTheEntriesOfItsDegree) {
  std::string text = bothWays("embedding", 0, 0) + bothWays("block", 1, 2) +
                     bothWays("head", 1, 2);
  auto degree = [&](const char *fields, double head) {
    for (const char *kind : {"embedding", "block", "head"})
      for (const char *direction : {"FORWARD", "BACKWARD"})
        text += std::string("entries { kind: \"") + kind + "\" " + fields +
                " direction: " + direction +
                " points { tokens: 4096 seconds: " +
                std::to_string(kind[0] == 'b'   ? 1.0
                               : kind[0] == 'h' ? head
                                                : 0.0) +
                " } }\n";
  };
  degree("tp: 2", 6);
  degree("tp: 2 sp: true", 3);
  CostModel costs = this->costs(text);
  auto cutOf = [&](int tp, bool sp) {
    Strategy strategy;
    strategy.pp = 2;
    strategy.tp = tp;
    strategy.sp = sp;
    auto cut = chooseLayers(costs, strategy);
    EXPECT_THAT(cut->note, testing::EndsWith(": costs from costs.txt"));
    return cut->strategy.layers;
  };
  EXPECT_THAT(cutOf(1, false), ElementsAre(5, 3));
  EXPECT_THAT(cutOf(2, false), ElementsAre(7, 1));
  EXPECT_THAT(cutOf(2, true), ElementsAre(6, 2));
}

TEST_F(CostModelTest, RecomputationCounts) {
  Strategy strategy;
  strategy.pp = 2;
  CostModel costs =
      this->costs(bothWays("embedding", 0, 0) + bothWays("block", 1, 1) +
                  bothWays("head", 6, 0) + entry("block", "RECOMPUTE_FULL", 2) +
                  entry("block", "RECOMPUTE_SELECTIVE", 0));
  EXPECT_THAT(layerCosts(costs, strategy, {plan::RECOMPUTE_FULL}),
              ElementsAre(0, 4, 4, 4, 4, 4, 4, 6));
  EXPECT_THAT(layerCosts(costs, strategy, {plan::RECOMPUTE_NONE}),
              ElementsAre(0, 2, 2, 2, 2, 2, 2, 6));
  EXPECT_THAT(chooseLayers(costs, strategy)->strategy.layers,
              ElementsAre(6, 2));
  strategy.recompute = plan::RECOMPUTE_FULL;
  EXPECT_THAT(chooseLayers(costs, strategy)->strategy.layers,
              ElementsAre(5, 3));
  strategy.recompute.reset();
  std::vector<plan::Recompute> perLayer(8, plan::RECOMPUTE_NONE);
  perLayer[1] = plan::RECOMPUTE_FULL;
  EXPECT_THAT(layerCosts(costs, strategy, perLayer),
              ElementsAre(0, 4, 2, 2, 2, 2, 2, 6));
}

double slowestStage(const std::vector<double> &costs,
                    const std::vector<int> &cut) {
  double slowest = 0;
  size_t layer = 0;
  for (int layers : cut) {
    double sum = 0;
    for (int i = 0; i < layers; ++i)
      sum += costs[layer++];
    slowest = std::max(slowest, sum);
  }
  return slowest;
}

double bestByTryingAll(const std::vector<double> &costs, size_t first,
                       int stages) {
  if (stages == 1)
    return slowestStage({costs.begin() + first, costs.end()},
                        {static_cast<int>(costs.size() - first)});
  double best = 1e300, sum = 0;
  for (size_t end = first + 1; end + stages - 1 <= costs.size(); ++end) {
    sum += costs[end - 1];
    best =
        std::min(best, std::max(sum, bestByTryingAll(costs, end, stages - 1)));
  }
  return best;
}

TEST_F(CostModelTest, CutsByTablesAreTheBestOfAll) {
  uint64_t counter = 5;
  auto seconds = [&] {
    return static_cast<double>(dyna_mix64(++counter) % 1000) / 64;
  };
  for (int round = 0; round < 100; ++round) {
    CostModel costs = this->costs(bothWays("embedding", seconds(), seconds()) +
                                  bothWays("block", seconds(), seconds()) +
                                  bothWays("head", seconds(), seconds()));
    Strategy strategy;
    for (strategy.pp = 1; strategy.pp <= 8; ++strategy.pp) {
      auto cut = chooseLayers(costs, strategy);
      ASSERT_TRUE(cut.isOk());
      std::vector<double> each =
          layerCosts(costs, strategy, {plan::RECOMPUTE_NONE});
      EXPECT_DOUBLE_EQ(slowestStage(each, cut->strategy.layers),
                       bestByTryingAll(each, 0, strategy.pp));
    }
  }
}

} // namespace
