//===- PruneUnits.h - Prunes heads or channels of a rank --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_CHANGE_PRUNEUNITS_H
#define DYNA_RUNTIME_EXECUTOR_CHANGE_PRUNEUNITS_H

#include "runtime/elastic/prune/SelectSurvivors.h"
#include "runtime/executor/rank/GraphSeat.h"
#include "runtime/executor/step/Pruning.h"

namespace dyna {

/// Selects the units that survive (runtime/elastic/prune/SelectUnits.h), and prunes all
/// others in the rows that this rank updates. All ranks call it; `seat` is null on a rank
/// without a place. T is the type of masters.
template <typename T>
Status pruneUnits(const Model &model, GraphSeat *seat, RankMachine &machine,
                  const PruneOrder &order, const SumCounts &sum,
                  PruneResult &result);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_CHANGE_PRUNEUNITS_H
