//===- SwitchTimes.h - What a switch takes ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The time of any switch plan on a network of two levels. What no plan can be
// faster than is in SwitchBounds.h.
//
// Ports share their bandwidth among all that goes over them at once. A rank
// works off its buckets in order, on each of its ports: one begins when the port
// is done with those before it and what it hands on is there, takes one latency
// (its messages start together) and the bytes of the port over its rate. A
// message is there when both its ports are done. Nobody waits for a bucket that
// it has no part in, and a rank has up to eight under way.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHTIMES_H
#define DYNA_RUNTIME_PLANNER_SWITCHTIMES_H

#include "runtime/plan/SwitchPlan.h"
#include "runtime/planner/SwitchNetwork.h"

#include <array>

namespace dyna {

/// The four ports of a rank.
enum class Port { NetworkOut, NetworkIn, InsideOut, InsideIn };

/// Seconds that all that goes over a port takes there.
class PortLoads {
public:
  explicit PortLoads(const SwitchNetwork &network);

  double &at(Port port, int rank) {
    return seconds_[static_cast<int>(port)][rank];
  }
  double at(Port port, int rank) const {
    return seconds_[static_cast<int>(port)][rank];
  }
  /// Of a message between two ranks; none to itself. Negative bytes take it
  /// back.
  void add(int from, int to, double bytes);
  double largest() const;

private:
  const SwitchNetwork *network_;
  double insideSeconds_, betweenSeconds_; ///< of a byte
  std::array<std::vector<double>, 4> seconds_;
};

struct SwitchTimes {
  /// Until the last rank has everything.
  double seconds = 0;
  /// Of the busiest port, without latencies and waiting.
  double portSeconds = 0;
  /// Between a rank and itself, ranks of a node, ranks of two nodes.
  int64_t localBytes = 0, insideBytes = 0, betweenBytes = 0;
  int64_t transfers = 0;
  /// Of a sender to a receiver in one bucket, together.
  int64_t messages = 0;
  /// The largest that a rank passes on in one bucket.
  int64_t passingBytes = 0;
  /// Of the fullest rank: tensors before and behind, and what it passes on, from
  /// the bucket that brings it until the last that hands it on is under way no more.
  int64_t peakBytes = 0;
  /// [from][to] bytes between nodes, the diagonal inside of each.
  std::vector<std::vector<int64_t>> nodeBytes;
};

/// Buckets that a rank has begun and not ended.
constexpr size_t kBucketsUnderWay = 8;

/// How transfers become messages.
enum class Fusing {
  Buckets, ///< all of a bucket to one rank together, started with the others
  None     ///< each is one, and takes a latency of its own on its ports
};

/// O(transfers + buckets).
SwitchTimes timesOf(const std::vector<SwitchTensor> &tensors,
                    const SwitchPlan &plan, const SwitchNetwork &network,
                    Fusing fusing = Fusing::Buckets);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHTIMES_H
