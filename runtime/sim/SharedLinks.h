//===- SharedLinks.h - Simulates transfers that share links -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the speeds of concurrent transfers. PlanTimes.h describes the links. A
// transfer first takes its latency, which it does not share. Then links are shared
// max-min fairly. All speeds rise alike until a link is full. Transfers on that link
// keep their speed, and the others rise further. So a transfer is either as fast as
// alone, or uses a full link on which no transfer is faster.
//
// Transfers that begin at one moment on one route with equal bytes also end at one
// moment. The shards of a tensor-parallel group do so. They form a *bundle*, which is
// computed once. Speeds are computed once for each moment at which bundles begin or
// end. Only bundles that a chain of common links joins with these are computed.
//
// A *port flow* is all that a switch moves over one port of a rank at one time
// (BucketFlows.h). It uses this one link. Without sharing, only port flows slow others:
// a transfer and a port flow on one link each have half of their speed.
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
  using Sharing = LinkSharing;
  /// Under Sharing::Nodes, messages between nodes may use all ports of a node.
  /// `work` must outlive this object.
  SharedLinks(const PlanWork &work, Sharing sharing);

  /// Begins a transfer. Times must not decrease.
  void add(int transfer, double time);
  /// Begins a flow of `seconds` seconds on a port that has none. With
  /// `hasLatency` it first takes the port's latency. Its end is told with the
  /// number `PlanWork::transfers().size() + port`, where ports are numbered
  /// `kPorts * rank + port`.
  void addFlow(int port, double seconds, bool hasLatency, double time);
  /// Lengthens the flow that a port has.
  void lengthen(int port, double seconds, double time);

  /// Returns true if an event is due at `time` or before. With an infinite time,
  /// returns true if any event is left.
  bool isDue(double time);

  struct Happening {
    double time;
    int transfer; ///< the transfer, or flow, that has ended; -1: none
  };
  /// Processes the next event. There must be one.
  Happening takeNext();

private:
  struct Use {
    int link;
    int shares = 1; ///< shares of the link that a transfer takes at speed 1
    bool operator<(const Use &other) const {
      return std::tie(link, shares) < std::tie(other.link, other.shares);
    }
  };
  /// Links that a transfer uses, and the largest speed.
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
    bool isFlow = false;   ///< of a port
    bool isMoving = false; ///< true once its latency is over
    int version = 0;       ///< version of its valid event; older ones are void
    double left = 0;       ///< seconds at speed 1
    double speed = 0;
    double since = 0; ///< time at which it began or got its speed
    double latency = 0;
    int64_t seen = 0; ///< last computation that it was part of
  };
  struct Link {
    double capacity = 1;
    std::vector<int> bundles; ///< bundles that move
    int flows = 0;            ///< port flows among these
    int64_t seen = 0;
    // State while speeds are computed:
    double left = 0; ///< capacity that is not assigned yet
    int load = 0;    ///< shares of bundles without a speed
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
  int routeOfPort(int port);
  int numberOf(Route route);
  int newBundle(int transfer, int route, double left, double latency,
                double time);
  bool isAllTaken() const { return taken_ < 0; }
  void join(int index);
  void leave(int index);
  void touch(int link);
  /// Computes the speeds that touched links change.
  void deal();
  /// Collects into `members_` and `shared_` all that is joined with touched links.
  void collect();
  /// Computes them where only port flows slow others.
  void halve();
  void fix(int index, double speed);
  void setSpeed(int index, double speed);
  void schedule(int index, double time);
  void dropVoid();

  const PlanWork &work_;
  const Sharing sharing_;
  std::vector<Link> links_; ///< four for each device, then two for each node
  std::vector<Route> routes_;
  std::map<Route, int> routeNumbers_;
  std::vector<int> routeOfLine_; ///< -1: not looked up yet
  std::vector<int> routeOfPort_; ///< -1: not looked up yet
  std::vector<int> flowOf_;      ///< bundle of each port's flow
  std::vector<int> newest_;      ///< bundle of each route
  std::vector<Bundle> bundles_;
  std::vector<int> unused_; ///< free entries of `bundles_`
  std::vector<int> behind_; ///< next transfer in the same bundle; by transfer
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int taken_ = -1; ///< the next transfer of the bundle that has ended
  double now_ = 0; ///< time of the last event
  /// Links on which bundles began or ended at `now_`. Speeds are not computed yet.
  std::vector<int> touched_;
  int64_t dealing_ = 0;
  std::vector<int> shared_, members_; ///< links and bundles of a computation
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_SHAREDLINKS_H
