//===- Cluster.h - Estimates the seconds of messages and exchanges --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Nodes of equal devices, with one speed inside of a node and one between
// nodes. Both speeds are those of one device. So a node with eight devices has
// eight times `between` on its network ports, and devices that send at the same
// time do not share.
//
// A message costs the latency, and its bytes divided by the speed. An exchange
// follows the ring of its ranks, node by node. In n - 1 steps every rank passes
// on one n-th of the tensor (all-gather, reduce-scatter). An all-reduce is a
// reduce-scatter and then an all-gather. The ring leaves a node by the ports of
// all its devices in the group, as NCCL's channels do. So its speed is a
// device's speed inside of a node, or the sum of these ports if that is less.
// An all-to-all sends one n-th of each rank's part to every other rank.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_CLUSTER_H
#define DYNA_RUNTIME_COST_CLUSTER_H

#include "runtime/base/error/Status.h"
#include "runtime/cost/Costs.pb.h"
#include "runtime/plan/Manifest.pb.h"

#include <utility>
#include <vector>

namespace dyna {

/// Distribution of the ranks of a group over nodes.
struct GroupShape {
  int ranks = 1;
  int perNode = 1; ///< largest number of them on one node
};

class Cluster {
public:
  /// Makes a cluster without links, on which nothing takes time.
  Cluster() = default;
  /// Makes a cluster. Fails if a number is out of range, with the name of the
  /// field.
  static StatusOr<Cluster> create(cost::Cluster description);

  const cost::Cluster &description() const { return description_; }
  /// Returns how many ranks fit; 0: any number.
  int64_t devices() const;

  /// Sets the device of each rank. By default a rank has the device of its number.
  void placeRanks(std::vector<int> devices) { deviceOf_ = std::move(devices); }
  int deviceOf(int rank) const {
    return deviceOf_.empty() ? rank : deviceOf_[rank];
  }
  int nodeOf(int rank) const {
    int perNode = description_.devices_per_node();
    return perNode > 0 ? deviceOf(rank) / perNode : 0;
  }
  GroupShape shapeOf(const std::vector<int> &ranks) const;

  /// Returns the seconds of one message between two ranks, without other
  /// traffic.
  double messageSeconds(int from, int to, double bytes) const;
  /// Returns the seconds of one exchange of a tensor. `bytes` are those of all
  /// ranks' parts together. 0 for a group of one rank. O(1).
  double exchangeSeconds(plan::LayerExchange::Kind kind, double bytes,
                         GroupShape shape) const;

private:
  cost::Cluster description_;
  std::vector<int> deviceOf_; ///< by rank; empty: each its own
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_CLUSTER_H
