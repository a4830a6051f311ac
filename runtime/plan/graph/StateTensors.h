//===- StateTensors.h - State that moves between graphs ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lists what ranks keep from step to step, as tensors that a switch can carry from
// one graph to another one of the same model:
//
//     part                    lies before on            lies behind on
//     masters                 ranks that update rows    ranks that update rows
//     moments (m, v)          ranks that update rows    ranks that update rows
//     masks of the pruned     ranks that update rows    ranks that update rows
//     copies in compute type  ranks that update rows    ranks that update rows
//
// A rank *updates* all rows that it holds, or with ZeRO its own ones. Rows that it holds
// and does not update are gathered by the next step before layers read them, so they are
// not carried. Gradients are zero between two steps, so they are not carried either.
//
// Several ranks may have a row before: replicas, and stages that share a parameter. All
// have equal bits. The planner of the switch chooses one, by the same rules everywhere.
// Each rank that needs a row behind gets it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STATETENSORS_H
#define DYNA_RUNTIME_PLAN_STATETENSORS_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/graph/SwitchPlan.h"

#include <vector>

namespace dyna {

/// Returns the parts of a parameter that a rank keeps from step to step. Masters come
/// first. `persistent` says whether there are moments and masks.
std::vector<ParameterPart> stateParts(const Model &model, int parameter,
                                      Persistent persistent);

/// Returns the state of `from` and where `to` needs it. Parameters have the order in
/// which layers first use them, so that few tensors are needed at a time. The graphs
/// are of one model; they may have different numbers of ranks.
std::vector<SwitchTensor>
stateTensors(const ExecutableGraph &from, const ExecutableGraph &to,
             Persistent persistent = Persistent::Training);

/// Returns the bytes that are not where they must be: what each rank needs of the
/// tensors and does not have. No plan sends fewer bytes.
int64_t missingBytes(const std::vector<SwitchTensor> &tensors);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STATETENSORS_H
