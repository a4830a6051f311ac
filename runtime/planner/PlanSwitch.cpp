//===- PlanSwitch.cpp - Who sends what when strategies change -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PlanSwitch.h"

#include "runtime/base/Text.h"
#include "runtime/planner/SwitchBounds.h"
#include "runtime/planner/switches/DealRoutes.h"

namespace dyna {

StatusOr<SwitchPlan> planSwitch(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network,
                                const SwitchOptions &options) {
  for (const SwitchTensor &tensor : tensors)
    for (const auto *boxes : {&tensor.from, &tensor.to})
      for (const RankBox &one : *boxes)
        if (one.rank < 0 || one.rank >= network.ranks)
          return Status::invalidArgument(
              formatText("switch: a tensor lies on rank %d, but the network "
                         "has %d ranks",
                         one.rank, network.ranks));
  DYNA_ASSIGN_OR_RETURN(switches::Lots lots,
                        switches::findLots(tensors, options.smallestPiece));
  switches::RouteSettings settings;
  settings.sweeps = options.sweeps;
  settings.bound = boundsOf(lots.lots, network).largest();
  std::vector<switches::LotRoutes> routes =
      switches::findRoutes(lots.lots, network, settings);
  return switches::dealRoutes(tensors, lots, routes, network, options);
}

} // namespace dyna
