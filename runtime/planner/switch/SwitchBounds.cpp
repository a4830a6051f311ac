//===- SwitchBounds.cpp - Cuts that a switch has to cross -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/SwitchBounds.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dyna {
namespace {

using switches::Lot;

/// Ranks of a node whose parts are all tried.
constexpr int kLargestNode = 10;

class Cuts {
public:
  Cuts(const std::vector<Lot> &lots, const SwitchNetwork &network)
      : lots_(lots), network_(network) {
    for (const Lot &lot : lots) {
      holderNodes_.push_back(nodesOf(lot.holders));
      neederNodes_.push_back(nodesOf(lot.needers));
    }
  }

  SwitchBounds bounds() const {
    SwitchBounds bounds;
    std::vector<double> receive(network_.ranks, 0), send(network_.ranks, 0);
    std::vector<double> nodeIn(network_.nodes(), 0);
    std::set<std::vector<int>> sides;
    for (size_t i = 0; i < lots_.size(); ++i) {
      const Lot &lot = lots_[i];
      const auto bytes = static_cast<double>(lot.bytes);
      if (lot.lacking.empty())
        continue;
      // If any one of several ranks may receive a lot, the bound counts it for
      // no rank.
      if (lot.delivery == Delivery::All || lot.lacking.size() == 1)
        for (int rank : lot.lacking)
          receive[rank] += bytes;
      if (lot.holders.size() == 1)
        send[lot.holders.front()] += bytes;
      for (int node : mustEnter(i))
        nodeIn[node] += bytes;
      sides.insert(holderNodes_[i]);
    }
    for (int rank = 0; rank < network_.ranks; ++rank) {
      bounds.receive = std::max(bounds.receive, overPorts(receive[rank]));
      bounds.send = std::max(bounds.send, overPorts(send[rank]));
    }
    for (int node = 0; node < network_.nodes(); ++node)
      bounds.nodeIn =
          std::max(bounds.nodeIn, overNetwork(nodeIn[node], {node}));
    for (int node = 0; node < network_.nodes(); ++node)
      bounds.inside = std::max(bounds.inside, insideNode(node));
    for (const std::vector<int> &side : sides)
      bounds.nodeOut =
          std::max(bounds.nodeOut, overNetwork(leaving(side), side));
    return bounds;
  }

private:
  std::vector<int> nodesOf(const std::vector<int> &ranks) const {
    std::vector<int> nodes;
    for (int rank : ranks)
      if (int node = network_.nodeOf(rank);
          nodes.empty() || nodes.back() != node)
        nodes.push_back(node);
    return nodes;
  }

  /// Returns the nodes that a lot must reach, without those that have it.
  std::vector<int> mustEnter(size_t lot) const {
    if (lots_[lot].delivery == Delivery::Once && neederNodes_[lot].size() > 1)
      return {};
    std::vector<int> nodes;
    std::set_difference(neederNodes_[lot].begin(), neederNodes_[lot].end(),
                        holderNodes_[lot].begin(), holderNodes_[lot].end(),
                        std::back_inserter(nodes));
    return nodes;
  }

  /// Returns the bytes that only these nodes have and that a node lacks, even
  /// one of these nodes. The first copy of each byte leaves one of these nodes.
  double leaving(const std::vector<int> &side) const {
    double bytes = 0;
    for (size_t i = 0; i < lots_.size(); ++i) {
      if (!std::includes(side.begin(), side.end(), holderNodes_[i].begin(),
                         holderNodes_[i].end()))
        continue;
      if (lots_[i].delivery == Delivery::All ? !mustEnter(i).empty()
                                             : leavesHolders(i))
        bytes += static_cast<double>(lots_[i].bytes);
    }
    return bytes;
  }

  /// Returns true if no node that has a lot also needs it.
  bool leavesHolders(size_t lot) const {
    return std::none_of(
        neederNodes_[lot].begin(), neederNodes_[lot].end(), [&](int node) {
          return std::binary_search(holderNodes_[lot].begin(),
                                    holderNodes_[lot].end(), node);
        });
  }

  /// Ranks of one node, as bits.
  using Mask = uint32_t;
  Mask maskOf(const std::vector<int> &ranks, int node) const {
    Mask mask = 0;
    for (int rank : ranks)
      if (network_.nodeOf(rank) == node)
        mask |= Mask{1} << (rank - network_.firstOf(node));
    return mask;
  }

