//===- StateTensors.h - Lists the state that moves between graphs ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// State is what ranks keep from step to step. A switch can carry it, as
// tensors, from one graph to another of the same model:
//
//     part                    source                    target
//     masters                 ranks that update rows    ranks that update rows
//     moments (m, v)          ranks that update rows    ranks that update rows
//     masks of the pruned     ranks that update rows    ranks that update rows
//     scores                  ranks that update rows    ranks that update rows
//     copies in compute type  ranks that update rows    ranks that update rows
//
// A rank *updates* all rows that it holds; with ZeRO it updates its own rows.
// The next step gathers the other rows before layers read them, so they are not
// carried. Nothing gathers rows of a frozen parameter, so each rank that holds it gets all
// of its values. Gradients are zero between two steps, so they are not carried
// either.
//
// Several ranks may have a row at the source: replicas, and stages that share a
// parameter. All have equal bits. The planner of the switch chooses one, by the
// same rules on every rank. Each rank that needs a row at the target gets it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STATETENSORS_H
#define DYNA_RUNTIME_PLAN_STATETENSORS_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/graph/SwitchPlan.h"

#include <vector>

namespace dyna {

/// Returns the parts of a parameter that a rank keeps from step to step. Masters come
/// first. `persistent` says whether there are moments, masks and scores.
std::vector<ParameterPart> stateParts(const Model &model, int parameter,
                                      Persistent persistent);

/// Returns the state of `from` and the ranks of `to` that need it. Parameters
/// have the order in which layers first use them, so that few tensors are
/// needed at a time. The graphs have one compiled model, of which different parameters may
/// be parked; their numbers of ranks may differ.
std::vector<SwitchTensor>
stateTensors(const ExecutableGraph &from, const ExecutableGraph &to,
             Persistent persistent = Persistent::Training);

/// Returns the bytes of the tensors that ranks need and do not have. No plan
/// sends fewer bytes.
int64_t missingBytes(const std::vector<SwitchTensor> &tensors);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STATETENSORS_H
