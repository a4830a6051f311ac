//===- AssignMemory.h - Offsets for the blocks of a program -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H
#define DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H

#include "runtime/plan/RankView.h"

namespace dyna {

/// Chooses all offsets of one rank's program, and its `dynamic_bytes`; with
/// `largest`, as if every micro-batch had that extent. The view is the rank's.
Status assignMemory(const RankView &view, const plan::Plan &plan,
                    plan::RankProgram &program, const BatchExtent *largest);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H
