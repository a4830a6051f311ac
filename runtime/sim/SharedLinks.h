//===- SharedLinks.h - Transfers that share links ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is under way on a cluster, when each link is shared equally by all that
// use it (PlanTimes.h says which links there are). A transfer first takes its
// latency, which it shares with nobody; then it moves at the speed of the fullest
// of its links, which changes whenever a transfer comes or goes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_SHAREDLINKS_H
#define DYNA_RUNTIME_SIM_SHAREDLINKS_H

#include "runtime/sim/PlanWork.h"

#include <queue>
#include <vector>

namespace dyna {

class SharedLinks {
public:
  /// `sharesNodes`: messages between nodes may use all of a node's ports. `work`
  /// must outlive it.
  SharedLinks(const PlanWork &work, bool sharesNodes);

  /// The transfer begins. Times never go back.
  void add(int transfer, double time);

  bool hasNext();
  /// When something happens next; there is something.
  double next() { return events_.top().time; }
  /// Lets it happen: the transfer that has ended, -1 for none.
  int takeNext();

private:
  struct Flow {
    int transfer = -1;
    bool isMoving = false; ///< its latency is over
    int version = 0;       ///< of its next event; others are void
    double left = 0;       ///< seconds at speed 1
    double speed = 0, since = 0;
    double most = 1; ///< speed
    std::vector<int> links;
    int weight = 1; ///< shares of a link that it takes
  };
  struct Link {
    double capacity = 1;
    int load = 0;
    std::vector<int> flows; ///< that move
  };
  struct Event {
    double time;
    int flow, version;
    bool operator>(const Event &other) const {
      return time != other.time ? time > other.time : flow > other.flow;
    }
  };

  void findLinks(Flow &flow) const;
  void findNodes(Flow &flow, const PlannedTransfer &transfer) const;
  /// Adds or takes away what the flow loads its links with.
  void load(int index, double time, bool joins);
  void setSpeed(int index, double time);
  void schedule(int index, double time);

  const PlanWork &work_;
  const bool sharesNodes_;
  std::vector<Link> links_; ///< of devices, four each, then of nodes, two each
  std::vector<Flow> flows_;
  std::vector<int> unused_; ///< of `flows_`
  std::vector<int> changed_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_SHAREDLINKS_H
