//===- SwitchNetwork.h - Ports of ranks and nodes ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a switch goes over: every rank has a port to the ranks of its node and
// one to the network. Both work at once and both ways (full duplex).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHNETWORK_H
#define DYNA_RUNTIME_PLANNER_SWITCHNETWORK_H

#include "runtime/cost/Cluster.h"

#include <algorithm>

namespace dyna {

struct SwitchNetwork {
  int ranks = 1;
  /// Neighbouring ranks share a node; at least 1.
  int ranksPerNode = 1;
  /// Bytes per second of a rank's port, each way; 0: no time.
  double insideRate = 0, betweenRate = 0;
  /// Seconds until something sent begins to arrive.
  double insideLatency = 0, betweenLatency = 0;

  int nodeOf(int rank) const { return rank / ranksPerNode; }
  int nodes() const { return (ranks + ranksPerNode - 1) / ranksPerNode; }
  int firstOf(int node) const { return node * ranksPerNode; }
  int endOf(int node) const {
    return std::min(ranks, (node + 1) * ranksPerNode);
  }
};

inline SwitchNetwork networkOf(const Cluster &cluster, int ranks) {
  const cost::Cluster &links = cluster.description();
  SwitchNetwork network;
  network.ranks = ranks;
  network.ranksPerNode =
      links.devices_per_node() > 0 ? links.devices_per_node() : ranks;
  network.insideRate = links.inside().bytes_per_second();
  network.betweenRate = links.between().bytes_per_second();
  network.insideLatency = links.inside().latency_seconds();
  network.betweenLatency = links.between().latency_seconds();
  return network;
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHNETWORK_H
