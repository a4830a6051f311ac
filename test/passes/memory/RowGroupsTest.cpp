//===- RowGroupsTest.cpp - Which row-wise ops share a sweep -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/sweep/RowGroups.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <functional>
#include <random>
#include <set>

using namespace mlir::dyna;

namespace {

using Units = std::vector<FusionUnit>;

int addOp(FusionGraph &graph, FusionNode::Kind kind,
          const std::vector<int> &operands, int64_t bytes,
          bool wholeRows = false) {
  FusionNode node;
  node.kind = kind;
  node.width = kind == FusionNode::RowWise ? 8 : 0;
  node.wholeRows = wholeRows;
  node.operands = operands;
  return graph.addNode(node, {bytes});
}

int resultOf(const FusionGraph &graph, int node) {
  return graph.nodes[node].results.front();
}

const FusionUnit &unitOf(const Units &units, int node) {
  return *std::find_if(units.begin(), units.end(), [&](const FusionUnit &unit) {
    return unit.leader == node ||
           std::count(unit.rows.begin(), unit.rows.end(), node);
  });
}

/// Outside operands with rows, each once, and values that leave the sweep.
int64_t trafficOf(const FusionGraph &graph, const std::vector<int> &rows) {
  std::set<int> members(rows.begin(), rows.end()), read;
  int64_t bytes = 0;
  for (int node : rows) {
    for (int operand : graph.nodes[node].operands)
      if (!members.count(graph.values[operand].producer) &&
          read.insert(operand).second)
        bytes += graph.values[operand].bytesPerRow;
    for (int result : graph.nodes[node].results) {
      const FusionValue &value = graph.values[result];
      bool leaves = value.returned;
      for (int consumer : value.consumers)
        leaves |= !members.count(consumer);
      if (leaves)
        bytes += value.bytesPerRow;
    }
  }
  return bytes;
}

/// Bytes per row of the product's results that the sweep reads; 0 if none.
int64_t hotBytes(const FusionGraph &graph, int product,
                 const std::vector<int> &rows) {
  int64_t bytes = 0;
  for (int result : graph.nodes[product].results)
    for (int consumer : graph.values[result].consumers)
      if (std::find(rows.begin(), rows.end(), consumer) != rows.end()) {
        bytes += graph.values[result].bytesPerRow;
        break;
      }
  return bytes;
}

/// The bytes per row that the sweeps of the units move.
int64_t sweepTraffic(const FusionGraph &graph,
                     const std::vector<FusionUnit> &units) {
  int64_t bytes = 0;
  for (const FusionUnit &unit : units) {
    bytes += trafficOf(graph, unit.rows);
    if (unit.leader >= 0 && !unit.rows.empty())
      bytes -= hotBytes(graph, unit.leader, unit.rows);
  }
  return bytes;
}

/// Places units in an order that respects their uses, if there is one.
bool sortUnits(const FusionGraph &graph, Units &units) {
  Units sorted;
  while (!units.empty()) {
    bool found = false;
    for (size_t index = 0; index < units.size() && !found; ++index) {
      Units tail = {units[index]};
      auto isMissing = [&](int node) {
        for (size_t other = 0; other < units.size(); ++other)
          if (other != index && (units[other].leader == node ||
                                 std::count(units[other].rows.begin(),
                                            units[other].rows.end(), node)))
            return true;
        return false;
      };
      std::vector<int> nodes = units[index].rows;
      if (units[index].leader >= 0)
        nodes.push_back(units[index].leader);
      bool isReady = true;
      for (int node : nodes)
        for (int operand : graph.nodes[node].operands)
          isReady &= graph.values[operand].producer < 0 ||
                     !isMissing(graph.values[operand].producer);
      if (!isReady)
        continue;
      sorted.push_back(units[index]);
      units.erase(units.begin() + index);
      found = true;
    }
    if (!found)
      return false;
  }
  units = sorted;
  return true;
}

/// The least traffic of all partitions into sweeps and all ways to put products
/// in front of them.
int64_t leastTraffic(const FusionGraph &graph) {
  std::vector<int> rows, products, others;
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    auto kind = graph.nodes[node].kind;
    (kind == FusionNode::RowWise      ? rows
     : kind == FusionNode::RowProduct ? products
                                      : others)
        .push_back(node);
  }
  int64_t best = INT64_MAX;
  std::vector<std::vector<int>> sweeps;
  std::function<void(size_t, std::vector<int>)> attach =
      [&](size_t product, std::vector<int> leaders) {
        if (product == products.size()) {
          Units units;
          for (size_t index = 0; index < sweeps.size(); ++index)
            units.push_back({leaders[index], sweeps[index]});
          for (int node : products)
            if (!std::count(leaders.begin(), leaders.end(), node))
              units.push_back({node, {}});
          for (int node : others)
            units.push_back({node, {}});
          if (sortUnits(graph, units) && isLegal(graph, units))
            best = std::min(best, sweepTraffic(graph, units));
          return;
        }
        attach(product + 1, leaders);
        for (size_t index = 0; index < sweeps.size(); ++index)
          if (leaders[index] < 0) {
            std::vector<int> more = leaders;
            more[index] = products[product];
            attach(product + 1, more);
          }
      };
  std::function<void(size_t)> cut = [&](size_t next) {
    if (next == rows.size())
      return attach(0, std::vector<int>(sweeps.size(), -1));
    for (size_t index = 0; index < sweeps.size(); ++index) {
      sweeps[index].push_back(rows[next]);
      cut(next + 1);
      sweeps[index].pop_back();
    }
    sweeps.push_back({rows[next]});
    cut(next + 1);
    sweeps.pop_back();
  };
  cut(0);
  return best;
}

