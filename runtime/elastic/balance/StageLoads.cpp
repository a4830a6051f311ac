//===- StageLoads.cpp - Computes seconds of stages and steps --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/balance/StageLoads.h"

#include "runtime/planner/graph/CutLayers.h"

#include <algorithm>
#include <numeric>

namespace dyna {

std::vector<double> stageLoads(const std::vector<double> &seconds,
                               const std::vector<int> &cut,
                               const std::vector<double> &waits) {
  std::vector<double> loads = stageSums(seconds, cut);
  for (size_t s = 0; s < loads.size() && s < waits.size(); ++s)
    loads[s] += waits[s];
  return loads;
}

double stepSeconds(const std::vector<double> &loads, int64_t microBatches) {
  if (loads.empty())
    return 0;
  return static_cast<double>(microBatches - 1) *
             *std::max_element(loads.begin(), loads.end()) +
         std::accumulate(loads.begin(), loads.end(), 0.0);
}

} // namespace dyna
