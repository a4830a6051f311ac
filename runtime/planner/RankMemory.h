//===- RankMemory.h - How large the dynamic regions are ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's arena is what it holds all the time (parameters, gradients, state of
// the optimizer) and a dynamic region, in which plans place what micro-batches
// take. The more of it there is, the further stages run ahead and the less is
// computed again; beyond what plans can use at most, it would lie idle.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_RANKMEMORY_H
#define DYNA_RUNTIME_PLANNER_RANKMEMORY_H

#include "runtime/plan/PersistentLayout.h"
#include "runtime/planner/Planner.h"

namespace dyna {

struct DynamicRegions {
  std::vector<int64_t> bytes; ///< of each rank
  std::vector<int64_t> most;  ///< that plans of the same options can use
  bool areLimited() const { return bytes != most; }
};

/// For arenas of at most `rankBytes` (-1: not limited), which hold `persistent`.
/// Fails (ResourceExhausted) where a rank has not room for the sequential form
/// of its plans, with the numbers; with `atLeast` such a rank gets that room
/// all the same. O(ranks * parameters), with limits.
StatusOr<DynamicRegions> sizeDynamicRegions(const Planner &planner,
                                            const PlanOptions &options,
                                            Persistent persistent,
                                            int64_t rankBytes,
                                            bool atLeast = false);

/// Tokens of the longest sample, alone in its micro-batch, with which the same
/// arenas would do: between `options.maxTokensPerMicroBatch`, of which the above
/// may still fail, and `options.mostTokens()`. O(log tokens) least regions.
StatusOr<int64_t> longestSampleWithin(const Planner &planner,
                                      const PlanOptions &options,
                                      Persistent persistent, int64_t rankBytes);

/// Tokens of the largest micro-batches, of several samples or one, with which
/// they would do: 0 to `options.maxTokensPerMicroBatch`. O(log tokens) least
/// regions.
StatusOr<int64_t> largestMicroBatchWithin(const Planner &planner,
                                          const PlanOptions &options,
                                          Persistent persistent,
                                          int64_t rankBytes);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_RANKMEMORY_H