FusionGraph randomGraph(std::mt19937 &random, int count) {
  FusionGraph graph;
  std::vector<int> live = {graph.addArgument(4), graph.addArgument(4)};
  for (int index = 0; index < count; ++index) {
    int pick = random() % 5;
    auto operand = [&] { return live[random() % live.size()]; };
    std::vector<int> operands = {operand()};
    if (pick < 3 && random() % 2)
      operands.push_back(operand());
    int node = addOp(graph,
                     pick < 3    ? FusionNode::RowWise
                     : pick == 3 ? FusionNode::RowProduct
                                 : FusionNode::Other,
                     operands, 4, random() % 8 == 0);
    live.push_back(resultOf(graph, node));
  }
  for (FusionValue &value : graph.values)
    value.returned =
        value.producer >= 0 && (value.consumers.empty() || random() % 6 == 0);
  return graph;
}

TEST(RowGroups, ChainBehindItsProduct) {
  FusionGraph graph;
  int x = graph.addArgument(8), z = graph.addArgument(8);
  int product = addOp(graph, FusionNode::RowProduct, {x}, 8);
  int bias = addOp(graph, FusionNode::RowWise, {resultOf(graph, product)}, 8);
  int gelu = addOp(graph, FusionNode::RowWise, {resultOf(graph, bias)}, 8);
  int add = addOp(graph, FusionNode::RowWise, {resultOf(graph, gelu), z}, 8);
  graph.values[resultOf(graph, add)].returned = true;
  Units units = planSweeps(graph);
  ASSERT_EQ(units.size(), 1u);
  EXPECT_EQ(units[0].leader, product);
  EXPECT_EQ(units[0].rows, (std::vector<int>{bias, gelu, add}));
  // z in, y out; the product's result is hot.
  EXPECT_EQ(sweepTraffic(graph, units), 16);
}

