//===- Counts.h - What every rank did, held and sent ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// That a strategy gives the right numbers does not show that it shares the
// work: every rank could do all of it. `--counts` writes, rank by rank, what is
// held against the formulas of docs/strategies-counts.md.
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
  /// One object per rank of this process.
  std::string toJson(RankTeam &ranks) const;

private:
  std::vector<StepResult> sums_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_COUNTS_H
