//===- SharedLinks.cpp - Simulates transfers that share links -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/SharedLinks.h"

#include <algorithm>
#include <limits>

namespace dyna {

namespace {

/// Links of a device, in this order; a node has the first two.
enum Direction { Out, In };
enum Reach { Inside = 0, Between = 2 };
constexpr int linksOfDevice = 4, linksOfNode = 2;

} // namespace

SharedLinks::SharedLinks(const PlanWork &work, Sharing sharing)
    : work_(work), sharing_(sharing), routeOfLine_(work.lines(), -1),
      routeOfPort_(work.parts() > 0 ? kPorts * work.ranks() : 0, -1),
      flowOf_(routeOfPort_),
      behind_(work.transfers().size() + routeOfPort_.size(), -1) {
  int nodes = 0;
  for (int rank = 0; rank < work.ranks(); ++rank)
    nodes = std::max(nodes, work.cluster().nodeOf(rank) + 1);
  links_.resize(static_cast<size_t>(work.ranks()) * linksOfDevice);
  Link node;
  node.capacity = std::max(1, work.cluster().description().devices_per_node());
  links_.resize(links_.size() + static_cast<size_t>(nodes) * linksOfNode, node);
}

//===----------------------------------------------------------------------===//
// Routes
//===----------------------------------------------------------------------===//

SharedLinks::Route
SharedLinks::findRoute(const PlannedTransfer &transfer) const {
  Route route;
  auto use = [&](int rank, int reach, int direction) {
    route.uses.push_back(
        {work_.cluster().deviceOf(rank) * linksOfDevice + reach + direction});
  };
  const bool byNodes = transfer.leavesNode && sharing_ == Sharing::Nodes;
  if (byNodes)
    findNodes(route, transfer);
  if (transfer.isMessage()) {
    if (byNodes)
      return route;
    const int reach = transfer.leavesNode ? Between : Inside;
    use(work_.party(transfer, 0), reach, Out);
    use(work_.party(transfer, 1), reach, In);
    return route;
  }
  // In a ring every rank passes on what it receives, inside its node unless it
  // is the only rank there.
  std::map<int, int> onNode;
  for (int p = 0; p < transfer.parties; ++p)
    ++onNode[work_.cluster().nodeOf(work_.party(transfer, p))];
  for (int p = 0; p < transfer.parties; ++p) {
    const int rank = work_.party(transfer, p);
    for (int direction : {Out, In}) {
      if (onNode[work_.cluster().nodeOf(rank)] > 1)
        use(rank, Inside, direction);
      if (transfer.leavesNode && !byNodes)
        use(rank, Between, direction);
    }
  }
  return route;
}

/// Finds the nodes of a route. Traffic that leaves a node uses the ports of all
/// its devices.
void SharedLinks::findNodes(Route &route,
                            const PlannedTransfer &transfer) const {
  const Cluster &cluster = work_.cluster();
  const int first = work_.ranks() * linksOfDevice;
  if (transfer.isMessage()) {
    auto of = [&](int party) {
      return first + linksOfNode * cluster.nodeOf(work_.party(transfer, party));
    };
    route.uses = {{of(0) + Out}, {of(1) + In}};
    const double inside = cluster.description().inside().bytes_per_second();
    const double own = cluster.description().between().bytes_per_second();
    // A speed of 0 means no time, so the ports of the node are the limit.
    route.most = inside > 0 && own > 0
                     ? std::max(1.0, inside / own)
                     : cluster.description().devices_per_node();
    return;
  }
  // A ring uses as many ports of every node as its fullest node has ranks.
  std::map<int, int> onNode;
  int widest = 0;
  for (int p = 0; p < transfer.parties; ++p)
    widest =
        std::max(widest, ++onNode[cluster.nodeOf(work_.party(transfer, p))]);
  for (auto [node, count] : onNode)
    for (int direction : {Out, In})
      route.uses.push_back({first + linksOfNode * node + direction, widest});
}

int SharedLinks::numberOf(Route route) {
  auto [place, isNew] = routeNumbers_.insert(
      {std::move(route), static_cast<int>(routes_.size())});
  if (isNew) {
    routes_.push_back(place->first);
    newest_.push_back(-1);
  }
  return place->second;
}

/// Returns the route of its line, whose transfers all have the same ranks.
int SharedLinks::routeOf(const PlannedTransfer &transfer) {
  int &known = routeOfLine_[transfer.line];
  if (known < 0)
    known = numberOf(findRoute(transfer));
  return known;
}

int SharedLinks::routeOfPort(int port) {
  int &known = routeOfPort_[port];
  if (known >= 0)
    return known;
  const int rank = port / kPorts;
  const auto kind = static_cast<Port>(port % kPorts);
  const int direction =
      kind == Port::NetworkIn || kind == Port::InsideIn ? In : Out;
  const bool isInside = kind == Port::InsideOut || kind == Port::InsideIn;
  Route route;
  if (!isInside && sharing_ == Sharing::Nodes)
    route.uses = {{work_.ranks() * linksOfDevice +
                   linksOfNode * work_.cluster().nodeOf(rank) + direction}};
  else
    route.uses = {{work_.cluster().deviceOf(rank) * linksOfDevice +
                   (isInside ? Inside : Between) + direction}};
  return known = numberOf(std::move(route));
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

int SharedLinks::newBundle(int transfer, int route, double left, double latency,
                           double time) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<int>(bundles_.size()));
    bundles_.emplace_back();
  }
  const int index = unused_.back();
  unused_.pop_back();
  Bundle &bundle = bundles_[index];
  bundle.route = route;
  bundle.first = bundle.last = transfer;
  bundle.count = 1;
  bundle.isFlow = false;
  bundle.isMoving = false;
  bundle.left = left;
  bundle.speed = 0;
  bundle.since = time;
  bundle.latency = latency;
  behind_[transfer] = -1;
  schedule(index, time + latency);
  return index;
}

