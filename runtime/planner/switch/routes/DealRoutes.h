//===- DealRoutes.h - From ways of lots to buckets --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensors are taken in order, those between other ranks in turns, and every cell
// of one goes a way of its lot that is behind its part, over the ports that are
// behind theirs: so each stretch of layers uses the ports as evenly as the whole
// does. Cells that are large for their lot are cut into runs of rows.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H
#define DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H

#include "runtime/planner/switch/SwitchOptions.h"
#include "runtime/planner/switch/routes/DealtSwitch.h"

namespace dyna::switches {

/// Linear in the transfers that come out. These are at most, for each cell of a
/// tensor, its needers and gates, `kMostPieces` times as many for cells that are
/// cut, and more only where a piece is larger than a bucket.
DealtSwitch dealRoutes(const std::vector<SwitchTensor> &tensors,
                       const Lots &lots, const std::vector<LotRoutes> &routes,
                       const SwitchNetwork &network,
                       const SwitchOptions &options);

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_DEALROUTES_H
