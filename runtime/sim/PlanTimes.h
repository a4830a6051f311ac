//===- PlanTimes.h - What a plan takes, before it runs -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plays a plan with the costs of its layers' functions and of the links between
// ranks: every rank carries out its instructions one after another, and ranks
// that exchange inside a function, or combine norms, meet there. A message, or an
// exchange of parameters, begins when all its ranks have started it and what goes
// the same way before it has ended; a wait ends with it.
//
// *Devices* have a stream for functions and others for exchanges, which go on
// while functions run. *Host* ranks, those of this runtime, have no such stream: a
// rank moves bytes only in waits and between instructions
// (docs/decisions/0021-kernels-advance-exchanges.md). Who makes a transfer
// possible, the last to start it, carries it out at once, unless one that takes
// part sits in a wait: then that one does.
//
// Sharing. With `Sharing::None` a transfer takes what it takes alone. Else what is
// under way at once shares links max-min fairly, from moment to moment: what one
// transfer cannot use, because another of its links is full, the others on a link
// get. Every device has a link inside
// of its node and one out of it, with two directions each. `Nodes` lets messages
// use all ports of a node, of which each then has an equal part: alone it is as
// fast as the device's link inside, at most, and no slower than its own share when
// all devices send.
//
// The order in which each rank and each line does things is the plan's own. So
// without sharing, and on devices, nothing ends earlier because something else
// takes longer; where that is shared or moved by hosts, it may.
//
// What no costs exist for takes no time: loads, casts, and norms that nobody has
// measured.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANTIMES_H
#define DYNA_RUNTIME_SIM_PLANTIMES_H

#include "runtime/sim/PlanWork.h"
#include "runtime/sim/TaskGraph.h"

#include <vector>

namespace dyna {

struct SimulationOptions {
  enum class Ranks { Devices, Host };
  /// What a device's exchanges wait for beside their ranks: `Lines`, what goes the
  /// same way before them; `One`, all that their ranks have started before (one
  /// communicator for everything; rule P11 of plans is that none then hangs).
  enum class Streams { Lines, One };
  enum class Sharing { None, Devices, Nodes };

  Ranks ranks = Ranks::Devices;
  Streams streams = Streams::Lines;
  Sharing sharing = Sharing::None;
  /// Messages of up to so many bytes are eager: they leave when they are sent,
  /// whether or not the receiver has come; larger ones, and by default all, are
  /// rendezvous. Of devices.
  int64_t eagerBytes = -1;
  /// Every function takes 1 + `noise` * g times its seconds, g drawn from the
  /// standard normal distribution, but never less than nothing.
  double noise = 0;
  /// One in so many functions (0: none) takes `delaySeconds` longer.
  int64_t delayEvery = 0;
  double delaySeconds = 0;
  uint64_t seed = 0; ///< of both; the same one draws the same
};

struct RankTimes {
  /// As many as the rank's program has: from when the rank comes to it.
  std::vector<TaskTime> instructions;
  double busy = 0;    ///< seconds in functions
  double copying = 0; ///< in which a host rank moves bytes
};

struct PlanTimes {
  double makespan = 0; ///< until the last rank has ended
  std::vector<RankTimes> ranks;
  /// Of each of PlanWork::transfers, from when bytes can move.
  std::vector<TaskTime> transfers;

  /// Seconds in which a rank waits for others, or has ended before them.
  double idle(int rank) const {
    return makespan - ranks[rank].busy - ranks[rank].copying;
  }
};

/// Fails with a rank that never ends, where ranks wait for each other.
/// O(steps + transfers and their ranks); sharing takes, for each moment at which
/// transfers begin or end, and each of the speeds that they then have, a step for
/// everything that common links join with them, and a logarithm for each transfer.
StatusOr<PlanTimes> playPlan(const PlanWork &work,
                             const SimulationOptions &options = {});

/// Of a plan that `verifyPlan` accepts for the graph.
StatusOr<PlanTimes> timePlan(const ExecutableGraph &graph,
                             const plan::Plan &plan, const CostModel &costs,
                             const SimulationOptions &options = {});

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANTIMES_H
