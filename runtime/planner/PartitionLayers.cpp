//===- PartitionLayers.cpp - The cut of the layers into stages -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/PartitionLayers.h"

#include "runtime/plan/Text.h"

#include <algorithm>

namespace dyna {
namespace {

/// Whether stages of at most `limit` suffice; `cut` gets the layers of each:
/// every stage takes what fits, but leaves one layer for each behind it.
bool fits(const std::vector<double> &costs, int stages, double limit,
          std::vector<int> &cut) {
  cut.assign(stages, 0);
  size_t layer = 0;
  for (int stage = 0; stage < stages; ++stage) {
    size_t last = costs.size() - (stages - 1 - stage);
    double sum = 0;
    while (layer < last && sum + costs[layer] <= limit) {
      sum += costs[layer++];
      ++cut[stage];
    }
    if (cut[stage] == 0)
      return false;
  }
  return layer == costs.size();
}

} // namespace

std::vector<int> partitionLayers(const std::vector<double> &costs, int stages) {
  // The optimum is the sum of some run of layers, added up in this order.
  std::vector<double> sums;
  for (size_t begin = 0; begin < costs.size(); ++begin) {
    double sum = 0;
    for (size_t end = begin; end < costs.size(); ++end)
      sums.push_back(sum += costs[end]);
  }
  std::sort(sums.begin(), sums.end());
  std::vector<int> cut;
  auto best = std::partition_point(sums.begin(), sums.end(), [&](double limit) {
    return !fits(costs, stages, limit, cut);
  });
  fits(costs, stages, best == sums.end() ? sums.back() : *best, cut);
  return cut;
}

std::vector<double> layerCosts(const ManifestView &view, int64_t sampleTokens) {
  std::vector<double> costs;
  for (int l = 0; l < view.layers(); ++l)
    costs.push_back(3 * view.forwardFlops(l, sampleTokens, sampleTokens,
                                          view.visiblePairs(l, sampleTokens)));
  return costs;
}

StatusOr<Strategy> chooseLayers(const ManifestView &view, Strategy strategy,
                                int64_t sampleTokens) {
  if (!strategy.layers.empty())
    return strategy;
  if (strategy.pp > view.layers())
    return Status::invalidArgument(formatText(
        "strategy '%s': %d stages, but the model has %d layers",
        describeStrategy(strategy).c_str(), strategy.pp, view.layers()));
  strategy.layers =
      partitionLayers(layerCosts(view, sampleTokens), strategy.pp);
  return strategy;
}

} // namespace dyna
