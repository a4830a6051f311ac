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

#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/graph/Policy.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// What plans of a strategy need at least, their sequential form, by the tokens of
/// micro-batches; each number is worked out once, for as many questions as there are
/// about it. What a run has room for and what a search takes for such is asked
/// here. One thread at a time.
class LeastRegions {
public:
  /// Of options that say all but tokens. `planner` must outlive it.
  LeastRegions(const Planner &planner, PlanOptions options, bool training)
      : planner_(planner), options_(std::move(options)), training_(training) {}

  /// Bytes of a rank by its place in a replica (`indexInReplica`), for micro-batches
  /// of several samples with `microBatch` tokens, and single samples with `longest`.
  /// As Planner::leastDynamicBytes.
  StatusOr<std::vector<int64_t>> of(int64_t microBatch, int64_t longest);

  // Of `room` bytes for the region of each rank of `graph`: the planner's, or one
  // that differs from it in the numbering of ranks and ZeRO.

  StatusOr<bool> fit(const ExecutableGraph &graph,
                     const std::vector<int64_t> &room, int64_t microBatch,
                     int64_t longest);
  /// Tokens of the largest micro-batches, of several samples or one: 0 to `most`.
  /// O(log tokens) least regions.
  StatusOr<int64_t> largestMicroBatch(const ExecutableGraph &graph,
                                      const std::vector<int64_t> &room,
                                      int64_t most);
  /// Tokens of the longest sample, alone in its micro-batch: `microBatch`, with
  /// which it may still not fit, to `most`. O(log tokens) least regions.
  StatusOr<int64_t> longestSample(const ExecutableGraph &graph,
                                  const std::vector<int64_t> &room,
                                  int64_t microBatch, int64_t most);
  /// Whether a run whose micro-batches have `microBatch` tokens, or what there is
  /// room for, takes a sample of so many: `tokens <= longestSample(largest
  /// micro-batch)`, in few questions where it does. With `rooms` that hold less it
  /// holds no more.
  StatusOr<bool> hold(const ExecutableGraph &graph,
                      const std::vector<int64_t> &room, int64_t microBatch,
                      int64_t tokens);

private:
  const Planner &planner_;
  PlanOptions options_;
  bool training_;
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> known_;
};

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

/// Chooses again for a `request` that leaves the size of micro-batches open and led to
/// `options`. Takes the largest micro-batches for which arenas of `rankBytes` have room
/// beside `beside` bytes. Returns nothing if the size stays as it is, or if
/// nothing fits; sizing the regions then says what is missing. A note of the policy
/// names the limit, `flag`. Fails with InvalidArgument if the largest micro-batches have
/// too few tokens for the slices of `options`.
StatusOr<std::optional<Policy>>
limitPolicy(const Planner &planner, PlanRequest request,
            const PlanOptions &options, Persistent persistent,
            int64_t rankBytes, int64_t beside, const std::string &flag);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_RANKMEMORY_H
