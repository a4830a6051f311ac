//===- PartitionLayers.cpp - Cuts a model's layers into stages --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/PartitionLayers.h"

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/estimate/LackingCosts.h"
#include "runtime/planner/estimate/StageCosts.h"

#include <algorithm>
#include <limits>

namespace dyna {
std::vector<int>
partitionLayersForAny(const std::vector<std::vector<double>> &costs,
                      int stages) {
  auto largest = [](const std::vector<double> &own,
                    const std::vector<int> &cut) {
    const std::vector<double> sums = stageSums(own, cut);
    return *std::max_element(sums.begin(), sums.end());
  };
  std::vector<std::vector<int>> cuts;
  std::vector<double> least;
  for (const std::vector<double> &own : costs) {
    cuts.push_back(partitionLayers(own, stages));
    least.push_back(largest(own, cuts.back()));
  }
  std::vector<double> times; // worst ratio to the least time over all costs
  for (const std::vector<int> &cut : cuts) {
    times.push_back(1);
    for (size_t own = 0; own < costs.size(); ++own)
      if (least[own] > 0)
        times.back() =
            std::max(times.back(), largest(costs[own], cut) / least[own]);
  }
  const double enough =
      mostWorseCut * *std::min_element(times.begin(), times.end());
  size_t best = 0;
  while (times[best] > enough)
    ++best;
  return cuts[best];
}

namespace {

constexpr int64_t cutTokens = 4096;
constexpr int64_t cutSampleTokens = 1024;

std::vector<cost::Direction> passesOf(const Model &model, int layer,
                                      const RecomputeModes &modes) {
  return trainingPasses(model.kind(layer), modeOf(modes, layer), false);
}

/// Describes the source of costs: "costs from FILE" and what that lacks, or
/// that all is estimated.
std::string describeSource(const CostModel &costs, const Strategy &strategy,
                           const std::vector<std::string> &lacking) {
  const std::string estimate = describeEstimate(costs);
  const std::string &file = costs.table().name();
  if (file.empty())
    return estimate;
  const std::string from = "costs from " + file;
  if (costs.table().curves().empty())
    return from + ": " + estimate; // only the device comes from the file
  if (!hasCostsOfDegree(costs, strategy))
    return file + " has no entry for this strategy: " + estimate;
  return lacking.empty()
             ? from
             : from + "; it lacks " + joinNames(lacking) + ": " + estimate;
}

} // namespace

static std::vector<double> costsOf(const CostModel &costs,
                                   const Strategy &strategy,
                                   const RecomputeModes &recompute,
                                   const Load &load) {
  const Model &model = costs.model();
  std::vector<double> seconds;
  for (int l = 0; l < model.layers(); ++l) {
    seconds.push_back(0);
    for (cost::Direction pass : passesOf(model, l, recompute))
      seconds.back() += costs.seconds(costs.at(l, strategy), pass, load);
  }
  return seconds;
}

std::vector<double> layerCosts(const CostModel &costs, const Strategy &strategy,
                               const RecomputeModes &recompute) {
  int64_t positions = costs.model().manifest().facts().positions();
  int64_t sample =
      positions > 0 ? std::min(positions, cutSampleTokens) : cutSampleTokens;
  return costsOf(costs, strategy, recompute, loadOfEqual(sample, cutTokens));
}

std::vector<int> layersForLoad(const CostModel &costs, const Strategy &strategy,
                               const RecomputeModes &recompute,
                               const Load &load) {
  return partitionLayers(costsOf(costs, strategy, recompute, load),
                         strategy.pp);
}

StatusOr<StageCut> chooseLayers(const CostModel &costs, Strategy strategy,
                                const RecomputeModes &recompute, bool anyMode) {
  if (!strategy.layers.empty())
    return StageCut{std::move(strategy), "", {}};
  DYNA_RETURN_IF_ERROR(checkStages(strategy, costs.model().layers()));
  RecomputeModes modes =
      strategy.recompute ? RecomputeModes{*strategy.recompute} : recompute;
  std::vector<std::vector<double>> layers;
  for (const RecomputeModes &possible : possibleModes(modes, anyMode))
    layers.push_back(layerCosts(costs, strategy, possible));
  strategy.layers = partitionLayersForAny(layers, strategy.pp);
  StageCut cut = {std::move(strategy), "", {}};
  if (cut.strategy.pp == 1)
    return cut;
  for (int count : cut.strategy.layers)
    cut.note += (cut.note.empty() ? "stage cut " : "+") + std::to_string(count);
  cut.lacking =
      lackingCosts(costs, cut.strategy, {possibleModes(modes, anyMode)});
  cut.note += ": " + describeSource(costs, cut.strategy, cut.lacking);
  return cut;
}

} // namespace dyna
