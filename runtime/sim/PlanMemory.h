//===- PlanMemory.h - Computes memory of a rank over time -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANMEMORY_H
#define DYNA_RUNTIME_SIM_PLANMEMORY_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/program/Plan.h"

#include <vector>

namespace dyna {

/// Use of a rank's dynamic region while one instruction runs.
struct LiveMemory {
  int64_t bytes = 0; ///< sum of the live blocks
  /// End of the last live block, so holes between blocks count. The maximum over a
  /// program is its `dynamicBytes`.
  int64_t end = 0;
};

/// Returns one entry for each instruction of a rank. PlanTimes says when each
/// runs. O(n log n) in blocks and instructions.
std::vector<LiveMemory> liveMemory(const ExecutableGraph &graph,
                                   const plan::Plan &plan, int rank);

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANMEMORY_H
