//===- SwitchReport.cpp - Compares a switch with bounds -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/SwitchReport.h"

#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/switch/SwitchBaselines.h"

#include <algorithm>

namespace dyna {
namespace {

struct NamedBound {
  const char *name, *key;
  double SwitchBounds::*seconds;
};
const NamedBound allBounds[] = {
    {"receive", "receive", &SwitchBounds::receive},
    {"send", "send", &SwitchBounds::send},
    {"node in", "node_in", &SwitchBounds::nodeIn},
    {"node out", "node_out", &SwitchBounds::nodeOut},
    {"inside", "inside", &SwitchBounds::inside}};

/// Formats milliseconds; short switches are not shown as 0.
std::string milliseconds(double seconds) {
  return seconds == 0 || seconds >= 1e-4 ? formatText("%.2f ms", seconds * 1e3)
                                         : formatText("%.3g us", seconds * 1e6);
}

/// Returns the members that all plans have.
JsonObject members(const SwitchTimes &times) {
  return JsonObject()
      .add("seconds", jsonRounded(times.seconds, 6))
      .add("port_seconds", jsonRounded(times.portSeconds, 6))
      .add("local_bytes", times.localBytes)
      .add("inside_bytes", times.insideBytes)
      .add("between_bytes", times.betweenBytes)
      .add("transfers", times.transfers)
      .add("messages", times.messages)
      .add("peak_bytes", times.peakBytes);
}

} // namespace

double SwitchReport::overBound() const {
  const double bound = bounds.largest();
  return bound > 0 ? times.seconds / bound : 1;
}

std::string SwitchReport::json() const {
  JsonObject ofBounds, ofBaselines;
  for (const NamedBound &bound : allBounds)
    ofBounds.add(bound.key, jsonRounded(bounds.*bound.seconds, 6));
  JsonArray ofNodes;
  for (const std::vector<int64_t> &from : times.nodeBytes) {
    JsonArray row;
    for (int64_t bytes : from)
      row.add(bytes);
    ofNodes.add(row);
  }
  for (const auto &[baseline, its] : baselines)
    ofBaselines.add(baseline, members(its));
  JsonObject object;
  object.add("switch", name)
      .addAll(members(times))
      .add("passing_bytes", times.passingBytes)
      .add("buckets", buckets)
      .add("bound", jsonRounded(bounds.largest(), 6))
      .add("bounds", ofBounds)
      .add("node_bytes", ofNodes)
      .add("baselines", ofBaselines);
  if (planSeconds > 0)
    object.add("plan_seconds", jsonRounded(planSeconds, 6));
  return object.text();
}

StatusOr<SwitchReport> reportSwitch(std::string name,
                                    const std::vector<SwitchTensor> &tensors,
                                    const SwitchNetwork &network,
                                    const SwitchOptions &options) {
  SwitchReport report;
  report.name = std::move(name);
  DYNA_ASSIGN_OR_RETURN(report.bounds, boundsOf(tensors, network));
  DYNA_ASSIGN_OR_RETURN(SwitchPlan plan, planSwitch(tensors, network, options));
  report.times = timesOf(tensors, plan, network);
  report.buckets = static_cast<int>(plan.buckets.size());
  for (const SwitchBaseline &baseline : switchBaselines()) {
    DYNA_ASSIGN_OR_RETURN(plan, baseline.plan(tensors, network));
    report.baselines.emplace_back(
        baseline.name, timesOf(tensors, plan, network, baseline.fusing));
  }
  return report;
}

std::string describeSwitches(const std::vector<SwitchReport> &reports) {
  size_t width = 6;
  for (const SwitchReport &report : reports)
    width = std::max(width, report.name.size());
  auto pad = [&](std::string text) {
    text.resize(std::max(width, text.size()), ' ');
    return text;
  };
  std::string text =
      pad("switch") + formatText("  %10s  %10s  %6s", "time", "bound", "ratio");
  for (const SwitchBaseline &baseline : switchBaselines())
    text += formatText("  %11s", baseline.name);
  text += formatText("  %10s\n", "peak");
  for (const SwitchReport &report : reports) {
    text += pad(report.name) + formatText("  %10s  %10s  %6.2f",
                                          milliseconds(report.times.seconds),
                                          milliseconds(report.bounds.largest()),
                                          report.overBound());
    for (const auto &[name, times] : report.baselines)
      text += formatText("  %11s", milliseconds(times.seconds));
    text += formatText("  %10s\n", formatBytes(report.times.peakBytes));
  }
  return text;
}

std::string describeSwitch(const SwitchReport &report) {
  const SwitchTimes &times = report.times;
  std::string text = formatText(
      "%s: %s stay, %s inside of nodes, %s between them; %d transfers in %d "
      "messages and %d buckets, up to %s passed on\n",
      report.name, formatBytes(times.localBytes),
      formatBytes(times.insideBytes), formatBytes(times.betweenBytes),
      times.transfers, times.messages, report.buckets,
      formatBytes(times.passingBytes));
  text += "  bounds:";
  for (const NamedBound &bound : allBounds)
    text += formatText(" %s %s%s", bound.name,
                       milliseconds(report.bounds.*bound.seconds),
                       &bound == std::end(allBounds) - 1 ? "\n" : ",");
  for (size_t i = 0; i < report.baselines.size(); ++i) {
    const auto &[name, its] = report.baselines[i];
    text +=
        formatText("  %s (%s): %s, %s between nodes, peak %s\n", name,
                   switchBaselines()[i].description, milliseconds(its.seconds),
                   formatBytes(its.betweenBytes), formatBytes(its.peakBytes));
  }
  for (size_t from = 0; from < times.nodeBytes.size(); ++from) {
    text += formatText("  node %d to nodes:", from);
    for (int64_t bytes : times.nodeBytes[from])
      text += " " + formatBytes(bytes);
    text += "\n";
  }
  return text;
}

} // namespace dyna
