//===- Counts.h - Counts the work, memory and traffic of every rank -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Correct results do not show that a strategy shares the work: every rank could
// do all of it. `--counts` writes what each rank computed, held and sent. Tests
// compare this with the formulas of docs/strategies-counts.md.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_COUNTS_H
#define DYNA_RUNTIME_TRAIN_COUNTS_H

#include "runtime/executor/run/RankTeam.h"

#include <string>
#include <vector>

namespace dyna {

class RankCounts {
public:
  /// Adds what the ranks of this process did in the last run of a plan.
  void add(const RankTeam &ranks);
  /// Returns JSON with one object per rank of this process.
  std::string toJson(RankTeam &ranks) const;

private:
  std::vector<StepResult> sums_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_COUNTS_H