TEST(RowGroups, ProductOnThePathKeepsThemApart) {
  FusionGraph graph;
  int x = graph.addArgument(8);
  int a = addOp(graph, FusionNode::RowWise, {x}, 8);
  int product = addOp(graph, FusionNode::RowProduct, {resultOf(graph, a)}, 8);
  int b = addOp(graph, FusionNode::RowWise,
                {resultOf(graph, a), resultOf(graph, product)}, 8);
  graph.values[resultOf(graph, b)].returned = true;
  Units units = planSweeps(graph);
  EXPECT_TRUE(isLegal(graph, units));
  EXPECT_NE(&unitOf(units, a), &unitOf(units, b));
  EXPECT_EQ(unitOf(units, b).leader, product);
}

TEST(RowGroups, AccumulatorEndsWithItsSweep) {
  // Two sums over rows into one accumulator share their operand, but the second
  // begins with what the first ends with.
  FusionGraph graph;
  int dy = graph.addArgument(8), sum = graph.addArgument(0);
  int a = addOp(graph, FusionNode::RowWise, {dy, sum}, 0);
  int b = addOp(graph, FusionNode::RowWise, {dy, resultOf(graph, a)}, 0);
  Units units = planSweeps(graph);
  EXPECT_TRUE(isLegal(graph, units));
  EXPECT_NE(&unitOf(units, a), &unitOf(units, b));
}

TEST(RowGroups, WholeRowsComeFromOutside) {
  FusionGraph graph;
  int x = graph.addArgument(8);
  int a = addOp(graph, FusionNode::RowWise, {x}, 8);
  int rotary = addOp(graph, FusionNode::RowWise, {resultOf(graph, a)}, 8, true);
  int after = addOp(graph, FusionNode::RowWise, {resultOf(graph, rotary)}, 8);
  graph.values[resultOf(graph, after)].returned = true;
  Units units = planSweeps(graph);
  EXPECT_TRUE(isLegal(graph, units));
  EXPECT_NE(&unitOf(units, a), &unitOf(units, rotary));
  EXPECT_EQ(&unitOf(units, rotary), &unitOf(units, after));
}

TEST(RowGroups, WidthsDoNotMix) {
  FusionGraph graph;
  int x = graph.addArgument(8);
  int a = addOp(graph, FusionNode::RowWise, {x}, 8);
  int b = addOp(graph, FusionNode::RowWise, {x}, 8);
  graph.nodes[b].width = 16;
  Units units = planSweeps(graph);
  EXPECT_NE(&unitOf(units, a), &unitOf(units, b));
}

TEST(RowGroups, NothingSharedNothingMerged) {
  FusionGraph graph;
  int x = graph.addArgument(8), y = graph.addArgument(8);
  addOp(graph, FusionNode::RowWise, {x}, 8);
  addOp(graph, FusionNode::RowWise, {y}, 8);
  EXPECT_EQ(planSweeps(graph).size(), 2u);
}

TEST(RowGroups, EachBehindItsOwnProduct) {
  // q, k and v of one input: a sweep behind each product, not one for all.
  FusionGraph graph;
  int x = graph.addArgument(8);
  for (int index = 0; index < 3; ++index) {
    int product = addOp(graph, FusionNode::RowProduct, {x}, 8);
    int bias = addOp(graph, FusionNode::RowWise, {resultOf(graph, product)}, 8);
    graph.values[resultOf(graph, bias)].returned = true;
  }
  Units units = planSweeps(graph);
  ASSERT_EQ(units.size(), 3u);
  for (const FusionUnit &unit : units) {
    EXPECT_GE(unit.leader, 0);
    EXPECT_EQ(unit.rows.size(), 1u);
  }
}

TEST(RowGroups, LegalityFindsFaults) {
  FusionGraph graph;
  int x = graph.addArgument(8);
  int product = addOp(graph, FusionNode::RowProduct, {x}, 8);
  int a = addOp(graph, FusionNode::RowWise, {resultOf(graph, product)}, 8);
  int b = addOp(graph, FusionNode::RowWise, {x}, 8);
  EXPECT_TRUE(isLegal(graph, {{product, {a}}, {-1, {b}}}));
  EXPECT_FALSE(isLegal(graph, {{-1, {a}}, {product, {b}}})) << "order";
  EXPECT_FALSE(isLegal(graph, {{product, {b}}, {-1, {a}}})) << "not its sweep";
  EXPECT_FALSE(isLegal(graph, {{product, {a}}})) << "one is missing";
  EXPECT_FALSE(isLegal(graph, {{product, {a}}, {-1, {a, b}}})) << "twice";
}

