//===- PlanSwitch.cpp - Who sends what when strategies change -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/PlanSwitch.h"

#include "runtime/base/Text.h"
#include "runtime/planner/switch/SwitchBaselines.h"
#include "runtime/planner/switch/SwitchBounds.h"
#include "runtime/planner/switch/SwitchTimes.h"
#include "runtime/planner/switch/routes/DealRoutes.h"

#include <algorithm>
#include <limits>
#include <tuple>

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

/// Returns the order in which buckets that hand something on stand behind so
/// many more of those that hand on nothing.
std::vector<int> handOnLater(const SwitchMessages &plan, int by) {
  const int count = static_cast<int>(plan.buckets.size());
  std::vector<int> root(count), turn(count), order(count);
  int roots = 0;
  for (int b = 0; b < count; ++b) {
    const int after = plan.buckets[b].after;
    root[b] = after < 0 ? roots++ : root[after];
    turn[b] = after < 0 ? root[b] : turn[after] + by;
    order[b] = b;
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::tuple(turn[a], root[a], a) < std::tuple(turn[b], root[b], b);
  });
  return order;
}

SwitchPlan inOrder(SwitchPlan plan, const std::vector<int> &order) {
  std::vector<int> place(order.size());
  SwitchPlan result;
  result.buckets.reserve(order.size());
  for (int bucket : order) {
    place[bucket] = static_cast<int>(result.buckets.size());
    result.buckets.push_back(std::move(plan.buckets[bucket]));
    if (int &after = result.buckets.back().after; after >= 0)
      after = place[after];
  }
  return result;
}

/// A plan and the seconds that it takes.
struct TimedPlan {
  SwitchPlan plan;
  double seconds = 0;
};

/// Puts buckets that hand something on behind others, as long as that saves
/// time: a port that waits for them sends nothing else meanwhile.
TimedPlan withFewWaits(const std::vector<SwitchTensor> &tensors,
                       const SwitchNetwork &ports, const SwitchOptions &options,
                       double bound, SwitchPlan plan) {
  const SwitchMessages messages =
      SwitchMessages::of(tensors, plan, ports.ranks);
  auto isHandedOn = [](const SwitchBucket &one) { return one.after >= 0; };
  const bool handsOn =
      std::any_of(plan.buckets.begin(), plan.buckets.end(), isHandedOn);
  double shortest = std::numeric_limits<double>::infinity();
  std::vector<int> best;
  for (int by : {1, 4, 8, 2, 16, 32, 64}) {
    std::vector<int> order = handOnLater(messages, by);
    const double seconds =
        secondsOf(messages, order, ports, options.bytesUnderWay);
    if (seconds < shortest) {
      shortest = seconds;
      best = std::move(order);
    }
    if (!handsOn || shortest <= kNearBound * bound)
      break;
  }
  return {inOrder(std::move(plan), best), shortest};
}

/// Returns the plan, or Algorithm 1's if that takes less time: where latencies
/// count, or all ways are direct, hops and pieces that save bytes do not.
StatusOr<SwitchPlan> orAlgorithm1(const std::vector<SwitchTensor> &tensors,
                                  const SwitchNetwork &ports,
                                  const SwitchOptions &options, double bound,
                                  TimedPlan timed) {
  if (timed.seconds <= bound)
    return std::move(timed.plan);
  DYNA_ASSIGN_OR_RETURN(const double least,
                        secondsOfAlgorithm1(tensors, ports));
  // Limits and latencies only add to that.
  if (least >= timed.seconds)
    return std::move(timed.plan);
  DYNA_ASSIGN_OR_RETURN(SwitchPlan simple,
                        planAlgorithm1(tensors, ports, options));
  const SwitchMessages messages =
      SwitchMessages::of(tensors, simple, ports.ranks);
  const double seconds = secondsOf(messages, handOnLater(messages, 1), ports,
                                   options.bytesUnderWay);
  return seconds < timed.seconds ? std::move(simple) : std::move(timed.plan);
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
    return deal(direct);
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
  return timesOf(tensors, plain, ports, Fusing::Buckets, options.bytesUnderWay)
                     .seconds <= timesOf(tensors, plan, ports, Fusing::Buckets,
                                         options.bytesUnderWay)
                                     .seconds
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
  TimedPlan timed =
      withFewWaits(tensors, ports, options, settings.bound, std::move(plan));
  return orAlgorithm1(tensors, ports, options, settings.bound,
                      std::move(timed));
}

} // namespace dyna
