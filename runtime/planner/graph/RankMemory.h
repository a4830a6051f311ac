//===- RankMemory.h - Sizes the dynamic regions of ranks --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank's arena has a persistent part (parameters, gradients, optimizer state)
// and a dynamic region. Plans place the blocks of micro-batches in the region.
// With a larger region, stages run further ahead and less is recomputed. Memory
// beyond what plans can use would lie idle.
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
  std::vector<int64_t>
      most; ///< upper bound that plans of the same options can use
  bool areLimited() const { return bytes != most; }
};

/// Sizes the regions of arenas of at most `rankBytes` (-1: not limited), which
/// also hold `persistent`. Fails with ResourceExhausted, and the numbers, if a
/// rank has no room for the sequential form of its plans. With `atLeast` such a
/// rank gets that room in spite of the limit. O(ranks * parameters) with
/// limits.
StatusOr<DynamicRegions> sizeDynamicRegions(const Planner &planner,
                                            const PlanOptions &options,
                                            Persistent persistent,
                                            int64_t rankBytes,
                                            bool atLeast = false);

/// Computes the least regions of a strategy: those of the sequential form of
/// its plans. They depend on the tokens of micro-batches, and each is computed
/// once. Runs and searches use this class to find which samples fit. Not
/// thread-safe.
class LeastRegions {
public:
  /// `options` have everything except tokens. `planner` must outlive the
  /// object.
  LeastRegions(const Planner &planner, PlanOptions options, bool training)
      : planner_(planner), options_(std::move(options)), training_(training) {}

  /// Returns the least bytes by place in a replica (`indexInReplica`).
  /// Micro-batches of several samples have `microBatch` tokens, and single
  /// samples have `longest`. As Planner::leastDynamicBytes.
  StatusOr<std::vector<int64_t>> of(int64_t microBatch, int64_t longest);

  // The functions below have `room` bytes for the region of each rank of
  // `graph`. That is the planner's graph, or one that differs from it only in
  // ZeRO and in the numbering of ranks.

  StatusOr<bool> fit(const ExecutableGraph &graph,
                     const std::vector<int64_t> &room, int64_t microBatch,
                     int64_t longest);
  /// Returns the tokens of the largest micro-batches that fit, of several
  /// samples or one: 0 to `most`. O(log tokens) least regions.
  StatusOr<int64_t> largestMicroBatch(const ExecutableGraph &graph,
                                      const std::vector<int64_t> &room,
                                      int64_t most);
  /// Returns the tokens of the longest sample that fits alone in its
  /// micro-batch: `microBatch` to `most`. A result of `microBatch` may itself
  /// not fit. O(log tokens) least regions.
  StatusOr<int64_t> longestSample(const ExecutableGraph &graph,
                                  const std::vector<int64_t> &room,
                                  int64_t microBatch, int64_t most);
  /// Returns true if a run accepts a sample of `tokens`. Its micro-batches have
  /// `microBatch` tokens, or fewer if no more fit. Equals `tokens <=
  /// longestSample(largest micro-batch)`, but computes fewer least regions if
  /// it is true. With less `room` fewer samples are accepted.
  StatusOr<bool> hold(const ExecutableGraph &graph,
                      const std::vector<int64_t> &room, int64_t microBatch,
                      int64_t tokens);

private:
  const Planner &planner_;
  PlanOptions options_;
  bool training_;
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> known_;
};

/// Returns the tokens of the longest sample that fits the same arenas alone in
/// its micro-batch. The result is between `options.maxTokensPerMicroBatch`,
/// with which sizing may still fail, and `options.mostTokens()`. O(log tokens)
/// least regions.
StatusOr<int64_t> longestSampleWithin(const Planner &planner,
                                      const PlanOptions &options,
                                      Persistent persistent, int64_t rankBytes);

/// Returns the tokens of the largest micro-batches, of several samples or one,
/// that fit the same arenas: 0 to `options.maxTokensPerMicroBatch`. O(log
/// tokens) least regions.
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
