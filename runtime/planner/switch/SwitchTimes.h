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
// it has no part in. A rank begins a bucket when the bytes that it has under way
// stay within a limit.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHTIMES_H
#define DYNA_RUNTIME_PLANNER_SWITCHTIMES_H

#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/planner/switch/SwitchNetwork.h"
#include "runtime/planner/switch/SwitchOptions.h"

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

/// Default limit of the bytes that a rank sends, and of those that it receives,
/// in buckets that it has begun and not ended.
constexpr int64_t kBytesUnderWay = SwitchOptions().bytesUnderWay;

/// How transfers become messages.
enum class Fusing {
  Buckets, ///< all of a bucket to one rank together, started with the others
  None     ///< each is one, and takes a latency of its own on its ports
};

/// The messages of a plan, without its boxes: what a simulation needs.
struct SwitchMessages {
  struct Message {
    int from, to;
    int transfers;
    int64_t bytes;
  };
  /// A rank in a bucket.
  struct Part {
    int rank;
    bool handsOn;    ///< something that the bucket before brought to pass on
    int64_t passing; ///< bytes that it gets to pass on
  };
  struct Bucket {
    size_t messages = 0, parts = 0; ///< ends of the bucket's in the lists
    int after = -1;
  };
  std::vector<Bucket> buckets;
  std::vector<Message> messages; ///< one for each sender and receiver
  std::vector<Part> parts;

  /// O(transfers + buckets).
  static SwitchMessages of(const std::vector<SwitchTensor> &tensors,
                           const SwitchPlan &plan, int ranks);
};

/// Simulates the buckets in this order, in which each comes after the one that
/// it names, and returns the seconds until the last rank has everything.
/// O(messages + buckets * ranks).
double secondsOf(const SwitchMessages &messages, const std::vector<int> &order,
                 const SwitchNetwork &network,
                 int64_t bytesUnderWay = kBytesUnderWay);

/// Simulates a plan. A bucket larger than `bytesUnderWay` goes alone. O(transfers
/// + buckets * ranks).
SwitchTimes timesOf(const std::vector<SwitchTensor> &tensors,
                    const SwitchPlan &plan, const SwitchNetwork &network,
                    Fusing fusing = Fusing::Buckets,
                    int64_t bytesUnderWay = kBytesUnderWay);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHTIMES_H
