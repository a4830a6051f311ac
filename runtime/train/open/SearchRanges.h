//===- SearchRanges.h - Strategies that a corpus asks for -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SEARCHRANGES_H
#define DYNA_RUNTIME_TRAIN_SEARCHRANGES_H

#include "runtime/data/SampleIndex.h"
#include "runtime/plan/model/Model.h"
#include "runtime/train/flags/TrainOptions.h"

namespace dyna {

/// What the flags of these names would say.
struct FoundRanges {
  std::string strategies, ranges;
  std::vector<std::string> notes; ///< what was considered, and what it gains
};

/// The ranks to search for: --ranks, else those of the launcher's processes, else
/// those that all compiled strategies have; InvalidArgument where none says it.
StatusOr<int> searchedRanks(const Model &model, const TrainOptions &options);

/// The strategies over the compiled tensor degrees, and the lengths that each
/// takes, whose expected step is the shortest for samples as these, switches
/// included (StrategySearch.h): by the costs of the flags, within --rank-memory.
/// Samples that none of so many ranks has room for count as cut to what one has.
/// Fails where there is room for none at all.
StatusOr<FoundRanges> searchRanges(const Model &model,
                                   const TrainOptions &options,
                                   const SampleStatistics &samples, int ranks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SEARCHRANGES_H
