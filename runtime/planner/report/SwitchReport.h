//===- SwitchReport.h - Compares a switch with bounds -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHREPORT_H
#define DYNA_RUNTIME_PLANNER_SWITCHREPORT_H

#include "runtime/planner/switch/SwitchBounds.h"
#include "runtime/planner/switch/SwitchOptions.h"
#include "runtime/planner/switch/SwitchTimes.h"

#include <string>
#include <vector>

namespace dyna {

struct SwitchReport {
  std::string name; ///< "dp=4 -> tp=4"
  SwitchTimes times;
  SwitchBounds bounds;
  int buckets = 0;
  /// Names and times, in the order of `switchBaselines()`.
  std::vector<std::pair<std::string, SwitchTimes>> baselines;
  double planSeconds = 0; ///< 0: not measured

  /// Returns the duration divided by its bound; 1 if nothing has to move.
  double overBound() const;
  /// Returns one JSON object on one line.
  std::string json() const;
};

/// Plans the switch and all baselines. Fails as `planSwitch` does.
StatusOr<SwitchReport> reportSwitch(std::string name,
                                    const std::vector<SwitchTensor> &tensors,
                                    const SwitchNetwork &network,
                                    const SwitchOptions &options = {});

/// Returns a table with a row for each report.
std::string describeSwitches(const std::vector<SwitchReport> &reports);
/// Describes bounds, bytes, baselines and the traffic between nodes of one
/// report.
std::string describeSwitch(const SwitchReport &report);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHREPORT_H