void SharedLinks::add(int transfer, double time) {
  const PlannedTransfer &what = work_.transfers()[transfer];
  const int route = routeOf(what);
  const double left = what.seconds - what.latency;
  if (int index = newest_[route]; index >= 0) {
    Bundle &bundle = bundles_[index];
    if (!bundle.isMoving && bundle.since == time && bundle.left == left &&
        bundle.latency == what.latency) {
      behind_[transfer] = -1;
      behind_[bundle.last] = transfer;
      bundle.last = transfer;
      ++bundle.count;
      return;
    }
  }
  newest_[route] = newBundle(transfer, route, left, what.latency, time);
}

void SharedLinks::addFlow(int port, double seconds, bool hasLatency,
                          double time) {
  const auto kind = static_cast<Port>(port % kPorts);
  const bool isInside = kind == Port::InsideOut || kind == Port::InsideIn;
  const int index = newBundle(
      static_cast<int>(work_.transfers().size()) + port, routeOfPort(port),
      seconds, hasLatency ? work_.network().latency(isInside) : 0, time);
  bundles_[index].isFlow = true;
  flowOf_[port] = index;
}

void SharedLinks::lengthen(int port, double seconds, double time) {
  const int index = flowOf_[port];
  Bundle &bundle = bundles_[index];
  if (bundle.speed > 0) {
    bundle.left =
        std::max(0.0, bundle.left - (time - bundle.since) * bundle.speed);
    bundle.since = time;
  }
  bundle.left += seconds;
  // A bundle without a speed is in its latency, or gets a speed before time
  // goes on.
  if (bundle.speed > 0)
    schedule(index, time + bundle.left / bundle.speed);
}

bool SharedLinks::isDue(double time) {
  if (!isAllTaken())
    return true;
  dropVoid();
  // Bundles that end up to `now_` do not depend on new speeds.
  if (!touched_.empty() && (events_.empty() || events_.top().time > now_) &&
      time > now_) {
    deal();
    dropVoid();
  }
  return !events_.empty() && events_.top().time <= time;
}

void SharedLinks::dropVoid() {
  while (!events_.empty() &&
         bundles_[events_.top().bundle].version != events_.top().version)
    events_.pop();
}

SharedLinks::Happening SharedLinks::takeNext() {
  if (isAllTaken()) {
    isDue(std::numeric_limits<double>::infinity());
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    Bundle &bundle = bundles_[event.bundle];
    ++bundle.version;
    if (newest_[bundle.route] == event.bundle)
      newest_[bundle.route] = -1; // no transfer joins it any more
    if (!bundle.isMoving && bundle.left > 0) {
      join(event.bundle);
      return {now_, -1};
    }
    if (bundle.isMoving)
      leave(event.bundle);
    taken_ = bundle.first;
    unused_.push_back(event.bundle);
  }
  const int transfer = taken_;
  taken_ = behind_[transfer];
  return {now_, transfer};
}

