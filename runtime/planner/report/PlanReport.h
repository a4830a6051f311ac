//===- PlanReport.h - Reports numbers of plans ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The simulated time of a plan (runtime/sim), and its parts. In the makespan of
// a step, a stage is busy in layer functions for some time. The rest is
//
//     imbalance   work that the busiest stage has more than this one
//     bubble      time for which even the busiest stage waits: for the pipeline
//                 to fill and drain, for messages, reductions, other replicas
//
// So the bubble is the same for all stages. A part of it comes when all
// micro-batches are done: ranks exchange gradients, norms and rows of
// parameters around the update. That part is reported separately, because no
// schedule can shorten it.
//
// The report has two lower bounds beside the time. A step cannot be shorter
// than the work of the busiest rank. It cannot be shorter than what the best
// order of its micro-batches needs (PipelineBounds.h), followed by the sum of
// norms and the longest update.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANREPORT_H
#define DYNA_RUNTIME_PLANNER_PLANREPORT_H

#include "runtime/base/text/JsonWriter.h"
#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/report/SliceReport.h"
#include "runtime/sim/PlanTimes.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace dyna {

/// Report of one step, or of several steps in sequence.
struct PlanReport {
  struct Stage {
    double busy = 0;       ///< seconds of its busiest rank in functions
    int64_t peakBytes = 0; ///< most of one rank: parameters and dynamic region
    double stock = 0; ///< median safety stock, summed over replicas and steps
  };
  int64_t steps = 0;
  int64_t samples = 0;
  int64_t tokens = 0;  ///< of samples with known lengths
  int64_t padding = 0; ///< tokens of padding after them
  int64_t microBatches = 0;
  int64_t largestMicroBatch = 0; ///< tokens
  double seconds = 0;            ///< makespans
  double bound = 0;              ///< of the busiest ranks of each step
  double exchange = 0;           ///< PlanReport::exchangeShare's, of all steps
  double loadBound = 0, pathBound = 0; ///< of the pipelines, steps added up
  double recompute = 0; ///< seconds of recomputation, mean of the ranks
  /// Matrix-product flops that the samples need: forward and twice that backward,
  /// without padding and recomputation.
  double flops = 0;
  /// Matrix-product flops per second of all ranks at the full rate of the
  /// described device; 0: unknown.
  double peakRate = 0;
  int64_t pipelines = 0;        ///< replicas with work, of all steps
  int64_t otherSchedules = 0;   ///< steps with another schedule (`fallback`)
  std::set<std::string> others; ///< names of these schedules
  /// Seconds to plan and verify: of all steps, and of the longest; 0 if not
  /// measured.
  double planSeconds = 0, longestPlanSeconds = 0;
  std::vector<int64_t> rankBytes; ///< peak of each rank, equal within a stage
  /// Samples that are sliced, of the first step that slices.
  std::vector<ReportedCut> cuts;
  /// Empty for a step of several graphs, because each graph has its own stages.
  std::vector<Stage> stages;
  /// Reports of the phases of such a step, by strategy. For several steps,
  /// those of one strategy are added up. Seconds of phases may overlap.
  std::vector<std::pair<std::string, PlanReport>> phases;
  /// Seconds in instructions of switches, of the rank that is longest in them. For a
  /// phase these are the switches of its values and gradients.
  double switchSeconds = 0;
  /// Durations of these switches if nothing else happens, added up.
  double switchAloneSeconds = 0;
  int64_t switchBytes = 0; ///< bytes that all ranks send to others by switches

  /// Returns the largest of the bounds that hold: no plan of these
  /// micro-batches is faster. Phases may overlap, so bounds of their pipelines
  /// do not add up.
  double leastSeconds() const {
    return phases.empty() ? std::max({bound, loadBound, pathBound}) : bound;
  }
  double tokensPerSecond() const {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
  /// Returns the peak of the rank with the most bytes.
  int64_t peakBytes() const;
  /// Parts of the makespan.
  double imbalance(int stage) const;
  double bubble() const;
  /// Returns the part of the bubble after the last micro-batch, when no rank is
  /// in a function.
  double exchangeShare() const;
  /// Returns the share of padding in all computed tokens.
  double paddingShare() const;
  /// Returns the share of the step's time that a rank recomputes, as the mean
  /// of the ranks.
  double recomputeShare() const;
  /// Returns the model flops utilisation: `flops` over what `peakRate` allows;
  /// 0 if unknown.
  double peakShare() const;
  /// Returns the median safety stock of a stage (PipelineTimes.h), as the mean
  /// of all pipelines.
  double stock(int stage) const;

  /// Sets numbers and sizes of micro-batches, samples and tokens, as the plan of
  /// one step has them, and the flops of `model` for them. `lengths` are those of
  /// its samples; if empty, segments count as samples without padding.
  void count(const Model &model, const plan::Plan &plan,
             const std::vector<int64_t> &lengths);
  /// Adds the steps of a report of the same graph, or graphs.
  void add(const PlanReport &other);
  /// Puts the phases, of which each has one of these names, in this order: steps
  /// that lack some are added up as they come.
  void orderPhases(const std::vector<std::string> &names);
  /// Returns the report as an object. If there is a name, it is the first member.
  JsonObject json(const std::string &name) const;
  /// Returns the last members of it: `stages` and `rank_peak_bytes`. Stages have stocks
  /// only if pipelines were simulated.
  JsonObject stagesJson() const;
  /// Returns its member `rank_peak_bytes`.
  JsonObject rankBytesJson() const;
};

/// Reports a plan that `verifyPlan` accepts for the graph.
StatusOr<PlanReport> reportPlan(const ExecutableGraph &graph,
                                const plan::Plan &plan, const CostModel &costs);

/// Reports a plan that has been simulated.
PlanReport reportPlan(const ExecutableGraph &graph, const plan::Plan &plan,
                      const CostModel &costs, const PlanWork &work,
                      const PlanTimes &times);

/// Seconds at which the last function of a micro-batch is over, on any rank.
double endOfMicroBatches(const plan::Plan &plan, const PlanTimes &times);

/// Describes one report in several lines, for people.
std::string describeReport(const std::string &name, const PlanReport &report);

/// Returns a table for people, with one row for each of the named reports.
std::string
describeReports(const std::vector<std::pair<std::string, PlanReport>> &reports);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANREPORT_H
