//===- BucketFlows.h - Simulates buckets on shared ports --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Simulates the buckets of switches event by event. The rules are those of
// BucketTimes.h. On each port one bucket at a time is a flow of SharedLinks, which
// shares the port with other transfers.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_BUCKETFLOWS_H
#define DYNA_RUNTIME_SIM_BUCKETFLOWS_H

#include "runtime/sim/BucketTimes.h"
#include "runtime/sim/SharedLinks.h"

#include <vector>

namespace dyna {

/// The messages of each part.
class PartMessages {
public:
  /// O(messages + buckets + ranks).
  explicit PartMessages(const PlanWork &work);

  struct List {
    const int *first, *last;
    const int *begin() const { return first; }
    const int *end() const { return last; }
    int size() const { return static_cast<int>(last - first); }
  };
  /// Returns the messages that a part sends or receives, as numbers in
  /// PlanWork::switches().
  List of(int part) const {
    return {list_.data() + begins_[part], list_.data() + begins_[part + 1]};
  }
  int from(int message) const { return ends_[message].first; }
  int to(int message) const { return ends_[message].second; }
  /// Returns the part at the other end.
  int peer(int message, int part) const {
    return from(message) == part ? to(message) : from(message);
  }

private:
  std::vector<std::pair<int, int>> ends_; ///< parts, by message
  std::vector<int> begins_, list_;
};

class BucketFlows {
public:
  /// The arguments must outlive this object.
  BucketFlows(const PlanWork &work, const PartOrder &order, SharedLinks &links);

  /// Begins a part. Appends the parts that end now to `ended`.
  void begin(int part, double time, std::vector<int> &ended);
  /// Tells that the flow on a port has ended, which SharedLinks numbers.
  void endFlow(int port, double time, std::vector<int> &ended);

  std::vector<PortTime> &times() { return times_; }

private:
  /// A part on one of its ports.
  struct Use {
    double ready = 0;  ///< seconds of messages that can move and do not yet
    int missing = 0;   ///< messages that cannot move yet
    int messages = 0;  ///< number of its messages
    int64_t bytes = 0; ///< bytes of all messages
    int after = -1;    ///< next use of the port
    double start = -1, drained = -1;
  };
  static int useOf(int part, Port port) {
    return kPorts * part + static_cast<int>(port);
  }
  int portOf(int use) const;
  void chainUses(const PartOrder &order);
  /// Moves what is ready, if it is the turn of this use.
  void move(int use, double time);
  void complete(int use, double time, std::vector<int> &ended);

  const PlanWork &work_;
  const SwitchMessages &plan_;
  const PartMessages messages_;
  SharedLinks &links_;
  std::vector<Use> uses_;
  std::vector<int> turn_;      ///< of each port, its use that moves or is next
  std::vector<char> isMoving_; ///< by port
  std::vector<char> hasBegun_; ///< by part
  std::vector<char> done_;     ///< by message, the ports that have moved it
  std::vector<int> left_;      ///< by part, messages that have not ended
  std::vector<PortTime> times_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_BUCKETFLOWS_H