void SharedLinks::join(int index) {
  Bundle &bundle = bundles_[index];
  bundle.isMoving = true;
  bundle.since = now_;
  for (const Use &use : routes_[bundle.route].uses) {
    links_[use.link].bundles.push_back(index);
    links_[use.link].flows += bundle.isFlow;
    touched_.push_back(use.link);
  }
}

void SharedLinks::leave(int index) {
  for (const Use &use : routes_[bundles_[index].route].uses) {
    std::vector<int> &bundles = links_[use.link].bundles;
    bundles.erase(std::find(bundles.begin(), bundles.end(), index));
    links_[use.link].flows -= bundles_[index].isFlow;
    touched_.push_back(use.link);
  }
}

void SharedLinks::schedule(int index, double time) {
  events_.push({time, index, ++bundles_[index].version});
}

//===----------------------------------------------------------------------===//
// Speeds
//===----------------------------------------------------------------------===//

void SharedLinks::collect() {
  ++dealing_;
  shared_.clear();
  members_.clear();
  auto reach = [&](int l) {
    if (links_[l].seen == dealing_)
      return;
    links_[l].seen = dealing_;
    links_[l].left = links_[l].capacity;
    links_[l].load = 0;
    shared_.push_back(l);
  };
  for (int l : touched_)
    reach(l);
  touched_.clear();
  for (size_t next = 0; next < shared_.size(); ++next)
    for (int index : links_[shared_[next]].bundles) {
      Bundle &bundle = bundles_[index];
      if (bundle.seen == dealing_)
        continue;
      bundle.seen = dealing_;
      members_.push_back(index);
      for (const Use &use : routes_[bundle.route].uses) {
        reach(use.link);
        links_[use.link].load += bundle.count * use.shares;
      }
    }
}

void SharedLinks::halve() {
  ++dealing_;
  members_.clear();
  for (int l : touched_)
    for (int index : links_[l].bundles)
      if (bundles_[index].seen != dealing_) {
        bundles_[index].seen = dealing_;
        members_.push_back(index);
      }
  touched_.clear();
  for (int index : members_) {
    const Bundle &bundle = bundles_[index];
    const std::vector<Use> &uses = routes_[bundle.route].uses;
    const bool meets =
        std::any_of(uses.begin(), uses.end(), [&](const Use &use) {
          const Link &link = links_[use.link];
          const int all = static_cast<int>(link.bundles.size());
          return bundle.isFlow ? link.flows < all : link.flows > 0;
        });
    setSpeed(index, meets ? 0.5 : 1);
  }
}

void SharedLinks::deal() {
  if (sharing_ == Sharing::None)
    return halve();
  collect();
  while (!members_.empty()) {
    // Raise the speed until the next link is full or a transfer is at its own
    // limit.
    double level = std::numeric_limits<double>::infinity();
    for (int index : members_)
      level = std::min(level, routes_[bundles_[index].route].most);
    int full = -1;
    for (int l : shared_)
      if (const Link &link = links_[l];
          link.load > 0 && link.left / link.load < level) {
        level = link.left / link.load;
        full = l;
      }
    auto stays = [&](int index) {
      const Route &route = routes_[bundles_[index].route];
      const bool isFull =
          full >= 0
              ? std::any_of(route.uses.begin(), route.uses.end(),
                            [&](const Use &use) { return use.link == full; })
              : route.most == level;
      if (isFull)
        fix(index, level);
      return isFull;
    };
    members_.erase(std::remove_if(members_.begin(), members_.end(), stays),
                   members_.end());
  }
}

/// Fixes the speed of a bundle. Its share of its links is no longer available
/// to others.
void SharedLinks::fix(int index, double speed) {
  Bundle &bundle = bundles_[index];
  for (const Use &use : routes_[bundle.route].uses) {
    Link &link = links_[use.link];
    const int shares = bundle.count * use.shares;
    link.load -= shares;
    link.left = std::max(0.0, link.left - shares * speed);
  }
  setSpeed(index, speed);
}

void SharedLinks::setSpeed(int index, double speed) {
  Bundle &bundle = bundles_[index];
  if (speed == bundle.speed)
    return;
  bundle.left =
      std::max(0.0, bundle.left - (now_ - bundle.since) * bundle.speed);
  bundle.since = now_;
  bundle.speed = speed;
  schedule(index, now_ + bundle.left / speed);
}

} // namespace dyna
