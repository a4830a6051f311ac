//===- PartitionLayers.cpp - The cut of the layers into stages -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PartitionLayers.h"

#include "runtime/plan/ExecutableGraph.h"
#include "runtime/planner/StageCosts.h"

#include <algorithm>
#include <limits>

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

std::vector<int>
partitionLayersForAny(const std::vector<std::vector<double>> &costs,
                      int stages) {
  auto largest = [](const std::vector<double> &own,
                    const std::vector<int> &cut) {
    double most = 0;
    size_t layer = 0;
    for (int layers : cut) {
      double sum = 0;
      for (int i = 0; i < layers; ++i)
        sum += own[layer++];
      most = std::max(most, sum);
    }
    return most;
  };
  std::vector<std::vector<int>> cuts;
  std::vector<double> least;
  for (const std::vector<double> &own : costs) {
    cuts.push_back(partitionLayers(own, stages));
    least.push_back(largest(own, cuts.back()));
  }
  size_t best = 0;
  double bestTimes = std::numeric_limits<double>::infinity();
  for (size_t cut = 0; cut < cuts.size(); ++cut) {
    double times = 1;
    for (size_t own = 0; own < costs.size(); ++own)
      if (least[own] > 0)
        times = std::max(times, largest(costs[own], cuts[cut]) / least[own]);
    if (times < bestTimes) {
      best = cut;
      bestTimes = times;
    }
  }
  return cuts[best];
}

namespace {

constexpr int64_t cutTokens = 4096;
constexpr int64_t cutSampleTokens = 1024;

std::vector<cost::Direction> passesOf(const Model &model, int layer,
                                      const RecomputeModes &modes) {
  return trainingPasses(model.kind(layer), modeOf(modes, layer), false);
}

KindAt kindAt(const Model &model, int layer, const Strategy &strategy) {
  return {model.layer(layer).kind(), strategy.tp, strategy.sp};
}

/// "costs from FILE" and what that lacks, or that all is estimated.
std::string describeSource(const CostModel &costs, const Strategy &strategy,
                           const RecomputeModes &recompute) {
  std::string estimate = "estimated from flops and bytes of device '" +
                         costs.table().device().name() + "'";
  std::vector<std::string> lacking;
  bool measured = false;
  for (int l = 0; l < costs.model().layers(); ++l)
    for (cost::Direction pass : passesOf(costs.model(), l, recompute)) {
      KindAt at = kindAt(costs.model(), l, strategy);
      std::string name = describeCostKey(costs.keyOf(at, pass));
      if (costs.isMeasured(at, pass))
        measured = true;
      else if (std::find(lacking.begin(), lacking.end(), name) == lacking.end())
        lacking.push_back(name);
    }
  const std::string &file = costs.table().name();
  std::string from = "costs from " + file;
  if (!measured)
    return file.empty() ? estimate
           // The device is where the estimate comes from.
           : costs.table().curves().empty()
               ? from + ": " + estimate
               : file + " has no entry for this strategy: " + estimate;
  if (lacking.empty())
    return from;
  std::string names;
  for (const std::string &name : lacking)
    names += (names.empty() ? "" : "; ") + name;
  return from + "; it lacks " + names + ": " + estimate;
}

} // namespace

std::vector<double> layerCosts(const CostModel &costs, const Strategy &strategy,
                               const RecomputeModes &recompute) {
  const Model &model = costs.model();
  int64_t positions = model.manifest().facts().positions();
  int64_t sample =
      positions > 0 ? std::min(positions, cutSampleTokens) : cutSampleTokens;
  std::vector<double> seconds;
  for (int l = 0; l < model.layers(); ++l) {
    Work work{cutTokens,
              visiblePairs(model.kind(l), sample) * (cutTokens / sample),
              cutTokens};
    seconds.push_back(0);
    for (cost::Direction pass : passesOf(model, l, recompute))
      seconds.back() += costs.seconds(kindAt(model, l, strategy), pass, work);
  }
  return seconds;
}

StatusOr<StageCut> chooseLayers(const CostModel &costs, Strategy strategy,
                                const RecomputeModes &recompute, bool anyMode) {
  if (!strategy.layers.empty())
    return StageCut{std::move(strategy), ""};
  DYNA_RETURN_IF_ERROR(checkStages(strategy, costs.model().layers()));
  RecomputeModes modes =
      strategy.recompute ? RecomputeModes{*strategy.recompute} : recompute;
  std::vector<std::vector<double>> layers = {
      layerCosts(costs, strategy, modes)};
  if (anyMode)
    for (plan::Recompute mode :
         {plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL})
      layers.push_back(layerCosts(costs, strategy, {mode}));
  strategy.layers = partitionLayersForAny(layers, strategy.pp);
  std::string note;
  if (strategy.pp > 1) {
    for (int count : strategy.layers)
      note += (note.empty() ? "stage cut " : "+") + std::to_string(count);
    note += ": " + describeSource(costs, strategy, modes);
  }
  return StageCut{std::move(strategy), std::move(note)};
}

} // namespace dyna
