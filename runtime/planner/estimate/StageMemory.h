//===- StageMemory.h - What micro-batches hold on their stages --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STAGEMEMORY_H
#define DYNA_RUNTIME_PLANNER_STAGEMEMORY_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/order/schedules/PipelineProblem.h"
#include "runtime/planner/request/PlanOptions.h"

namespace dyna {

/// Fills in what the micro-batches of these numbers hold on each stage: kept and
/// late blocks, of which all else is little.
void holdBlocks(PipelineProblem &problem, const ExecutableGraph &graph,
                const plan::Plan &plan, const std::vector<int> &microBatches,
                const PlanOptions &options);

/// Fills in the limits of a replica's stages: the least of the dynamic limits of
/// their ranks, less the bytes in `beside` of each rank; and how many
/// micro-batches they may hold.
void limitStages(PipelineProblem &problem, const ExecutableGraph &graph,
                 int replica, const PlanOptions &options,
                 const std::vector<int64_t> &beside);

/// What a training micro-batch of any shape holds from forward to backward, on the
/// stage where that is most beside its limit (`options.dynamicLimits`, which is
/// not empty), in bytes of the stage that has the smallest limit. What rounding up
/// adds to each block is left out, so that it is never above what `holdBlocks`
/// says, and linear in rounded tokens, samples and pairs.
class HeldBytes {
public:
  /// With the modes of `options.recompute`. O(layers * tiers).
  HeldBytes(const ExecutableGraph &graph, const PlanOptions &options);
  int64_t limit() const { return limit_; }
  /// `pairs` of a query and a key of one sample, which count where scores are kept.
  /// Neither falls where there are more tokens, samples or pairs. O(1) where
  /// stages are alike, at most O(stages).
  int64_t of(int64_t tokens, int64_t samples, int64_t pairs = 0) const;

private:
  struct Row {
    double token = 0, sample = 0, constant = 0, pair = 0;
    bool isAtMost(const Row &other) const {
      return token <= other.token && sample <= other.sample &&
             constant <= other.constant && pair <= other.pair;
    }
  };
  static void add(Row &row, const plan::LinearBytes &formula);
  void take(Row row, double scale);

  int64_t limit_ = 0;
  std::vector<Row> rows_; ///< none of which another covers
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STAGEMEMORY_H
