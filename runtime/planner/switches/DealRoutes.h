//===- DealRoutes.h - From ways of lots to buckets --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensors are taken in order, and every cell of one goes the way of its lot
// that is farthest behind its part, so that each stretch of layers uses the
// ports as evenly as the whole does. Cells that are large for their lot are cut
// into runs of rows.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H
#define DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H

#include "runtime/planner/SwitchOptions.h"
#include "runtime/planner/switches/Routes.h"

namespace dyna::switches {

/// Linear in the transfers that come out. These are at most, for each cell of a
/// tensor, its needers and gates, and `kMostPieces` times as many for cells
/// that are cut.
SwitchPlan dealRoutes(const std::vector<SwitchTensor> &tensors,
                      const Lots &lots, const std::vector<LotRoutes> &routes,
                      const SwitchNetwork &network,
                      const SwitchOptions &options);

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H
