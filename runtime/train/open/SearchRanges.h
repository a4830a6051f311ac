//===- SearchRanges.h - Searches strategies and ranges for a corpus -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SEARCHRANGES_H
#define DYNA_RUNTIME_TRAIN_SEARCHRANGES_H

#include "runtime/data/SampleIndex.h"
#include "runtime/plan/model/Model.h"
#include "runtime/train/flags/TrainOptions.h"

namespace dyna {

/// Result of a search: values for --strategies and --ranges.
struct FoundRanges {
  std::string strategies, ranges;
  std::vector<std::string>
      notes; ///< considered strategies, and the expected gain
};

/// Returns the number of ranks to search for. That is --ranks, else the number
/// of the launcher's processes, else the common number of all compiled
/// strategies. InvalidArgument if none is known.
StatusOr<int> searchedRanks(const Model &model, const TrainOptions &options);

/// Searches the strategies and their ranges with the shortest expected step for
/// such samples (StrategySearch.h). Strategies have the compiled tensor
/// degrees. Switches are included. Costs are those of the flags, and
/// --rank-memory limits memory. A sample that no strategy has room for counts
/// as truncated to the longest possible. Fails if nothing fits at all.
StatusOr<FoundRanges> searchRanges(const Model &model,
                                   const TrainOptions &options,
                                   const SampleStatistics &samples, int ranks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SEARCHRANGES_H
