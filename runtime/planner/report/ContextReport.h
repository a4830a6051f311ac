//===- ContextReport.h - Reports how well slices are predicted --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compares two predictions of a token slice of i tokens after j earlier ones:
//
// - the cost model's, from points with context (runtime/cost/ContextFactors.h);
// - TeraPipe's (ICML'21, equation 9), t(i, 0) + a0 + a1 i + a2 j + a3 i j. The four numbers
//   are fitted to the same points (slice/FitContext.h). t(i, 0) is the cost model's.
//
// The error of a prediction is |predicted - measured| / measured. No point is predicted
// from itself.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CONTEXTREPORT_H
#define DYNA_RUNTIME_PLANNER_CONTEXTREPORT_H

#include "runtime/base/text/JsonWriter.h"
#include "runtime/cost/CostTable.h"

#include <array>
#include <string>
#include <vector>

namespace dyna {

/// A slice that was measured.
struct MeasuredSlice {
  CostKey function;
  MeasuredPoint point; ///< with context
};

struct ContextErrors {
  CostKey function;
  int points = 0; ///< number of predicted points
  double tableMean = 0, tableLargest = 0;
  double fitMean = 0, fitLargest = 0;
  std::array<double, 4> numbers = {0, 0, 0, 0}; ///< a0 to a3, of all points
};

/// Predicts each point with context from the other points of its function. Functions whose
/// points do not determine the four numbers are left out. O(points^2) for each function.
std::vector<ContextErrors> contextErrors(const CostTable &table);

/// Returns the errors for slices that are not in the table. Each is predicted from all
/// points of the table.
std::vector<ContextErrors>
contextErrors(const CostTable &table,
              const std::vector<MeasuredSlice> &heldOut);

JsonArray contextJson(const std::vector<ContextErrors> &errors);

/// Returns one line for people.
std::string describeContext(const ContextErrors &errors);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CONTEXTREPORT_H
