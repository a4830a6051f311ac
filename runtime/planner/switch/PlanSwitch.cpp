//===- PlanSwitch.cpp - Plans the messages of a switch --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/PlanSwitch.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/switch/SwitchBaselines.h"
#include "runtime/planner/switch/SwitchBounds.h"
#include "runtime/planner/switch/SwitchTimes.h"
#include "runtime/planner/switch/routes/DealRoutes.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace dyna {
namespace {

/// If the bound of a switch is below so many latencies, it uses no detours,
/// because each costs two.
constexpr double kLatenciesOfDetour = 20;
/// Detours must shorten the switch to this share of its time. Smaller gains do
/// not outweigh the waits.
constexpr double kWorthOfDetours = 0.98;
/// A plan within this factor of the bound is not improved further.
constexpr double kNearBound = 1.05;

/// Largest number of other buckets that a bucket with forwarded data is placed
/// after.
constexpr int kMostBehind = 64;

/// Ports that take no time are all alike.
SwitchNetwork withRates(SwitchNetwork network) {
  if (network.betweenRate <= 0)
    network.betweenRate = network.insideRate > 0 ? network.insideRate : 1;
  if (network.insideRate <= 0)
    network.insideRate = 8 * network.betweenRate;
  return network;
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

/// A switch whose buckets have an order, and the seconds that it takes.
struct TimedSwitch {
  switches::DealtSwitch dealt;
  std::vector<int> order;
  double seconds;
};

/// Puts buckets that hand something on behind others, as long as that saves
/// time: a port that waits for them sends nothing else meanwhile.
TimedSwitch withFewWaits(switches::DealtSwitch dealt,
                         const SwitchNetwork &ports,
                         const SwitchOptions &options, double bound) {
  const SwitchMessages messages = dealt.messages();
  auto isHandedOn = [](const auto &one) { return one.after >= 0; };
  const bool handsOn =
      std::any_of(messages.buckets.begin(), messages.buckets.end(), isHandedOn);
  double shortest = std::numeric_limits<double>::infinity();
  std::vector<int> best;
  // Returns false if handing on `by` buckets later is not faster.
  auto tryBy = [&](int by) {
    std::vector<int> order = handOnLater(messages, by);
    const double seconds =
        secondsOf(messages, order, ports, options.bytesUnderWay);
    const bool isShorter = seconds < shortest;
    if (isShorter) {
      shortest = seconds;
      best = std::move(order);
    }
    return isShorter;
  };
  tryBy(1);
  auto goesOn = [&] { return handsOn && shortest > kNearBound * bound; };
  // Later buckets make ports wait less, until the wait at the end grows.
  int most = 0;
  for (int by = 4; by <= kMostBehind && goesOn() && tryBy(by); by *= 2)
    most = by;
  if (most <= 4 && goesOn())
    tryBy(2);
  return {std::move(dealt), std::move(best), shortest};
}

/// Returns the plan, or Algorithm 1's plan if that is faster. Hops and pieces
/// that save bytes do not pay if latencies dominate or if all routes are
/// direct.
StatusOr<SwitchPlan> orAlgorithm1(const std::vector<SwitchTensor> &tensors,
                                  const SwitchNetwork &ports,
                                  const SwitchOptions &options, double bound,
                                  TimedSwitch timed) {
  if (timed.seconds <= bound)
    return std::move(timed.dealt).plan(timed.order);
  DYNA_ASSIGN_OR_RETURN(const double least,
                        secondsOfAlgorithm1(tensors, ports));
  // Limits and latencies would only add to `least`.
  if (least >= timed.seconds)
    return std::move(timed.dealt).plan(timed.order);
  DYNA_ASSIGN_OR_RETURN(const SwitchMessages messages,
                        messagesOfAlgorithm1(tensors, ports, options));
  const double seconds = secondsOf(messages, handOnLater(messages, 1), ports,
                                   options.bytesUnderWay);
  if (seconds < timed.seconds)
    return planAlgorithm1(tensors, ports, options);
  return std::move(timed.dealt).plan(timed.order);
}

/// Deals the routes with detours, if these pay, or without.
TimedSwitch dealWays(const std::vector<SwitchTensor> &tensors,
                     const switches::Lots &lots, const SwitchNetwork &ports,
                     const SwitchOptions &options,
                     switches::RouteSettings settings) {
  auto deal = [&](const switches::Routes &routes) {
    return withFewWaits(
        switches::dealRoutes(tensors, lots, routes.lots, ports, options), ports,
        options, settings.bound);
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
  if (detours.seconds > kWorthOfDetours * direct.seconds)
    return deal(direct);
  TimedSwitch far = deal(detours);
  // Routes without detours take at least as long as their busiest port.
  if (far.seconds <= direct.seconds)
    return far;
  TimedSwitch near = deal(direct);
  return near.seconds <= far.seconds ? std::move(near) : std::move(far);
}

Status checkTensors(const std::vector<SwitchTensor> &tensors, int ranks) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (const SwitchTensor &tensor : tensors)
    for (const auto *boxes : {&tensor.from, &tensor.to})
      for (const auto &[rank, box] : *boxes) {
        if (rank < 0 || rank >= ranks)
          return Status::invalidArgument(
              formatText("switch: a tensor lies on rank %d, but the network "
                         "has %d ranks",
                         rank, ranks));
        for (size_t dim = 0; dim < box.begin.size(); ++dim)
          if (box.begin[dim] > most - box.size[dim])
            return Status::invalidArgument(formatText(
                "switch: %s of a tensor ends behind row or column %d, which "
                "is the last one that a switch can move",
                box.describe(), most));
      }
  return Status::ok();
}

} // namespace

StatusOr<SwitchPlan> planSwitch(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network,
                                const SwitchOptions &options) {
  DYNA_RETURN_IF_ERROR(checkTensors(tensors, network.ranks));
  DYNA_ASSIGN_OR_RETURN(switches::Lots lots,
                        switches::findLots(tensors, options.smallestPiece));
  const SwitchNetwork ports = withRates(network);
  switches::RouteSettings settings;
  settings.sweeps = options.sweeps;
  settings.bound = boundsOf(lots.lots, ports).largest();
  return orAlgorithm1(tensors, ports, options, settings.bound,
                      dealWays(tensors, lots, ports, options, settings));
}

} // namespace dyna
