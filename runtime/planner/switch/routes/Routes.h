//===- Routes.h - Searches routes of lots over ports ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A lot is cut into equal shares, and each share has a route of its own. A
// route is a tree of hops from the ranks that have the share to all that need
// it. A node without any of it receives it once, over the network, and passes
// it on inside. Any rank of the two nodes may lend its network port (a gate),
// on either side:
//
//     0 has a share, 4 to 7 of another node need it, the network ports of 0
//     and 4 are busy:
//
//     level 0    0 -> 1           to a gate
//     level 1    1 -> 5           over the network
//     level 2    5 -> 4, 6, 7     inside
//
// Nodes that have received a share pass it on to other nodes as well. If ports
// inside nodes are the bottleneck, a rank may also get a share from another
// node that its own node has.
//
// Prices find the routes. A port costs base + (load / time)^k per byte. A tree
// is built over the cheapest ports, one hop after another, and each hop raises
// prices at once. When all shares have a route, each is removed and built anew,
// with a larger k each time. So the busiest ports become expensive, and shares
// leave them for longer routes over idle ports.
//
// Prices that grow with a power of the load are the usual way to spread flows
// evenly. The sum of the powers' integrals falls with every share that moves.
// For large k its minimum is that of the largest load.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHES_ROUTES_H
#define DYNA_RUNTIME_PLANNER_SWITCHES_ROUTES_H

#include "runtime/planner/switch/routes/Lots.h"
#include "runtime/sim/SwitchNetwork.h"

#include <vector>

namespace dyna::switches {

struct Hop {
  int from = 0, to = 0;
  /// Hops of a level start at ranks where hops of lower levels have ended.
  int level = 0;
  bool operator==(const Hop &other) const {
    return from == other.from && to == other.to && level == other.level;
  }
};

/// Hops of one share. A source comes before the ranks that it feeds. The
/// receivers are the needers (All) or one needer at the end (Once), and gates.
using Route = std::vector<Hop>;

struct LotRoutes {
  struct Share {
    Route route;
    double part; ///< share of the lot; all shares add up to 1
  };
  std::vector<Share> shares; ///< empty for a lot that no rank lacks
};

/// The ways of all lots.
struct Routes {
  std::vector<LotRoutes> lots;
  double seconds = 0; ///< of the busiest port
};

struct RouteSettings {
  int sweeps = 16;
  /// Seconds that no plan can go below: what comes near it ends the search.
  double bound = 0;
  /// True if routes may use ranks that do not need the lot, or bring data from
  /// another node that the rank's own node has.
  bool hasDetours = true;
};

/// Deterministic; O(sweeps * shares * (lacking nodes * (nodes + ranks of a node)
/// + lacking ranks * ranks of a node)). There are about 8 to 32 shares for each rank,
/// whatever the number of lots: as many as keep a sweep short.
Routes findRoutes(const std::vector<Lot> &lots, const SwitchNetwork &network,
                  const RouteSettings &settings);

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_ROUTES_H
