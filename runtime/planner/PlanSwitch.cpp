//===- PlanSwitch.cpp - Who sends what when strategies change -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PlanSwitch.h"

#include "runtime/base/Text.h"
#include "runtime/planner/SwitchBaselines.h"
#include "runtime/planner/SwitchBounds.h"
#include "runtime/planner/SwitchTimes.h"
#include "runtime/planner/switches/DealRoutes.h"

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
  auto deal = [&](const switches::Routes &routes) {
    return switches::dealRoutes(tensors, lots, routes.lots, ports, options);
  };
  settings.hasDetours = false;
  const switches::Routes direct =
      switches::findRoutes(lots.lots, ports, settings);
  if (settings.bound <
      kLatenciesOfDetour * (network.insideLatency + network.betweenLatency))
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

} // namespace dyna
