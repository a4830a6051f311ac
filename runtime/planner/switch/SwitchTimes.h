//===- SwitchTimes.h - Computes times and bytes of switches -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Durations are those of runtime/sim, which simulates the plan's buckets alone
// (BucketTimes.h). Lower bounds of any plan are in SwitchBounds.h.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHTIMES_H
#define DYNA_RUNTIME_PLANNER_SWITCHTIMES_H

#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/sim/SwitchMessages.h"
#include "runtime/sim/SwitchNetwork.h"

#include <vector>

namespace dyna {

struct SwitchTimes {
  /// Seconds until the last rank has everything.
  double seconds = 0;
  /// Seconds of the busiest port, without latencies and waiting.
  double portSeconds = 0;
  /// Bytes that stay on a rank, move inside a node, and move between two nodes.
  int64_t localBytes = 0, insideBytes = 0, betweenBytes = 0;
  int64_t transfers = 0;
  int64_t messages =
      0; ///< with fusing, one for each bucket, sender and receiver
  /// Most bytes that a rank passes on in one bucket.
  int64_t passingBytes = 0;
  /// Bytes of the fullest rank: both layouts, and data to pass on. Such data counts
  /// from the bucket that brings it until the last bucket that hands it on has ended.
  int64_t peakBytes = 0;
  /// Bytes between nodes, by [from][to]; inside of nodes on the diagonal.
  std::vector<std::vector<int64_t>> nodeBytes;
};

/// Simulates the buckets in this order and returns the seconds until the last rank has
/// everything. Each bucket must come after the one that it names. O(messages + buckets
/// * ranks).
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
