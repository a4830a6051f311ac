//===- PlanMemory.h - Memory of a rank over time ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANMEMORY_H
#define DYNA_RUNTIME_SIM_PLANMEMORY_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/program/Plan.h"

#include <vector>

namespace dyna {

/// While one instruction of a program runs, of the dynamic region.
struct LiveMemory {
  int64_t bytes = 0; ///< in blocks
  /// Where the last of them ends: the region's size at the least, with the holes
  /// that the places of blocks leave. Its maximum is what a program states as
  /// `dynamicBytes`.
  int64_t end = 0;
};

/// Of all instructions of a rank; when each runs says PlanTimes. O(n log n) in
/// blocks and instructions.
std::vector<LiveMemory> liveMemory(const ExecutableGraph &graph,
                                   const plan::Plan &plan, int rank);

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANMEMORY_H
