//===- PlanTimes.h - Simulates a plan on a cluster -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The simulator uses the costs of layer functions and of links between ranks.
// Every rank runs its instructions one after another. Ranks that exchange inside
// a function, or combine norms, meet there. A message or an exchange of
// parameters begins when all its ranks have started it. It also waits for the
// transfer before it on the same line. A wait ends when its transfer ends.
//
// *Devices* have one stream for functions and others for exchanges. Exchanges
// continue while functions run. *Host* ranks have no exchange stream: a rank
// moves bytes only in waits and between instructions
// (docs/decisions/0021-kernels-advance-exchanges.md). The last rank to start a
// transfer carries it out at once. If another of its ranks sits in a wait, that
// rank carries it out instead.
//
// Two ranks may share a device (Turns.h). A rank begins an item when the item before it on
// the device has ended. Each of them still has its exchanges.
//
// Sharing. With `Sharing::None` every transfer is as fast as alone. Otherwise
// concurrent transfers share links max-min fairly at every moment. A transfer that
// is limited by another full link leaves the rest of its share to others. Every
// device has one link inside its node and one that leaves it, with two directions
// each. With `Nodes` a message may use all ports of a node. Concurrent messages
// then have equal parts of the ports. A message is never faster than the device's
// link inside the node, and never slower than the share of one port.
//
// Switches. A rank does not wait when it starts its part in a bucket. BucketTimes.h
// describes how ports move buckets. With any sharing, buckets and other transfers
// share the ports: with `Sharing::None` each of the two has half of a port that both
// use. A rank of the host moves whole messages, as it moves other transfers.
//
// Each rank and each line keeps the order of the plan. On devices without
// sharing, a longer task therefore never makes another task end earlier. With
// sharing, or on hosts, it may.
//
// Instructions without costs take no time: loads, casts, and norms without a
// measurement. Data of a switch that stays on its rank takes no time either.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANTIMES_H
#define DYNA_RUNTIME_SIM_PLANTIMES_H

#include "runtime/sim/BucketTimes.h"
#include "runtime/sim/PlanWork.h"
#include "runtime/sim/TaskGraph.h"

#include <vector>

namespace dyna {

struct SimulationOptions {
  enum class Ranks { Devices, Host };
  /// Order of a device's exchanges. With `Lines` an exchange follows those before
  /// it on its line. With `One` it follows all that its ranks started before, as
  /// with one communicator. Rule P11 guarantees that no plan then hangs.
  enum class Streams { Lines, One };
  using Sharing = LinkSharing;

  Ranks ranks = Ranks::Devices;
  Streams streams = Streams::Lines;
  Sharing sharing = Sharing::None;
  /// Largest eager message between devices, in bytes; -1: none. An eager message
  /// leaves when it is sent. Larger ones wait for the receiver (rendezvous).
  int64_t eagerBytes = -1;
  /// Bytes that a device may send, or receive, at one time by switches.
  int64_t bytesUnderWay = kBytesUnderWay;
  /// Relative standard deviation of functions: each takes 1 + `noise` * g times its
  /// seconds, at least 0. g is drawn from the standard normal distribution.
  double noise = 0;
  /// One function in `delayEvery` takes `delaySeconds` longer; 0: none does.
  int64_t delayEvery = 0;
  double delaySeconds = 0;
  uint64_t seed = 0; ///< for noise and delays; equal seeds draw equal numbers
};

struct RankTimes {
  /// One for each instruction of the program. It starts when the rank reaches it.
  std::vector<TaskTime> instructions;
  double busy = 0;    ///< seconds in functions
  double copying = 0; ///< seconds in which a host rank moves bytes
};

struct PlanTimes {
  double makespan = 0; ///< end of the last rank, in seconds
  std::vector<RankTimes> ranks;
  /// One for each of PlanWork::transfers. It starts when bytes can move.
  std::vector<TaskTime> transfers;
  /// When ports move buckets, in the order of the ends. Empty for hosts.
  std::vector<PortTime> ports;

  /// Seconds in which a rank waits for others or has already ended.
  double idle(int rank) const {
    return makespan - ranks[rank].busy - ranks[rank].copying;
  }
};

/// Simulates a plan. If ranks wait for each other, fails and names a rank that
/// never ends.
///
/// O(steps + transfers and their ranks) without sharing. With sharing, every
/// moment at which transfers begin or end costs more. For each distinct speed
/// it visits all transfers that common links join with them. Each transfer also
/// costs O(log n).
StatusOr<PlanTimes> playPlan(const PlanWork &work,
                             const SimulationOptions &options = {});

/// Simulates a plan that `verifyPlan` accepts for the graph.
StatusOr<PlanTimes> timePlan(const ExecutableGraph &graph,
                             const plan::Plan &plan, const CostModel &costs,
                             const SimulationOptions &options = {});

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANTIMES_H
