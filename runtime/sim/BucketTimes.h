//===- BucketTimes.h - Times of buckets on ports of their own ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes when the buckets of a switch end (SwitchPlan.h). A message can move as
// soon as both its ranks have begun the bucket. Each port of a rank moves one bucket
// after another, in the order in which the rank starts them. Within a bucket it moves
// the messages that can move. A burst of messages takes one latency, and then bytes
// over the port's rate. A message ends when both its ports have moved the bucket.
//
// A rank begins a bucket when it has started it and when the bytes that it has under
// way stay within a limit. A larger bucket goes alone.
//
// BucketTimes assumes that nothing else uses the ports. It then needs no events: a
// bucket is computed when all its parts have begun. BucketFlows.h computes the same
// with other transfers on the ports.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_BUCKETTIMES_H
#define DYNA_RUNTIME_SIM_BUCKETTIMES_H

#include "runtime/sim/PlanWork.h"
#include "runtime/sim/TaskGraph.h"

#include <limits>
#include <vector>

namespace dyna {

/// The parts of each rank in the order in which it starts them.
struct PartOrder {
  static constexpr int none = -1;

  /// O(steps).
  PartOrder(const PlanWork &work, int64_t bytesUnderWay);

  /// By part: the part that its rank starts before it and after it.
  std::vector<int> before, after;
  /// By part: the last part of its rank that must have ended before it begins, so that
  /// the bytes under way stay within the limit.
  std::vector<int> room;
  std::vector<int> first; ///< first part of each rank
};

/// The time in which a port moved the messages of one part.
struct PortTime {
  int part;
  Port port;
  int64_t bytes;
  TaskTime time;
};

/// Returns the ports that a message uses: its sender's and its receiver's.
inline std::pair<Port, Port> portsOf(const SwitchNetwork &network,
                                     const SwitchMessages::Message &message) {
  return network.nodeOf(message.from) == network.nodeOf(message.to)
             ? std::pair(Port::InsideOut, Port::InsideIn)
             : std::pair(Port::NetworkOut, Port::NetworkIn);
}

class BucketTimes {
public:
  /// Both arguments must outlive this object.
  BucketTimes(const PlanWork &work, const PartOrder &order);

  /// Begins a part at `time`, or later if it needs room. Parts of a rank begin in their
  /// order, each one after the bucket of the one before is known. Returns true if the
  /// bucket is known now, because this was its last part.
  bool begin(int part, double time);
  double beginOf(int part) const { return begin_[part]; }
  /// Returns the end of a part of a known bucket.
  double endOf(int part) const { return end_[part]; }

private:
  /// A port in the bucket that is computed.
  struct Use {
    double load = 0;
    /// When the first and the last of its messages can move.
    double first = std::numeric_limits<double>::infinity(), last = 0;
    int transfers = 0;
  };
  /// A message on one of its ports.
  struct Arrival {
    size_t port;
    double time, load;
    bool operator<(const Arrival &other) const {
      return port != other.port ? port < other.port : time < other.time;
    }
  };

  void compute(int bucket);
  void addLoads(const SwitchMessages::Message *begin,
                const SwitchMessages::Message *end);
  void moveGaps(const SwitchMessages::Message *begin,
                const SwitchMessages::Message *end);
  bool isInside(const SwitchMessages::Message &message) const {
    return node_[message.from] == node_[message.to];
  }
  /// Returns the index of a port in `uses_` and `clock_`.
  size_t portOf(bool isInside, bool isIn, int rank) const {
    return static_cast<size_t>(2 * isInside + isIn) * ranks_ +
           static_cast<size_t>(rank);
  }
  double latencyOf(size_t port) const { return latency_[port >= 2 * ranks_]; }
  double now(const SwitchMessages::Message &message) const {
    return std::max(rankBegin_[message.from], rankBegin_[message.to]);
  }

  const SwitchMessages &plan_;
  const PlanWork &work_;
  const PartOrder &order_;
  const size_t ranks_;
  const bool isFused_;
  double secondsPerByte_[2], latency_[2]; ///< between nodes, inside
  std::vector<int> node_;                 ///< of each rank
  std::vector<int> missing_; ///< parts of each bucket that have not begun
  std::vector<double> begin_, end_;
  std::vector<double>
      ended_; ///< by part: end of all parts of its rank up to it
  std::vector<double> clock_; ///< by port: end of its last bucket
  // Of the bucket that is computed:
  std::vector<double> rankBegin_, rankEnd_;
  std::vector<Use> uses_;
  std::vector<size_t> ports_;
  std::vector<Arrival> arrivals_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_BUCKETTIMES_H
