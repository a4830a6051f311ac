//===- SliceReport.h - Describes the slices of a plan -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICEREPORT_H
#define DYNA_RUNTIME_PLANNER_SLICEREPORT_H

#include "runtime/base/text/JsonWriter.h"
#include "runtime/plan/program/Plan.h"
#include "runtime/sim/PlanWork.h"

#include <string>
#include <vector>

namespace dyna {

/// One slice of a sample.
struct ReportedSlice {
  int64_t tokens = 0;
  int64_t context = 0; ///< earlier tokens of the sample
  /// Seconds of its micro-batch in the functions of the rank that takes longest.
  /// Backward includes recomputation and weight gradients. The micro-batch may have
  /// slices of other samples too.
  double forward = 0, backward = 0;
};

/// A sample that is cut into slices.
struct ReportedCut {
  int64_t sample = 0; ///< index in the mini-batch
  int replica = 0;
  std::vector<ReportedSlice> slices; ///< in order of tokens

  int64_t tokens() const;
};

/// Returns the cuts of a plan, in the order of their first slices. Empty if no sample is
/// sliced. Linear in the instructions.
std::vector<ReportedCut> reportCuts(const plan::Plan &plan,
                                    const PlanWork &work);

JsonArray cutsJson(const std::vector<ReportedCut> &cuts);

/// Returns one line for each cut. Cuts with equal tokens share a line, and
/// lines after the first 16 are only counted.
std::string describeCuts(const std::vector<ReportedCut> &cuts);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICEREPORT_H
