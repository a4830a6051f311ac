//===- Cluster.h - What messages and exchanges take -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Nodes of equal devices, with one speed inside of a node and one between nodes.
// Both are those of one device: a node with eight devices has eight times
// `between` on its network ports, and devices that talk at once do not share.
//
// A message takes the latency and its bytes over the speed. An exchange goes
// round the ring of its ranks, node by node: in n - 1 steps every rank passes on
// one n-th of the tensor (all-gather, reduce-scatter), and an all-reduce is one
// after the other. The ring leaves a node by the ports of all devices that take
// part on it (as NCCL's channels do), so its speed is the smaller one of a
// device's inside and of theirs together between nodes. An all-to-all sends one
// n-th of each rank's part to every other one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_CLUSTER_H
#define DYNA_RUNTIME_COST_CLUSTER_H

#include "runtime/base/error/Status.h"
#include "runtime/cost/Costs.pb.h"
#include "runtime/plan/Manifest.pb.h"

#include <vector>

namespace dyna {

/// How the ranks of a group lie on nodes.
struct GroupShape {
  int ranks = 1;
  int perNode = 1; ///< of them, at most, on one node
};

class Cluster {
public:
  /// Without links: nothing takes time.
  Cluster() = default;
  /// Fails where a number cannot be; the message names the field.
  static StatusOr<Cluster> create(cost::Cluster description);

  const cost::Cluster &description() const { return description_; }
  /// Ranks that fit; 0: any number.
  int64_t devices() const;

  int nodeOf(int rank) const {
    int perNode = description_.devices_per_node();
    return perNode > 0 ? rank / perNode : 0;
  }
  GroupShape shapeOf(const std::vector<int> &ranks) const;

  /// Seconds of one message between two ranks, when nothing else is under way.
  double messageSeconds(int from, int to, double bytes) const;
  /// Seconds of one exchange of a tensor of so many bytes, all ranks' parts
  /// together; none for a group of one. O(1).
  double exchangeSeconds(plan::LayerExchange::Kind kind, double bytes,
                         GroupShape shape) const;

private:
  cost::Cluster description_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_CLUSTER_H
