//===- StageTables.cpp - Tabulates the seconds of stages by load ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/StageTables.h"

#include "runtime/planner/estimate/StageCosts.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace dyna {
namespace {

/// The power of two at or below a number, and how far it is to the next one.
std::pair<int, double> place(double number, int last) {
  int power = 0;
  while (power < last && number >= static_cast<double>(INT64_C(2) << power))
    ++power;
  double begin = static_cast<double>(INT64_C(1) << power);
  return {power, std::clamp((number - begin) / begin, 0.0, 1.0)};
}

int powersUpTo(int64_t number) {
  int powers = 2;
  while (powers < 40 && INT64_C(1) << (powers - 1) < number)
    ++powers;
  return powers;
}

/// Returns the load of 2^t tokens in samples of 2^q tokens, all of them in the loss. With
/// fewer tokens than a sample has, it is a part of the sample's load.
Load loadOfPowers(int t, int q) {
  const Load sample = loadOfSample(INT64_C(1) << q);
  auto scaled = [&](int64_t count) {
    return t >= q ? count << (t - q) : count >> (q - t);
  };
  Load load;
  load.queries = load.keys = load.targets = INT64_C(1) << t;
  load.segments = std::max<int64_t>(scaled(1), 1);
  load.pairs = scaled(sample.pairs);
  load.causalPairs = scaled(sample.causalPairs);
  return load;
}

} // namespace

StageTables::StageTables(const ExecutableGraph &graph, const CostModel &costs,
                         const PlanOptions &options, bool trains,
                         int64_t mostTokens)
    // The last slice of a sample counts as a whole sample of nearly twice its tokens.
    : powers_(powersUpTo(2 * mostTokens)) {
  const size_t points = static_cast<size_t>(powers_) * powers_;
  // Layers of one kind and mode take the same.
  const Strategy &strategy = graph.strategy();
  std::map<std::tuple<int, int, plan::Recompute>, std::pair<Table, Table>>
      known;
  auto tabulate = [&](const plan::LayerKind &kind, const KindAt &at,
                      plan::Recompute mode) {
    std::pair<Table, Table> tables(Table(points, 0), Table(points, 0));
    auto passes = trainingPasses(kind, mode, options.splitBackward);
    if (!trains)
      passes.resize(1);
    for (int t = 0; t < powers_; ++t)
      for (int q = 0; q < powers_; ++q) {
        const Load load = loadOfPowers(t, q);
        for (size_t p = 0; p < passes.size(); ++p)
          (p == 0 ? tables.first : tables.second)[t * powers_ + q] +=
              costs.seconds(at, passes[p], load);
      }
    return tables;
  };
  slowest_.assign(points, 0);
  path_.assign(points, 0);
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    const int perNode = shardsPerNode(graph, costs, stage);
    Table &forward = forward_.emplace_back(points, 0);
    Table &backward = backward_.emplace_back(points, 0);
    for (int l = view.firstLayer(); l < view.endLayer(); ++l) {
      const KindAt at{view.layer(l).kind(), strategy.tp, strategy.sp, perNode};
      const plan::Recompute mode = modeOf(options.recompute, l);
      const std::tuple key(at.kind, perNode, mode);
      auto found = known.find(key);
      if (found == known.end())
        found = known.emplace(key, tabulate(view.kind(l), at, mode)).first;
      for (size_t i = 0; i < points; ++i) {
        forward[i] += found->second.first[i];
        backward[i] += found->second.second[i];
      }
    }
    neverFall(forward);
    neverFall(backward);
    for (size_t i = 0; i < points; ++i) {
      slowest_[i] = std::max(slowest_[i], forward[i] + backward[i]);
      path_[i] += forward[i] + backward[i];
    }
  }
}

void StageTables::neverFall(Table &table) const {
  for (int t = 0; t < powers_; ++t)
    for (int q = 0; q < powers_; ++q) {
      double &value = table[t * powers_ + q];
      if (t > 0)
        value = std::max(value, table[(t - 1) * powers_ + q]);
      if (q > 0)
        value = std::max(value, table[t * powers_ + q - 1]);
    }
}

double StageTables::at(const Table &table, const Load &load) const {
  double queries = static_cast<double>(load.queries);
  // Whole samples compute half of their pairs, slices nearly all: of both, the keys of
  // a whole sample with as many visible pairs. That is pairs / queries for whole ones.
  const int64_t pairs = 2 * load.causalPairs - load.queries;
  double keys = load.queries > 0 ? static_cast<double>(pairs) / queries : 0;
  auto [t, x] = place(queries, powers_ - 2);
  auto [q, y] = place(keys, powers_ - 2);
  const double *corner = &table[t * powers_ + q];
  double few = corner[0] + y * (corner[1] - corner[0]);
  double many = corner[powers_] + y * (corner[powers_ + 1] - corner[powers_]);
  return few + x * (many - few);
}

} // namespace dyna
