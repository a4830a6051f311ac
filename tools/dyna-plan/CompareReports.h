//===- CompareReports.h - Ranks plans and explains the best -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_COMPAREREPORTS_H
#define DYNA_TOOLS_DYNA_PLAN_COMPAREREPORTS_H

#include "runtime/planner/report/PlanReport.h"

#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// Report of the plans of a run.
struct RunReport : PlanReport {
  /// Bytes that a rank of the run lacks. A run keeps room for full micro-batches
  /// of the longest samples, so it may lack memory for plans that fit. 0: none.
  int64_t lackingBytes = 0;
};

/// Reports of plans of the same steps, each with the name of its plan.
using Reports = std::vector<std::pair<std::string, RunReport>>;

/// Returns true if every rank has room. `memory`: bytes of a device, 0 if unknown.
bool fits(const RunReport &report, int64_t memory);

/// Says what a rank takes, or lacks, if `fits` is false.
std::string describeLack(const RunReport &report, int64_t memory);

/// Sorts by tokens per second, the fastest first. Plans that do not fit come last.
/// Plans that are equally fast keep their order.
Reports sortReports(Reports reports, int64_t memory);

/// Explains in one sentence why the first of sorted reports is the best. It
/// names what the next plan spends more on: bubble, recomputation, padding, or
/// other work of its busiest stage. It also names a faster plan that does not
/// fit. Returns an empty string for fewer than two reports, or if none fits.
std::string explainBest(const Reports &sorted, int64_t memory);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_COMPAREREPORTS_H
