//===- SharedLinks.h - Transfers that share links ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is under way on a cluster (PlanTimes.h says which links there are). A
// transfer first takes its latency, which it shares with nobody; then links are
// shared max-min fairly: all speeds rise alike until a link is full, whose
// transfers stay at that speed while those of other links rise on. So every
// transfer is as fast as alone, or uses a full link on which none is faster.
//
// Transfers that begin at one moment, the same way, and with as much to do, end at
// one moment too: the shards of a tensor-parallel group send so, all at once. They
// are one *bundle*, and are looked at once. Speeds are dealt once for each moment
// at which bundles come or go, and only to those that a chain of common links joins
// to these.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_SHAREDLINKS_H
#define DYNA_RUNTIME_SIM_SHAREDLINKS_H

#include "runtime/sim/PlanWork.h"

#include <map>
#include <queue>
#include <tuple>
#include <vector>

namespace dyna {

class SharedLinks {
public:
  /// `sharesNodes`: messages between nodes may use all of a node's ports. `work`
  /// must outlive it.
  SharedLinks(const PlanWork &work, bool sharesNodes);

  /// The transfer begins. Times never go back.
  void add(int transfer, double time);

  /// Whether something happens at `time` or before it; whether anything does, if
  /// that is infinite.
  bool isDue(double time);

  struct Happening {
    double time;
    int transfer; ///< that has ended; -1: none
  };
  /// Lets happen what is next; there is something.
  Happening takeNext();

private:
  struct Use {
    int link;
    int shares = 1; ///< of it that a transfer takes at speed 1
    bool operator<(const Use &other) const {
      return std::tie(link, shares) < std::tie(other.link, other.shares);
    }
  };
  /// The links that transfers use, and how.
  struct Route {
    std::vector<Use> uses;
    double most = 1; ///< speed; 1: as alone
    bool operator<(const Route &other) const {
      return std::tie(uses, most) < std::tie(other.uses, other.most);
    }
  };
  struct Bundle {
    int route = -1;
    int first = -1, last = -1; ///< transfers, linked by `behind_`
    int count = 0;
    bool isMoving = false; ///< its latency is over
    int version = 0;       ///< of its next event; others are void
    double left = 0;       ///< seconds at speed 1
    double speed = 0;
    double since = 0; ///< when it began, or got its speed
    double latency = 0;
    int64_t seen = 0; ///< the last dealing that it was part of
  };
  struct Link {
    double capacity = 1;
    std::vector<int> bundles; ///< that move
    int64_t seen = 0;
    // While speeds are dealt:
    double left = 0; ///< of the capacity
    int load = 0;    ///< shares of those whose speed is open
  };
  struct Event {
    double time;
    int bundle, version;
    bool operator>(const Event &other) const {
      return time != other.time ? time > other.time : bundle > other.bundle;
    }
  };

  Route findRoute(const PlannedTransfer &transfer) const;
  void findNodes(Route &route, const PlannedTransfer &transfer) const;
  int routeOf(const PlannedTransfer &transfer);
  bool isAllTaken() const { return taken_ < 0; }
  void join(int index);
  void leave(int index);
  void touch(int link);
  /// Deals the speeds that are due.
  void deal();
  /// Into `members_` and `shared_`: what touched links are joined with.
  void collect();
  void fix(int index, double speed);
  void schedule(int index, double time);
  void dropVoid();

  const PlanWork &work_;
  const bool sharesNodes_;
  std::vector<Link> links_; ///< of devices, four each, then of nodes, two each
  std::vector<Route> routes_;
  std::map<Route, int> routeNumbers_;
  std::vector<int> routeOfLine_; ///< -1: not looked up yet
  std::vector<int> newest_;      ///< bundle of each route
  std::vector<Bundle> bundles_;
  std::vector<int> unused_; ///< of `bundles_`
  std::vector<int> behind_; ///< of each transfer, in its bundle
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int taken_ = -1; ///< the next transfer of the bundle that has ended
  double now_ = 0; ///< of the last happening
  /// Links on which bundles came or went, `now_`; their speeds are not dealt yet.
  std::vector<int> touched_;
  int64_t dealing_ = 0;
  std::vector<int> shared_, members_; ///< links and bundles of a dealing
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_SHAREDLINKS_H
