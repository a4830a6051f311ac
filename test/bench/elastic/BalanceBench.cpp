//===- BalanceBench.cpp - What it takes to balance stages -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cuts 1,000 layers, of random costs and bytes, into 8 to 512 stages within the memory
// of each stage. One line for each number of stages: processor seconds, the median of
// 101, the largest sum over the mean, and `memory`: whether memory changed the cut.
// `authors_s` is what the published planner of DynPipe takes for 512 stages, without
// memory limits.
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/base/thread/CoreTime.h"
#include "runtime/planner/graph/CutLayers.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

using namespace dyna;

namespace {

double largestOverMean(const std::vector<double> &costs,
                       const std::vector<int> &cut) {
  const std::vector<double> sums = stageSums(costs, cut);
  return *std::max_element(sums.begin(), sums.end()) *
         static_cast<double>(sums.size()) /
         std::accumulate(sums.begin(), sums.end(), 0.0);
}

int measure(int stages) {
  constexpr int layers = 1000, repeats = 101;
  std::vector<double> costs;
  LayerBytes bytes;
  uint64_t counter = 1;
  int64_t held = 0;
  for (int l = 0; l < layers; ++l) {
    // Pruned layers take between a tenth and all of a dense one.
    costs.push_back(0.1 +
                    static_cast<double>(dyna_mix64(++counter) % 901) / 1000);
    bytes.own.push_back(100 + static_cast<int64_t>(dyna_mix64(++counter) % 50));
    bytes.kept.push_back(1);
    held += bytes.own.back();
  }
  for (int s = 0; s < stages; ++s) {
    bytes.inFlight.push_back(std::min(stages - s, 8));
    bytes.limits.push_back(held * 5 / 4 / stages + 200);
  }
  std::vector<double> seconds;
  std::vector<int> cut;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double begin = coreSeconds();
    auto found = partitionLayersWithin(costs, stages, bytes);
    seconds.push_back(coreSeconds() - begin);
    if (!found.isOk())
      return std::fprintf(stderr, "%s\n", found.status().message().c_str()), 1;
    cut = *std::move(found);
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("{\"bench\": \"balance\", \"layers\": %d, \"stages\": %d, "
              "\"seconds\": %.6f, \"largest_over_mean\": %.3f, \"memory\": %s, "
              "\"required_s\": 0.001, \"authors_s\": 0.006}\n",
              layers, stages, seconds[repeats / 2], largestOverMean(costs, cut),
              cut == partitionLayers(costs, stages) ? "false" : "true");
  return 0;
}

} // namespace

int main() {
  int failures = 0;
  for (int stages : {8, 48, 128, 512})
    failures += measure(stages);
  return failures > 0;
}