/// Legal on all, and as good as trying everything on nearly all.
TEST(RowGroups, ComparedWithEveryPartition) {
  std::mt19937 random(11);
  int optimal = 0, rounds = 300;
  double sum = 0;
  for (int round = 0; round < rounds; ++round) {
    FusionGraph graph = randomGraph(random, 3 + round % 6);
    Units units = planSweeps(graph);
    ASSERT_TRUE(isLegal(graph, units)) << round;
    int64_t best = leastTraffic(graph), got = sweepTraffic(graph, units);
    ASSERT_GE(got, best);
    optimal += got == best;
    sum += best > 0 ? double(got) / best : 1;
  }
  RecordProperty("optimal", optimal);
  EXPECT_GE(optimal, rounds * 95 / 100);
  EXPECT_LT(sum / rounds, 1.02);
}

TEST(RowGroups, LargeOnesAreLegal) {
  std::mt19937 random(13);
  for (int round = 0; round < 20; ++round) {
    FusionGraph graph = randomGraph(random, 60);
    EXPECT_TRUE(isLegal(graph, planSweeps(graph))) << round;
  }
}

/// Steps of what grows with a layer: twice the ops may take little more than
/// twice the steps.
void expectGrowth(const std::function<FusionGraph(int)> &make,
                  double most = 2.4) {
  std::vector<double> steps;
  for (int size : {500, 1000, 2000}) {
    FusionGraph graph = make(size);
    int64_t count = 0;
    Units units = planSweeps(graph, &count);
    EXPECT_TRUE(isLegal(graph, units)) << size;
    steps.push_back(static_cast<double>(count));
  }
  EXPECT_GT(steps[0], 500);
  EXPECT_LT(steps[1] / steps[0], most) << steps[0] << " " << steps[1];
  EXPECT_LT(steps[2] / steps[1], most) << steps[1] << " " << steps[2];
}

TEST(RowGroups, StepsOfAChain) {
  expectGrowth([](int size) {
    FusionGraph graph;
    int x = graph.addArgument(8), last = x;
    for (int index = 0; index < size; ++index)
      last = resultOf(graph, addOp(graph, FusionNode::RowWise, {last, x}, 8));
    graph.values[last].returned = true;
    EXPECT_EQ(planSweeps(graph).size(), 1u);
    return graph;
  });
}

TEST(RowGroups, StepsOfManyUsers) {
  expectGrowth([](int size) {
    FusionGraph graph;
    int x = graph.addArgument(8);
    for (int index = 0; index < size; ++index) {
      int node = addOp(graph, FusionNode::RowWise, {x}, 8);
      graph.values[resultOf(graph, node)].returned = true;
    }
    EXPECT_EQ(planSweeps(graph).size(), 1u);
    return graph;
  });
}

TEST(RowGroups, StepsOfProductsWithSweepsBetween) {
  expectGrowth([](int size) {
    FusionGraph graph;
    int last = graph.addArgument(8);
    for (int index = 0; index < size / 4; ++index) {
      int product = addOp(graph, FusionNode::RowProduct, {last}, 8);
      int bias =
          addOp(graph, FusionNode::RowWise, {resultOf(graph, product)}, 8);
      int gelu = addOp(graph, FusionNode::RowWise, {resultOf(graph, bias)}, 8);
      last = resultOf(graph, addOp(graph, FusionNode::RowWise,
                                   {resultOf(graph, gelu), last}, 8));
    }
    graph.values[last].returned = true;
    EXPECT_EQ(planSweeps(graph).size(), size_t(size / 4));
    return graph;
  });
}

