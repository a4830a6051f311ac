//===- PipelineProblem.cpp - Describes a schedule's input -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/PipelineProblem.h"

namespace dyna {

std::vector<StageLink> chainOf(int stages, double seconds) {
  std::vector<StageLink> links;
  for (int s = 1; s < stages; ++s)
    links.push_back({s - 1, s, seconds});
  return links;
}

} // namespace dyna
