//===- SwitchNetwork.h - Describes the ports of ranks and nodes -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Describes the links that a switch uses. Every rank has a port to the ranks of
// its node and one to the network. Both work at once, in both directions.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_SWITCHNETWORK_H
#define DYNA_RUNTIME_SIM_SWITCHNETWORK_H

#include "runtime/cost/Cluster.h"

#include <algorithm>
#include <cstdint>

namespace dyna {

/// The ports of a rank: between nodes and inside its node, each in two directions.
enum class Port : uint8_t { NetworkOut, NetworkIn, InsideOut, InsideIn };
constexpr int kPorts = 4;

/// Default limit of the bytes that a rank sends, and of those that it receives, in
/// buckets that it has begun and not ended.
constexpr int64_t kBytesUnderWay = int64_t{2} << 30;

struct SwitchNetwork {
  int ranks = 1;
  /// Number of neighbouring ranks that share a node; at least 1.
  int ranksPerNode = 1;
  /// Bytes per second of a rank's port in each direction; 0: transfers take no time.
  double insideRate = 0, betweenRate = 0;
  /// Seconds until the first byte of a message arrives.
  double insideLatency = 0, betweenLatency = 0;

  double secondsPerByte(bool isInside) const {
    const double rate = isInside ? insideRate : betweenRate;
    return rate > 0 ? 1 / rate : 0;
  }
  double latency(bool isInside) const {
    return isInside ? insideLatency : betweenLatency;
  }
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

#endif // DYNA_RUNTIME_SIM_SWITCHNETWORK_H
