//===- SwitchBounds.h - Cuts that a switch has to cross ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes lower bounds for the seconds of a switch, on a network of two
// levels. Bounds count each byte once:
//
//     receive   what a rank needs and does not have, over its two ports
//     send      what only one rank has and others need, over its two ports
//     node in   what a node needs and does not have, over its network ports
//     node out  what only some nodes have and a node lacks, over their network
//               ports, even if it is one of these nodes that lacks it
//     inside    what a part of a node's ranks needs and only the others of the
//               node have, over these and the part's network ports; what only a
//               part has and others need; and what any rank of the node lacks and
//               only a part has, over the part's inside ports and the node's
//               network ports. For every part, in nodes of up to ten ranks
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHBOUNDS_H
#define DYNA_RUNTIME_PLANNER_SWITCHBOUNDS_H

#include "runtime/planner/switch/routes/Lots.h"
#include "runtime/sim/SwitchNetwork.h"

#include <algorithm>

namespace dyna {

struct SwitchBounds {
  double receive = 0, send = 0, nodeIn = 0, nodeOut = 0,
         inside = 0; ///< seconds

  double largest() const {
    return std::max({receive, send, nodeIn, nodeOut, inside});
  }
};

/// Computes the bounds of a switch. Fails if no rank has a needed element.
/// Costs as much as findLots, and O(lots) for each set of nodes that has one
/// and each part of a node.
StatusOr<SwitchBounds> boundsOf(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network);

/// Returns the bounds for known lots.
SwitchBounds boundsOf(const std::vector<switches::Lot> &lots,
                      const SwitchNetwork &network);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHBOUNDS_H
