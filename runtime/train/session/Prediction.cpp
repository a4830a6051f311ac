//===- Prediction.cpp - Compares predictions with measurements ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/Prediction.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/report/StepReport.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dyna {

/// Returns the options for this runtime, whose ranks are host ranks.
static SimulationOptions ofHosts() {
  SimulationOptions options;
  options.ranks = SimulationOptions::Ranks::Host;
  return options;
}

StatusOr<std::optional<PlanReport>> predictStep(const Session &session,
                                                const VerifiedStep &step) {
  if (!session.hasCosts())
    return std::optional<PlanReport>();
  DYNA_ASSIGN_OR_RETURN(auto played,
                        playPhases(*session.planner, step, ofHosts()));
  return std::optional<PlanReport>(reportStep(*session.planner, step, played));
}

PlanReport reportMeasured(const Session &session, const VerifiedStep &step,
                          double seconds, const std::vector<RankUse> &uses) {
  PlanReport report;
  countPhases(report, *session.model, step);
  report.seconds = seconds;
  // With several graphs a rank has a stage in each of them, so stages have no
  // sum.
  if (!session.graphs->areSeveral() && !uses.empty())
    report.stages.resize(session.home().graph->stages());
  for (const RankUse &use : uses) {
    const int rank = static_cast<int>(report.rankBytes.size());
    report.rankBytes.push_back(use.peakBytes);
    report.bound = std::max(report.bound, use.busySeconds);
    if (report.stages.empty() || rank >= session.home().graph->ranks())
      continue;
    PlanReport::Stage &stage =
        report.stages[session.home().graph->placeOf(rank).stage];
    stage.busy = std::max(stage.busy, use.busySeconds);
    stage.peakBytes = std::max(stage.peakBytes, use.peakBytes);
  }
  return report;
}

StatusOr<double> tracePrediction(const Session &session,
                                 const VerifiedStep &verified, int64_t step,
                                 double begin, TraceWriter &writer) {
  DYNA_ASSIGN_OR_RETURN(auto played,
                        playPhases(*session.planner, verified, ofHosts()));
  return traceStep(writer,
                   {step, begin, session.home().graph->ranks(), "predicted"},
                   played, /*ofHosts=*/true);
}

void PredictionErrors::add(double predicted, double measured) {
  if (predicted <= 0 || measured <= 0)
    return;
  errors_.push_back(std::abs(predicted - measured) / measured);
  wrong_ += std::abs(predicted - measured);
  measured_ += measured;
}

double PredictionErrors::mean() const {
  return std::accumulate(errors_.begin(), errors_.end(), 0.0) /
         static_cast<double>(std::max<size_t>(errors_.size(), 1));
}

double PredictionErrors::weighted() const {
  return empty() ? 0 : wrong_ / measured_;
}

double PredictionErrors::p95() const {
  if (errors_.empty())
    return 0;
  std::vector<double> sorted = errors_;
  // The rank is 95 % of the count, rounded up. Use integers, as 0.95 is not
  // exact.
  size_t place = (95 * sorted.size() + 99) / 100 - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(place),
                   sorted.end());
  return sorted[place];
}

std::string PredictionErrors::describe(const char *thing,
                                       const char *things) const {
  return formatText("mean %.1f %%, p95 %.1f %%, over %d %s", 100 * mean(),
                    100 * p95(), errors_.size(),
                    errors_.size() == 1 ? thing : things);
}

} // namespace dyna
