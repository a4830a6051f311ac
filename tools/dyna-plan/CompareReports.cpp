//===- CompareReports.cpp - Ranks plans and explains the best -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/CompareReports.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace dyna {

/// Smaller shares print as 0.0 %.
static constexpr double leastShare = 5e-4;

bool fits(const RunReport &report, int64_t memory) {
  return memory == 0 ||
         (report.peakBytes() <= memory && report.lackingBytes <= 0);
}

std::string describeLack(const RunReport &report, int64_t memory) {
  if (report.peakBytes() > memory)
    return formatText("a rank takes %s, a device has %s",
                      formatBytes(report.peakBytes()), formatBytes(memory));
  return formatText("a rank takes %s here, but a run keeps room for full "
                    "micro-batches of the longest samples, and lacks %s of %s",
                    formatBytes(report.peakBytes()),
                    formatBytes(report.lackingBytes), formatBytes(memory));
}

Reports sortReports(Reports reports, int64_t memory) {
  auto rank = [&](const auto &entry) {
    return std::tuple(!fits(entry.second, memory),
                      -entry.second.tokensPerSecond());
  };
  std::stable_sort(
      reports.begin(), reports.end(),
      [&](const auto &a, const auto &b) { return rank(a) < rank(b); });
  return reports;
}

namespace {

/// Parts of the seconds of all steps. Their sum is that of the makespans.
struct Parts {
  double bubble = 0;    ///< the busiest stage waits
  double recompute = 0; ///< saved values are computed again
  double padding = 0;   ///< the share of padding of all other work
  double work = 0;      ///< the rest of the busiest stage
};

Parts partsOf(const PlanReport &report) {
  Parts parts;
  parts.bubble = report.bubble() * report.seconds;
  const double busy = report.seconds - parts.bubble;
  parts.recompute = std::min(report.recompute, busy);
  parts.padding = report.paddingShare() * (busy - parts.recompute);
  parts.work = busy - parts.recompute - parts.padding;
  return parts;
}

/// Describes what the other plan spends more on: "9.1 % more bubble and 2.0 %
/// more padding". These are shares of the best plan's time, the largest first.
/// Parts below a hundredth of the difference are left out.
std::string describeExcess(const PlanReport &best, const PlanReport &other) {
  const Parts a = partsOf(best), b = partsOf(other);
  std::array<std::pair<double, const char *>, 4> excess = {
      {{b.bubble - a.bubble, "bubble"},
       {b.recompute - a.recompute, "recomputation"},
       {b.padding - a.padding, "padding"},
       {b.work - a.work, "work on its busiest stage"}}};
  std::stable_sort(
      excess.begin(), excess.end(),
      [](const auto &x, const auto &y) { return x.first > y.first; });
  std::string text;
  const double least =
      std::max((other.seconds - best.seconds) / 100, leastShare * best.seconds);
  for (const auto &[seconds, what] : excess)
    if (seconds > least || text.empty())
      text += (text.empty() ? "" : " and ") +
              formatText("%.1f %% more %s", 100 * seconds / best.seconds, what);
  return text;
}

/// Describes the fastest plan that does not fit, if it is faster than the best.
std::string describeMissed(const Reports &sorted, int64_t memory) {
  const double best = sorted.front().second.tokensPerSecond();
  for (const auto &[name, report] : sorted)
    if (!fits(report, memory) && report.tokensPerSecond() > best)
      return formatText("; %s would be %.1f %% faster, but a rank %s %s of %s",
                        name, 100 * (report.tokensPerSecond() / best - 1),
                        report.peakBytes() > memory ? "takes" : "lacks",
                        formatBytes(report.peakBytes() > memory
                                        ? report.peakBytes()
                                        : report.lackingBytes),
                        formatBytes(memory));
  return "";
}

} // namespace

std::string explainBest(const Reports &sorted, int64_t memory) {
  if (sorted.size() < 2 || !fits(sorted.front().second, memory))
    return "";
  const auto &[name, best] = sorted.front();
  const auto &[next, other] = sorted[1];
  std::string text = "best: " + name;
  if (!fits(other, memory))
    text += ", the only plan that fits";
  else if (other.seconds < (1 + leastShare) * best.seconds)
    text += formatText(", as fast as %s", next);
  else
    text += formatText(", %.1f %% faster than %s, which has %s",
                       100 * (other.seconds / best.seconds - 1), next,
                       describeExcess(best, other));
  return text + describeMissed(sorted, memory) + "\n";
}

} // namespace dyna
