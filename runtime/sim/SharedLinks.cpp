//===- SharedLinks.cpp - Transfers that share links -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/SharedLinks.h"

#include <algorithm>
#include <map>

namespace dyna {

namespace {

/// Of a device, in this order; a node has the first two.
enum Direction { Out, In };
enum Reach { Inside = 0, Between = 2 };
constexpr int linksOfDevice = 4, linksOfNode = 2;

} // namespace

SharedLinks::SharedLinks(const PlanWork &work, bool sharesNodes)
    : work_(work), sharesNodes_(sharesNodes) {
  const int nodes = work.cluster().nodeOf(work.ranks() - 1) + 1;
  links_.resize(static_cast<size_t>(work.ranks()) * linksOfDevice);
  Link node;
  node.capacity = std::max(1, work.cluster().description().devices_per_node());
  links_.resize(links_.size() + static_cast<size_t>(nodes) * linksOfNode, node);
}

void SharedLinks::findLinks(Flow &flow) const {
  const PlannedTransfer &transfer = work_.transfers()[flow.transfer];
  flow.links.clear();
  flow.most = 1;
  flow.weight = 1;
  auto use = [&](int rank, int reach, int direction) {
    flow.links.push_back(rank * linksOfDevice + reach + direction);
  };
  const bool isMessage = transfer.isMessage();
  const bool byNodes = transfer.leavesNode && sharesNodes_;
  if (byNodes)
    findNodes(flow, transfer);
  if (isMessage) {
    if (byNodes)
      return;
    const int reach = transfer.leavesNode ? Between : Inside;
    use(work_.party(transfer, 0), reach, Out);
    use(work_.party(transfer, 1), reach, In);
    return;
  }
  // A ring: every rank passes on what it gets, inside unless it is alone there.
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
}

/// What leaves a node goes by the ports of all its devices.
void SharedLinks::findNodes(Flow &flow, const PlannedTransfer &transfer) const {
  const Cluster &cluster = work_.cluster();
  const int first = work_.ranks() * linksOfDevice;
  if (transfer.isMessage()) {
    flow.links = {
        first + linksOfNode * cluster.nodeOf(work_.party(transfer, 0)) + Out,
        first + linksOfNode * cluster.nodeOf(work_.party(transfer, 1)) + In};
    const double inside = cluster.description().inside().bytes_per_second();
    const double own = cluster.description().between().bytes_per_second();
    // A speed of 0 takes no time: that of the ports is the limit.
    flow.most = inside > 0 && own > 0
                    ? std::max(1.0, inside / own)
                    : cluster.description().devices_per_node();
    return;
  }
  std::map<int, int> onNode;
  for (int p = 0; p < transfer.parties; ++p)
    flow.weight = std::max(flow.weight,
                           ++onNode[cluster.nodeOf(work_.party(transfer, p))]);
  for (auto [node, count] : onNode)
    for (int direction : {Out, In})
      flow.links.push_back(first + linksOfNode * node + direction);
}

void SharedLinks::add(int transfer, double time) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
  }
  const int index = unused_.back();
  unused_.pop_back();
  Flow &flow = flows_[index];
  const PlannedTransfer &what = work_.transfers()[transfer];
  flow.transfer = transfer;
  flow.isMoving = false;
  flow.left = what.seconds - what.latency;
  findLinks(flow);
  schedule(index, time + what.latency);
}

bool SharedLinks::hasNext() {
  while (!events_.empty() &&
         flows_[events_.top().flow].version != events_.top().version)
    events_.pop();
  return !events_.empty();
}

int SharedLinks::takeNext() {
  const auto [time, index, version] = events_.top();
  events_.pop();
  Flow &flow = flows_[index];
  ++flow.version;
  if (!flow.isMoving && flow.left > 0) {
    flow.isMoving = true;
    flow.since = time;
    flow.speed = 0;
    load(index, time, true);
    return -1;
  }
  if (flow.isMoving)
    load(index, time, false);
  unused_.push_back(index);
  return flow.transfer;
}

void SharedLinks::load(int index, double time, bool joins) {
  const Flow &flow = flows_[index];
  changed_.clear();
  for (int l : flow.links) {
    Link &link = links_[l];
    link.load += joins ? flow.weight : -flow.weight;
    if (joins)
      link.flows.push_back(index);
    else
      link.flows.erase(std::find(link.flows.begin(), link.flows.end(), index));
    changed_.insert(changed_.end(), link.flows.begin(), link.flows.end());
  }
  std::sort(changed_.begin(), changed_.end());
  changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
  for (int other : changed_)
    setSpeed(other, time);
}

void SharedLinks::setSpeed(int index, double time) {
  Flow &flow = flows_[index];
  double speed = flow.most;
  for (int l : flow.links)
    speed = std::min(speed, links_[l].capacity / links_[l].load);
  if (speed == flow.speed)
    return;
  flow.left = std::max(0.0, flow.left - (time - flow.since) * flow.speed);
  flow.since = time;
  flow.speed = speed;
  schedule(index, time + flow.left / speed);
}

void SharedLinks::schedule(int index, double time) {
  events_.push({time, index, ++flows_[index].version});
}

} // namespace dyna
