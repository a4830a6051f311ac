//===- PlayedSteps.h - Plans and simulates steps ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_PLAYEDSTEPS_H
#define DYNA_TOOLS_DYNA_PLAN_PLAYEDSTEPS_H

#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/report/ContextReport.h"
#include "runtime/planner/search/SizedSteps.h"
#include "runtime/sim/PlanTrace.h"
#include "tools/dyna-plan/CompareReports.h"
#include "tools/dyna-plan/PipelineSvg.h"
#include "tools/dyna-plan/PlanFlags.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// Tokens of the samples of each step, and of the longest sample of the data. A run
/// keeps room for the longest one, even if none of the steps here has it.
struct StepLengths {
  std::vector<std::vector<int64_t>> samples;
  int64_t longest = 0;
  /// True if samples that no run takes are shortened: if --rank-memory is given, or if
  /// the model has no positions. Otherwise plans keep such samples, and their
  /// memory does not fit the device.
  bool shortens = false;

  /// Cuts samples at `limit` tokens. Returns a note that says so, or nothing if no
  /// sample is longer.
  std::string shorten(int64_t limit);
};

/// Puts samples into mini-batches in their order. Each mini-batch is as full as
/// whole samples make it. Samples longer than the model's positions are
/// truncated.
StepLengths dealSteps(std::vector<int64_t> lengths, int64_t positions,
                      const PlanFlags &flags);

struct NamedRequest {
  std::string name;
  PlanRequest request; ///< without a strategy
};

/// Returns a request for each entry of --compare, with each value of
/// --tokens-per-micro-batch and --recompute. If an option has several values,
/// names contain the value.
StatusOr<std::vector<NamedRequest>> requestsOf(const PlanFlags &flags);

/// Outputs of plans beside their reports.
struct StepOutputs {
  bool hasTrace = false, hasSvg = false, hasPlanTimes = false; ///< wanted
  /// The first step that does not fit the devices is the last. There is no step
  /// if parameters and their state alone do not fit.
  bool endsWithoutRoom = false;
  bool isScreening = false; ///< SizedSteps::Asked::isScreening
  TraceWriter trace;        ///< all steps of a plan, one after another
  int processes = 0;        ///< of the trace so far
  PipelineSvg svg;          ///< first steps
};

/// Plans, verifies and simulates steps. `name` is the name of the plans in all outputs.
/// `look` sees each step, if given.
StatusOr<RunReport>
simulateSteps(const SizedSteps &sized, const StepLengths &steps,
              const SimulationOptions &conditions, const std::string &name,
              StepOutputs &outputs,
              const std::function<void(const VerifiedStep &)> &look = nullptr);

/// Plans, verifies and simulates steps of one strategy, with sizes as in a run
/// (SizedSteps.h). A plan that does not fit the devices is still made, to
/// report its memory. `name` is the name of the plans in all outputs.
StatusOr<RunReport> planSteps(const CostModel &costs, PlanRequest request,
                              StepLengths steps,
                              const SimulationOptions &conditions,
                              const std::string &name, StepOutputs &outputs,
                              std::vector<std::string> &notes);

/// Prints the reports to standard output, the best first: as a table, or with
/// --json as objects in the given order. Both have the errors of `slices` too; the table
/// only with --report.
void print(const Reports &reports, int64_t memory, const PlanFlags &flags,
           const std::vector<ContextErrors> &slices = {});

/// Returns how well the costs of slices are predicted, if the table has some and --report
/// or --json asks for it.
std::vector<ContextErrors> sliceErrors(const CostTable &table,
                                       const PlanFlags &flags);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PLAYEDSTEPS_H
