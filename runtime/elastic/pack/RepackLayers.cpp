//===- RepackLayers.cpp - Packs layers on fewer ranks ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/pack/RepackLayers.h"

#include "runtime/base/text/Text.h"
#include "runtime/elastic/balance/StageLoads.h"

#include <algorithm>
#include <numeric>

namespace dyna {
namespace {

int64_t microBatchesOf(const PackWay &way, int replicas) {
  return (way.microBatches + replicas - 1) / replicas;
}

/// Returns the bytes of each stage.
std::vector<int64_t> heldBytes(const LayerBytes &bytes,
                               const std::vector<int> &cut) {
  std::vector<int64_t> held;
  int layer = 0;
  for (size_t s = 0; s < cut.size(); ++s) {
    int64_t &sum = held.emplace_back(0);
    for (int i = 0; i < cut[s]; ++i)
      sum += bytes.at(static_cast<int>(s), layer++);
  }
  return held;
}

/// Returns the seconds of the reduction of the stage that has the most gradients. A ring
/// sends each byte twice, but for a share of one replica.
double reductionSeconds(const PackProblem &problem, const std::vector<int> &cut,
                        int replicas) {
  if (replicas < 2 || problem.gradientBytes.empty())
    return 0;
  const std::vector<double> bytes(problem.gradientBytes.begin(),
                                  problem.gradientBytes.end());
  const std::vector<double> sums = stageSums(bytes, cut);
  return 2.0 * (replicas - 1) / replicas * problem.secondsPerByte *
         *std::max_element(sums.begin(), sums.end());
}

std::vector<double> waitsOf(const PackProblem &problem, int stages) {
  std::vector<double> waits(stages, problem.linkSeconds);
  waits.back() = 0;
  return waits;
}

Packing packingOf(const PackProblem &problem, int way, std::vector<int> cut,
                  int replicas) {
  const PackWay &chosen = problem.ways[way];
  const auto stages = static_cast<int>(cut.size());
  Packing packing;
  packing.stages = stages;
  packing.replicas = replicas;
  packing.way = way;
  packing.stepSeconds =
      stepSeconds(stageLoads(chosen.seconds, cut, waitsOf(problem, stages)),
                  microBatchesOf(chosen, replicas)) +
      reductionSeconds(problem, cut, replicas);
  packing.tokensPerSecond =
      packing.stepSeconds > 0
          ? static_cast<double>(problem.tokens) / packing.stepSeconds
          : 0;
  const std::vector<int64_t> held =
      heldBytes(packedBytes(problem, chosen, stages, replicas), cut);
  packing.largestBytes = *std::max_element(held.begin(), held.end());
  packing.cut = std::move(cut);
  return packing;
}

/// Returns true if a cut has room for each stage with so many bytes more.
bool hasRoom(LayerBytes bytes, int64_t more) {
  for (int64_t &limit : bytes.limits)
    limit += more;
  // Stages take as many layers as fit if layers cost no time.
  const std::vector<double> none(bytes.own.size(), 0);
  return partitionLayersWithin(none, static_cast<int>(bytes.limits.size()),
                               bytes)
      .isOk();
}

Status noRoom(const PackProblem &problem, int stages, int replicas) {
  return Status::resourceExhausted(formatText(
      "%d layers do not fit on %d ranks of %s: each lacks %s (%d bytes); use "
      "more ranks, recomputation, smaller micro-batches or ZeRO",
      problem.own.size(), stages * replicas, formatBytes(problem.limit),
      formatBytes(lackingBytes(problem, stages, replicas)),
      lackingBytes(problem, stages, replicas)));
}

} // namespace

LayerBytes packedBytes(const PackProblem &problem, const PackWay &way,
                       int stages, int replicas) {
  LayerBytes bytes;
  bytes.own = problem.own;
  bytes.kept = way.kept;
  for (int s = 0; s < stages; ++s)
    bytes.inFlight.push_back(
        std::min<int64_t>(stages - s, microBatchesOf(way, replicas)));
  bytes.limits.assign(stages, problem.limit);
  return bytes;
}

StatusOr<Packing> packInto(const PackProblem &problem, int stages,
                           int replicas) {
  const auto layers = static_cast<int>(problem.own.size());
  if (stages < 1 || stages > layers || replicas < 1)
    return Status::invalidArgument(
        formatText("%d layers on pipelines of %d stages: give 1 to %d, and at "
                   "least one replica, not %d",
                   layers, stages, layers, replicas));
  Packing best;
  for (size_t w = 0; w < problem.ways.size(); ++w) {
    const PackWay &way = problem.ways[w];
    auto cut = partitionLayersWithin(
        way.seconds, stages, packedBytes(problem, way, stages, replicas),
        waitsOf(problem, stages));
    if (!cut.isOk())
      continue;
    Packing packing =
        packingOf(problem, static_cast<int>(w), *std::move(cut), replicas);
    if (best.cut.empty() || packing.stepSeconds < best.stepSeconds)
      best = std::move(packing);
  }
  if (best.cut.empty())
    return noRoom(problem, stages, replicas);
  return best;
}

int64_t lackingBytes(const PackProblem &problem, int stages, int replicas) {
  int64_t least = -1;
  for (const PackWay &way : problem.ways) {
    const LayerBytes bytes = packedBytes(problem, way, stages, replicas);
    // With all layers in the first stage every other stage needs less.
    int64_t high = 0;
    for (size_t l = 0; l < bytes.own.size(); ++l)
      high += bytes.at(0, static_cast<int>(l));
    for (int64_t low = 0; low < high;) {
      const int64_t middle = low + (high - low) / 2;
      if (hasRoom(bytes, middle))
        high = middle;
      else
        low = middle + 1;
    }
    least = least < 0 ? high : std::min(least, high);
  }
  return std::max<int64_t>(least, 0);
}

} // namespace dyna
