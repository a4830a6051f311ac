//===- MovedState.h - Moves state of pruned and frozen layers -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lists the tensors that a switch carries if layers have states (LayerState.h). Without
// states it is the list of StateTensors.h.
//
//     state     tensors
//     masked    also a mask of one byte for each weight
//     CSR       values, copies and moments of survivors, and both sides of the index:
//               4 bytes for each survivor, 528 for each tile of 128 x 128 weights
//     frozen    the values that layer functions read, or of CSR these and the index
//
// The boxes of a CSR weight lie in a smaller matrix, which has as many elements as the
// weight has survivors. Its longer dimension is shrunk, and rounded. So a box has the
// share of survivors that it has of the weights. Such tensors are for durations and bytes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_MOVEDSTATE_H
#define DYNA_RUNTIME_PLAN_MOVEDSTATE_H

#include "runtime/plan/graph/StateTensors.h"
#include "runtime/plan/model/LayerState.h"

#include <vector>

namespace dyna {

/// Returns the state of `from` and where `to` needs it, if the layers of both have these
/// states. O(parameters * (layers + ranks)).
std::vector<SwitchTensor> movedState(const ExecutableGraph &from,
                                     const ExecutableGraph &to,
                                     const LayerStates &states);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_MOVEDSTATE_H
