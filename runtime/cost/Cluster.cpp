//===- Cluster.cpp - Estimates the seconds of messages and exchanges ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/Cluster.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace dyna {
namespace {

constexpr double maxLatency = 1e3; ///< seconds; more is a slip of the pen

Status checkLink(const cost::Link &link, const char *name) {
  double latency = link.latency_seconds(), rate = link.bytes_per_second();
  if (!std::isfinite(latency) || latency < 0 || latency > maxLatency)
    return Status::invalidArgument(
        formatText("cluster: %s: latency_seconds expects 0 to %g, but got %g",
                   name, maxLatency, latency));
  if (!std::isfinite(rate) || (rate != 0 && rate < 1))
    return Status::invalidArgument(
        formatText("cluster: %s: bytes_per_second expects a rate of at least "
                   "1, or 0 for no time, but got %g",
                   name, rate));
  // A latency without a rate means that the rate was forgotten.
  if (latency > 0 && rate == 0)
    return Status::invalidArgument(
        formatText("cluster: %s: latency_seconds is %g, but bytes_per_second "
                   "is not said: give it, or leave out both for no time",
                   name, latency));
  return Status::ok();
}

double secondsFor(double bytes, double bytesPerSecond) {
  return bytesPerSecond > 0 ? bytes / bytesPerSecond : 0;
}

} // namespace

StatusOr<Cluster> Cluster::create(cost::Cluster description) {
  auto refuse = [](const char *field, int value) {
    return Status::invalidArgument(
        formatText("cluster: %s expects 0 or more, but got %d", field, value));
  };
  if (description.nodes() < 0)
    return refuse("nodes", description.nodes());
  if (description.devices_per_node() < 0)
    return refuse("devices_per_node", description.devices_per_node());
  if (description.nodes() > 0 && description.devices_per_node() == 0)
    return Status::invalidArgument(
        formatText("cluster: %d nodes, but devices_per_node is not said",
                   description.nodes()));
  if (description.devices_per_node() > 0 && !description.has_between())
    return Status::invalidArgument(
        formatText("cluster: nodes of %d devices, but between is not said: "
                   "give its latency_seconds and bytes_per_second",
                   description.devices_per_node()));
  DYNA_RETURN_IF_ERROR(checkLink(description.inside(), "inside"));
  DYNA_RETURN_IF_ERROR(checkLink(description.between(), "between"));
  Cluster cluster;
  cluster.description_ = std::move(description);
  return cluster;
}

int64_t Cluster::devices() const {
  return static_cast<int64_t>(description_.nodes()) *
         description_.devices_per_node();
}

GroupShape Cluster::shapeOf(const std::vector<int> &ranks) const {
  std::map<int, int> onNode;
  GroupShape shape{static_cast<int>(ranks.size()), 1};
  for (int rank : ranks)
    shape.perNode = std::max(shape.perNode, ++onNode[nodeOf(rank)]);
  return shape;
}

double Cluster::messageSeconds(int from, int to, double bytes) const {
  const cost::Link &link = nodeOf(from) == nodeOf(to) ? description_.inside()
                                                      : description_.between();
  return link.latency_seconds() + secondsFor(bytes, link.bytes_per_second());
}

double Cluster::exchangeSeconds(plan::LayerExchange::Kind kind, double bytes,
                                GroupShape shape) const {
  const int ranks = shape.ranks;
  if (ranks <= 1)
    return 0;
  const cost::Link &inside = description_.inside();
  const cost::Link &between = description_.between();
  const int nodes = (ranks + shape.perNode - 1) / shape.perNode;
  // A speed of 0 means no time, so it never limits the rate.
  double rate = shape.perNode > 1 ? inside.bytes_per_second() : 0;
  if (double ports = shape.perNode * between.bytes_per_second();
      nodes > 1 && ports > 0)
    rate = rate > 0 ? std::min(rate, ports) : ports;
  double latency = (nodes - 1) * between.latency_seconds() +
                   (ranks - nodes) * inside.latency_seconds();
  double part = bytes / ranks;
  switch (kind) {
  case plan::LayerExchange::ALL_REDUCE:
    return 2 * (latency + secondsFor(part * (ranks - 1), rate));
  case plan::LayerExchange::ALL_TO_ALL:
    return latency + secondsFor(part * (ranks - 1) / ranks, rate);
  default:
    return latency + secondsFor(part * (ranks - 1), rate);
  }
}

} // namespace dyna