/// Which earlier op an op of so many reads, besides the one in front of it; -1:
/// the layer's argument.
using Earlier = std::function<int(int op, int size)>;

/// A chain whose ops read earlier values too. `isProduct`: all values are kept
/// for the gradient.
FusionGraph withEarlier(int size, bool isProduct, const Earlier &earlier) {
  FusionGraph graph;
  std::vector<int> made;
  int x = graph.addArgument(8), last = graph.addArgument(8);
  for (int op = 0; op < size; ++op) {
    int before = earlier(op, size);
    last = resultOf(graph, addOp(graph, FusionNode::RowWise,
                                 {last, before < 0 ? x : made[before]}, 8));
    made.push_back(last);
    graph.values[last].returned = isProduct || op + 1 == size;
  }
  return graph;
}

/// The gradients of the same chain of products.
FusionGraph gradientsWithEarlier(int size, const Earlier &earlier) {
  FusionGraph graph;
  // Of the argument, of what the chain starts with, and of each op.
  std::vector<int> values(size + 2), gradients(size + 2, -1);
  for (int &value : values)
    value = graph.addArgument(8);
  gradients.back() = graph.addArgument(8);
  auto row = [&](int a, int b) {
    return resultOf(graph, addOp(graph, FusionNode::RowWise, {a, b}, 8));
  };
  for (int op = size; op-- > 0;) {
    int last = op + 1, before = earlier(op, size);
    before = before < 0 ? 0 : before + 2;
    for (auto [of, by] : {std::pair(last, before), std::pair(before, last)}) {
      int part = row(gradients[op + 2], values[by]);
      gradients[of] = gradients[of] < 0 ? part : row(gradients[of], part);
    }
  }
  graph.values[gradients[0]].returned = true;
  graph.values[gradients[1]].returned = true;
  return graph;
}

class RowGroupsEarlier : public testing::TestWithParam<int> {
protected:
  Earlier earlier = [](int op, int size) {
    static std::vector<int> anywhere = [] {
      std::mt19937 random(19);
      std::vector<int> ops = {-1};
      while (ops.size() < 2000)
        ops.push_back(static_cast<int>(random() % ops.size()));
      return ops;
    }();
    switch (GetParam()) {
    case 0: // the chain folded in the middle
      return op > size / 2 ? size - op - 1 : -1;
    case 1:
      return op > 0 && op % 3 == 0 ? op / 2 : -1;
    default:
      return anywhere[op];
    }
  };
};

/// A sweep that has grown has a neighbour for each of its values: it is not
/// compared with all of them, nor are all looked at for paths, each time that
/// it takes in one more op.
TEST_P(RowGroupsEarlier, Steps) {
  auto alone = [](FusionGraph graph) {
    EXPECT_EQ(planSweeps(graph).size(), 1u);
    return graph;
  };
  for (bool isProduct : {false, true})
    expectGrowth(
        [&](int size) { return alone(withEarlier(size, isProduct, earlier)); });
  // Three ops for one; how many sweeps grow side by side depends on the size.
  expectGrowth(
      [&](int size) { return alone(gradientsWithEarlier(size, earlier)); },
      2.7);
}

INSTANTIATE_TEST_SUITE_P(Forms, RowGroupsEarlier, testing::Values(0, 1, 2));

TEST(RowGroups, StepsOfRandomOps) {
  // Values are used anywhere behind: paths have to be searched for.
  expectGrowth(
      [](int size) {
        std::mt19937 random(17);
        FusionGraph graph;
        std::vector<int> live(8, graph.addArgument(8));
        for (int index = 0; index < size; ++index) {
          auto operand = [&] { return live[live.size() - 1 - random() % 8]; };
          auto kind =
              random() % 4 ? FusionNode::RowWise : FusionNode::RowProduct;
          int node = addOp(graph, kind, {operand(), operand()}, 8);
          live.push_back(resultOf(graph, node));
        }
        return graph;
      },
      3);
}

} // namespace
