//===- PipelineProblem.cpp - What a schedule decides on -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/PipelineProblem.h"

#include "runtime/base/Text.h"

namespace dyna {

std::vector<StageLink> chainOf(int stages, double seconds) {
  std::vector<StageLink> links;
  for (int s = 1; s < stages; ++s)
    links.push_back({s - 1, s, seconds});
  return links;
}

Status checkMemory(const PipelineProblem &problem) {
  if (problem.limits.empty())
    return Status::ok();
  for (int s = 0; s < problem.stages(); ++s)
    for (int m = 0; m < problem.microBatches(); ++m)
      if (problem.heldBytes(s, m) > problem.limits[s])
        return Status::resourceExhausted(formatText(
            "micro-batch %d alone keeps %s on stage %d, but there are %s: use "
            "smaller micro-batches or more recomputation",
            m, formatBytes(problem.heldBytes(s, m)), s,
            formatBytes(problem.limits[s])));
  return Status::ok();
}

} // namespace dyna
