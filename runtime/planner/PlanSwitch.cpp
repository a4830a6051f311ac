//===- PlanSwitch.cpp - Who sends what when strategies change -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PlanSwitch.h"

#include "runtime/base/Text.h"
#include "runtime/planner/SwitchBaselines.h"
#include "runtime/planner/SwitchBounds.h"
#include "runtime/planner/SwitchTimes.h"
#include "runtime/planner/switches/DealRoutes.h"

#include <algorithm>

namespace dyna {
namespace {

/// What takes less than so many latencies goes no detours: each waits for two.
constexpr double kLatenciesOfDetour = 20;
/// Detours that save less are not worth what has to wait for them.
constexpr double kWorthOfDetours = 0.98;
/// Those that save more are, whatever waits; between, both plans are played,
/// unless they are large.
constexpr double kClearWorth = 0.85;
constexpr size_t kPlayedTransfers = 200000;
/// What takes no more than so many times the bound is not looked at again.
constexpr double kNearBound = 1.05;

/// Ports that take no time are all alike.
SwitchNetwork withRates(SwitchNetwork network) {
  if (network.betweenRate <= 0)
    network.betweenRate = network.insideRate > 0 ? network.insideRate : 1;
  if (network.insideRate <= 0)
    network.insideRate = 8 * network.betweenRate;
  return network;
}

size_t transfersOf(const SwitchPlan &plan) {
  size_t count = 0;
  for (const SwitchBucket &bucket : plan.buckets)
    count += bucket.transfers.size();
  return count;
}

/// The plan, or Algorithm 1's where that is played in less time: where latencies
/// count, hops that save bytes do not.
StatusOr<SwitchPlan> orSimpler(const std::vector<SwitchTensor> &tensors,
                               const SwitchNetwork &ports,
                               const SwitchOptions &options, SwitchPlan plan) {
  DYNA_ASSIGN_OR_RETURN(SwitchPlan simple,
                        planAlgorithm1(tensors, ports, options));
  return timesOf(tensors, simple, ports).seconds <
                 timesOf(tensors, plan, ports).seconds
             ? simple
             : plan;
}

/// The same buckets, where those that hand something on stand behind so many more
/// of those that hand on nothing.
SwitchPlan handOnLater(const SwitchPlan &plan, int by) {
  const int count = static_cast<int>(plan.buckets.size());
  std::vector<int> root(count), hops(count), order(count), place(count);
  int roots = 0;
  for (int b = 0; b < count; ++b) {
    const int after = plan.buckets[b].after;
    root[b] = after < 0 ? roots++ : root[after];
    hops[b] = after < 0 ? 0 : hops[after] + 1;
    order[b] = b;
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(root[a] + by * hops[a], root[a]) <
           std::pair(root[b] + by * hops[b], root[b]);
  });
  SwitchPlan later;
  for (int at = 0; at < count; ++at) {
    place[order[at]] = at;
    later.buckets.push_back(plan.buckets[order[at]]);
    if (int &after = later.buckets.back().after; after >= 0)
      after = place[after];
  }
  return later;
}

/// What a plan gains by that: a port that waits for what it is to hand on sends
/// nothing else meanwhile.
SwitchPlan withFewWaits(const std::vector<SwitchTensor> &tensors,
                        const SwitchNetwork &ports, double bound,
                        SwitchPlan plan) {
  const bool handsOn =
      std::any_of(plan.buckets.begin(), plan.buckets.end(),
                  [](const SwitchBucket &one) { return one.after >= 0; });
  if (!handsOn || transfersOf(plan) > kPlayedTransfers)
    return plan;
  double shortest = timesOf(tensors, plan, ports).seconds;
  if (shortest <= kNearBound * bound)
    return plan;
  SwitchPlan best = plan;
  for (int by : {2, 4, 8, 16, 32, 64}) {
    SwitchPlan later = handOnLater(plan, by);
    const double seconds = timesOf(tensors, later, ports).seconds;
    if (seconds < shortest) {
      shortest = seconds;
      best = std::move(later);
    }
  }
  return best;
}

/// With detours, where these are worth it, or without.
StatusOr<SwitchPlan> planWays(const std::vector<SwitchTensor> &tensors,
                              const switches::Lots &lots,
                              const SwitchNetwork &ports,
                              const SwitchOptions &options,
                              switches::RouteSettings settings) {
  auto deal = [&](const switches::Routes &routes) {
    return switches::dealRoutes(tensors, lots, routes.lots, ports, options);
  };
  settings.hasDetours = false;
  const switches::Routes direct =
      switches::findRoutes(lots.lots, ports, settings);
  if (settings.bound <
      kLatenciesOfDetour * (ports.insideLatency + ports.betweenLatency))
    return orSimpler(tensors, ports, options, deal(direct));
  if (direct.seconds * kWorthOfDetours <= settings.bound)
    return deal(direct);
  settings.hasDetours = true;
  const switches::Routes detours =
      switches::findRoutes(lots.lots, ports, settings);
  const double worth = detours.seconds / direct.seconds;
  if (worth > kWorthOfDetours)
    return deal(direct);
  SwitchPlan plan = deal(detours);
  if (worth < kClearWorth || transfersOf(plan) > kPlayedTransfers)
    return plan;
  SwitchPlan plain = deal(direct);
  return timesOf(tensors, plain, ports).seconds <=
                 timesOf(tensors, plan, ports).seconds
             ? plain
             : plan;
}

} // namespace

StatusOr<SwitchPlan> planSwitch(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network,
                                const SwitchOptions &options) {
  for (const SwitchTensor &tensor : tensors)
    for (const auto *boxes : {&tensor.from, &tensor.to})
      for (const RankBox &one : *boxes)
        if (one.rank < 0 || one.rank >= network.ranks)
          return Status::invalidArgument(
              formatText("switch: a tensor lies on rank %d, but the network "
                         "has %d ranks",
                         one.rank, network.ranks));
  DYNA_ASSIGN_OR_RETURN(switches::Lots lots,
                        switches::findLots(tensors, options.smallestPiece));
  const SwitchNetwork ports = withRates(network);
  switches::RouteSettings settings;
  settings.sweeps = options.sweeps;
  settings.bound = boundsOf(lots.lots, ports).largest();
  DYNA_ASSIGN_OR_RETURN(SwitchPlan plan,
                        planWays(tensors, lots, ports, options, settings));
  return withFewWaits(tensors, ports, settings.bound, std::move(plan));
}

} // namespace dyna
