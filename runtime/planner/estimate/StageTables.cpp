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

/// Returns the power of two at or below a number, and the distance to the next
/// one as a fraction.
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

/// Returns the load of a slice of 2^t tokens after 2^c, all of them in the loss.
Load sliceOfPowers(int t, int c) {
  const int64_t context = INT64_C(1) << c, tokens = INT64_C(1) << t;
  Load load = loadOf({context, tokens}, {0, context + tokens});
  load.targets = tokens;
  return load;
}

} // namespace

StageTables::StageTables(const ExecutableGraph &graph, const CostModel &costs,
                         const PlanOptions &options, bool trains,
                         int64_t mostTokens)
    // The last slice of a sample counts as a whole sample of nearly twice its tokens.
    : powers_(powersUpTo(2 * mostTokens)) {
  const size_t points = static_cast<size_t>(powers_) * powers_;
  Sums sums = tabulate(graph, costs, options, trains, loadOfPowers);
  slowest_.whole.assign(points, 0);
  path_.whole.assign(points, 0);
  for (size_t stage = 0; stage < sums.forward.size(); ++stage) {
    Values &forward = sums.forward[stage], &backward = sums.backward[stage];
    neverFall(forward);
    neverFall(backward);
    for (size_t i = 0; i < points; ++i) {
      slowest_.whole[i] = std::max(slowest_.whole[i], forward[i] + backward[i]);
      path_.whole[i] += forward[i] + backward[i];
    }
    forward_.push_back({std::move(forward), {}});
    backward_.push_back({std::move(backward), {}});
  }
  if (costs.measuresSlices())
    addFactors(tabulate(graph, costs, options, trains, sliceOfPowers),
               tabulate(graph, costs, options, trains, [](int t, int c) {
                 Load load = sliceOfPowers(t, c);
                 load.context = 0;
                 return load;
               }));
}

template <typename LoadAt>
StageTables::Sums StageTables::tabulate(const ExecutableGraph &graph,
                                        const CostModel &costs,
                                        const PlanOptions &options, bool trains,
                                        const LoadAt &loadAt) const {
  const size_t points = static_cast<size_t>(powers_) * powers_;
  // Layers of one kind, state and mode take the same time.
  const Strategy &strategy = graph.strategy();
  std::map<std::tuple<int, int, plan::Recompute>, std::pair<Values, Values>>
      known;
  auto tabulate = [&](const plan::LayerKind &kind, const KindAt &at,
                      plan::Recompute mode) {
    std::pair<Values, Values> tables(Values(points, 0), Values(points, 0));
    auto passes = trainingPasses(kind, mode, options.splitBackward);
    if (!trains)
      passes.resize(1);
    for (int t = 0; t < powers_; ++t)
      for (int q = 0; q < powers_; ++q) {
        const Load load = loadAt(t, q);
        for (size_t p = 0; p < passes.size(); ++p)
          (p == 0 ? tables.first : tables.second)[t * powers_ + q] +=
              costs.seconds(at, passes[p], load);
      }
    return tables;
  };
  Sums sums;
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    const int perNode = shardsPerNode(graph, costs, stage);
    Values &forward = sums.forward.emplace_back(points, 0);
    Values &backward = sums.backward.emplace_back(points, 0);
    for (int l = view.firstLayer(); l < view.endLayer(); ++l) {
      const KindAt at = costs.at(l, strategy, perNode);
      const plan::Recompute mode = modeOf(options.recompute, l);
      const std::tuple key(costs.variantOf(l), perNode, mode);
      auto found = known.find(key);
      if (found == known.end())
        found = known.emplace(key, tabulate(view.kind(l), at, mode)).first;
      for (size_t i = 0; i < points; ++i) {
        forward[i] += found->second.first[i];
        backward[i] += found->second.second[i];
      }
    }
  }
  return sums;
}

void StageTables::addFactors(const Sums &slices, const Sums &whole) {
  const size_t points = static_cast<size_t>(powers_) * powers_;
  auto divide = [&](const Values &ofSlices, const Values &ofWhole,
                    Table &table) {
    table.factors.assign(points, 1);
    for (size_t i = 0; i < points; ++i)
      if (ofWhole[i] > 0)
        table.factors[i] = ofSlices[i] / ofWhole[i];
  };
  Values slowest[2] = {Values(points, 0), Values(points, 0)},
         path[2] = {Values(points, 0), Values(points, 0)};
  for (size_t stage = 0; stage < forward_.size(); ++stage) {
    divide(slices.forward[stage], whole.forward[stage], forward_[stage]);
    divide(slices.backward[stage], whole.backward[stage], backward_[stage]);
    for (size_t i = 0; i < points; ++i)
      for (int side : {0, 1}) {
        const Sums &sums = side == 0 ? slices : whole;
        const double both = sums.forward[stage][i] + sums.backward[stage][i];
        slowest[side][i] = std::max(slowest[side][i], both);
        path[side][i] += both;
      }
  }
  divide(slowest[0], slowest[1], slowest_);
  divide(path[0], path[1], path_);
}

void StageTables::neverFall(Values &values) const {
  for (int t = 0; t < powers_; ++t)
    for (int q = 0; q < powers_; ++q) {
      double &value = values[t * powers_ + q];
      if (t > 0)
        value = std::max(value, values[(t - 1) * powers_ + q]);
      if (q > 0)
        value = std::max(value, values[t * powers_ + q - 1]);
    }
}

/// Returns the value between four neighbours.
double StageTables::between(const Values &values, double row,
                            double column) const {
  auto [t, x] = place(row, powers_ - 2);
  auto [q, y] = place(column, powers_ - 2);
  const double *corner = &values[t * powers_ + q];
  double few = corner[0] + y * (corner[1] - corner[0]);
  double many = corner[powers_] + y * (corner[powers_ + 1] - corner[powers_]);
  return few + x * (many - few);
}

double StageTables::at(const Table &table, const Load &load) const {
  double queries = static_cast<double>(load.queries);
  // Whole samples compute half of their pairs, slices nearly all: of both, the keys of
  // a whole sample with as many visible pairs. That is pairs / queries for whole ones.
  const int64_t pairs = 2 * load.causalPairs - load.queries;
  double keys = load.queries > 0 ? static_cast<double>(pairs) / queries : 0;
  const double whole = between(table.whole, queries, keys);
  if (load.context == 0 || table.factors.empty())
    return whole;
  // Segments count as slices of mean size, as in the cost model.
  const auto segments =
      static_cast<double>(std::max<int64_t>(load.segments, 1));
  return whole * between(table.factors, queries / segments,
                         static_cast<double>(load.context) / segments);
}

} // namespace dyna