  /// Returns the largest bound over all parts of a node's ranks. It counts
  /// three flows of bytes:
  ///
  /// - Bytes that the rest needs, and that only the part has in this node. They
  ///   come from the part or over the rest's network ports.
  /// - Bytes that only the part has, of all ranks, and that others need. They
  ///   leave the part.
  /// - Bytes that any rank of the node lacks, and that only the part has in
  ///   this node. The part sends them, or they come over the node's network
  ///   ports.
  double insideNode(int node) const {
    const int size = network_.endOf(node) - network_.firstOf(node);
    if (size > kLargestNode || network_.insideRate <= 0)
      return 0;
    const double between = network_.nodes() > 1 ? network_.betweenRate : 0;
    if (network_.nodes() > 1 && between <= 0)
      return 0;
    struct Flow {
      bool isOnlyHere;  ///< no other rank has it
      bool isElsewhere; ///< somebody else needs it (All), or may get it (Once)
      bool isOnce;
      Mask holders, needers;
      bool operator<(const Flow &other) const {
        return std::tie(isOnlyHere, isElsewhere, isOnce, holders, needers) <
               std::tie(other.isOnlyHere, other.isElsewhere, other.isOnce,
                        other.holders, other.needers);
      }
    };
    std::map<Flow, double> flows;
    for (size_t i = 0; i < lots_.size(); ++i) {
      const Lot &lot = lots_[i];
      if (lot.lacking.empty())
        continue;
      const std::vector<int> here = {node};
      Flow flow = {holderNodes_[i] == here, neederNodes_[i] != here,
                   lot.delivery == Delivery::Once, maskOf(lot.holders, node),
                   maskOf(lot.needers, node)};
      if (flow.needers || flow.holders)
        flows[flow] += static_cast<double>(lot.bytes);
    }
    double most = 0;
    for (Mask part = 0; part < Mask{1} << size; ++part) {
      const int count = __builtin_popcount(part);
      const double across = std::min(count, size - count) * network_.insideRate;
      double in = 0, out = 0, first = 0;
      for (const auto &[flow, bytes] : flows) {
        if (flow.holders & ~part)
          continue;
        const bool isAway = flow.needers & ~part, isThere = flow.needers & part;
        // The first copy that a rank here gets leaves a holder or enters the node.
        if ((flow.needers & ~flow.holders) &&
            (!flow.isOnce || !flow.isElsewhere))
          first += bytes;
        if (flow.isOnce ? isAway && !isThere && !flow.isElsewhere : isAway)
          in += bytes;
        if (flow.isOnlyHere &&
            (flow.isOnce ? !isThere : isAway || flow.isElsewhere))
          out += bytes;
      }
      if (double ports = across + (size - count) * between; ports > 0)
        most = std::max(most, in / ports);
      if (double ports = across + count * between; ports > 0)
        most = std::max(most, out / ports);
      if (double ports = count * network_.insideRate + size * between;
          ports > 0)
        most = std::max(most, first / ports);
    }
    return most;
  }

  /// Returns the seconds of bytes over all ports of a rank together; 0, no
  /// bound, if a port costs no time.
  double overPorts(double bytes) const {
    const bool isAlone = network_.ranksPerNode == 1;
    const bool isOneNode = network_.nodes() == 1;
    double inside = isAlone ? 0 : network_.insideRate;
    double between = isOneNode ? 0 : network_.betweenRate;
    if ((!isAlone && inside <= 0) || (!isOneNode && between <= 0))
      return 0;
    return inside + between > 0 ? bytes / (inside + between) : 0;
  }

  double overNetwork(double bytes, const std::vector<int> &nodes) const {
    int ports = 0;
    for (int node : nodes)
      ports += network_.endOf(node) - network_.firstOf(node);
    return network_.betweenRate > 0 ? bytes / (ports * network_.betweenRate)
                                    : 0;
  }

  const std::vector<Lot> &lots_;
  const SwitchNetwork &network_;
  std::vector<std::vector<int>> holderNodes_, neederNodes_;
};

} // namespace

SwitchBounds boundsOf(const std::vector<Lot> &lots,
                      const SwitchNetwork &network) {
  return Cuts(lots, network).bounds();
}

StatusOr<SwitchBounds> boundsOf(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network) {
  DYNA_ASSIGN_OR_RETURN(switches::Lots lots, switches::findLots(tensors));
  return boundsOf(lots.lots, network);
}

} // namespace dyna
