//===- PipelineMemory.cpp - Checks that micro-batches fit a stage ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/PipelineMemory.h"

#include "runtime/base/Text.h"
#include "runtime/planner/order/schedules/BackwardOrder.h"

namespace dyna {

Status checkMemory(const PipelineProblem &problem) {
  if (problem.limits.empty())
    return Status::ok();
  const BackwardOrder order(problem);
  for (int s = 0; s < problem.stages(); ++s) {
    int begin = 0;
    for (int end : order.unitEnds) {
      int64_t held = 0;
      for (int m = begin; m < end; ++m)
        held += problem.heldBytes(s, m);
      if (held > problem.limits[s])
        return Status::resourceExhausted(formatText(
            "micro-batch %d alone keeps %s on stage %d, but there are %s: use "
            "smaller micro-batches or more recomputation",
            begin, formatBytes(held), s, formatBytes(problem.limits[s])));
      begin = end;
    }
  }
  return Status::ok();
}

} // namespace dyna
