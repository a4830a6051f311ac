//===- GraphEstimates.cpp - Estimates the steps of given graphs -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/GraphEstimates.h"

#include <algorithm>

namespace dyna {

double GraphEstimates::switchSeconds(const std::vector<int> &graphs) const {
  std::vector<int> phases;
  for (int graph : order_)
    if (std::find(graphs.begin(), graphs.end(), graph) != graphs.end())
      phases.push_back(graph);
  return switches_.of(phases);
}

} // namespace dyna
