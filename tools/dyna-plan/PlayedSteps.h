//===- PlayedSteps.h - Steps, planned and played -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_PLAYEDSTEPS_H
#define DYNA_TOOLS_DYNA_PLAN_PLAYEDSTEPS_H

#include "runtime/planner/PlanReport.h"
#include "runtime/planner/Policy.h"
#include "runtime/sim/PlanTrace.h"
#include "tools/dyna-plan/CompareReports.h"
#include "tools/dyna-plan/PipelineSvg.h"
#include "tools/dyna-plan/PlanFlags.h"

#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// Tokens of the samples of each step.
using StepLengths = std::vector<std::vector<int64_t>>;

/// Mini-batches in the order of the samples, each as full as whole samples make
/// it; what is longer than the model's positions is cut.
StepLengths dealSteps(const std::vector<int64_t> &lengths, int64_t positions,
                      const PlanFlags &flags);

struct NamedRequest {
  std::string name;
  PlanRequest request; ///< without a strategy
};

/// One for each of what --compare lists, with each of --tokens-per-micro-batch and
/// of --recompute; where these are several, the name says which.
StatusOr<std::vector<NamedRequest>> requestsOf(const PlanFlags &flags,
                                               const StepLengths &steps);

/// What becomes of plans, beside their reports.
struct StepOutputs {
  bool hasTrace = false, hasSvg = false, hasPlanTimes = false; ///< wanted
  /// A step that the devices have no room for is the last, and there is none where
  /// parameters and their state take it all.
  bool endsWithoutRoom = false;
  TraceWriter trace; ///< all steps of a plan behind each other
  int processes = 0; ///< of the trace so far
  PipelineSvg svg;   ///< first steps
};

/// Plans, proves and plays every step; `notes` are those of the policy, `name`
/// what outputs call the plans.
StatusOr<PlanReport> planSteps(const CostModel &costs, PlanRequest request,
                               const StepLengths &steps,
                               const SimulationOptions &conditions,
                               const std::string &name, StepOutputs &outputs,
                               std::vector<std::string> &notes);

/// Prints the reports to standard output, the best first: as a table, or with
/// --json as objects in the given order.
void print(const Reports &reports, int64_t memory, const PlanFlags &flags);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_PLAYEDSTEPS_H
