//===- DealRoutes.h - Deals routes of lots to buckets -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensors are taken in order, and those between other ranks in turns. Each cell
// of a tensor gets a route of its lot. The route and its ports must have got
// less than their parts so far. So each stretch of layers uses the ports as
// evenly as the whole switch does. Cells that are large for their lot are cut
// into runs of rows.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H
#define DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H

#include "runtime/planner/switch/SwitchOptions.h"
#include "runtime/planner/switch/routes/DealtSwitch.h"

namespace dyna::switches {

/// Deals routes. Linear in the resulting transfers. For each cell of a tensor
/// these are at most its needers and gates, and `kMostPieces` times as many for
/// cells that are cut. There are more only if a piece is larger than a bucket.
DealtSwitch dealRoutes(const std::vector<SwitchTensor> &tensors,
                       const Lots &lots, const std::vector<LotRoutes> &routes,
                       const SwitchNetwork &network,
                       const SwitchOptions &options);

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H
