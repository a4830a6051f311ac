//===- RepackList.h - Parses the value of --repack --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The value of --repack lists the steps at which a run changes its ranks or its
// strategy.
//
//     6@3000; 4@5000; dp=2,pp=2@7000
//     auto; 8@9000
//     auto=per-rank@4000
//
// The number after @ is the number of steps that are done before the change. A number
// alone is a number of ranks. `auto` and `auto=GOAL` let the run choose the ranks
// (PackGoals.h). Without a step it chooses at the start and after each change of the
// model. Anything else is a strategy, in the words of --strategy.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_REPACKLIST_H
#define DYNA_RUNTIME_TRAIN_REPACKLIST_H

#include "runtime/elastic/pack/PackGoals.h"
#include "runtime/elastic/pack/PackStrategy.h"
#include "runtime/plan/model/Strategy.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dyna {

struct Repack {
  /// `step` of an entry that applies after every change of the model.
  static constexpr int64_t always = -1;

  int64_t step = 0;             ///< steps before the change
  int ranks = 0;                ///< 0: `strategy` gives the ranks
  std::string strategy;         ///< empty: the present one, packed into `ranks`
  std::optional<PackGoal> goal; ///< the run chooses the ranks
};

/// Parses the list. Steps are at least 1 and ascend. One entry may have no step:
/// it is the first one. An empty text has no entries.
StatusOr<std::vector<Repack>> parseRepacks(const std::string &text);

/// Fails if an entry of the list is due before `done` steps.
Status checkRepackSteps(const std::vector<Repack> &repacks, int64_t done);

/// Returns an entry, or a list, as text that parses to the same again.
std::string describeRepack(const Repack &repack);
std::string describeRepacks(const std::vector<Repack> &repacks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_REPACKLIST_H
