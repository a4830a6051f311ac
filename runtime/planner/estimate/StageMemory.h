//===- StageMemory.h - Estimates memory of stages ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STAGEMEMORY_H
#define DYNA_RUNTIME_PLANNER_STAGEMEMORY_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/order/schedules/PipelineProblem.h"
#include "runtime/planner/request/PlanChoice.h"

namespace dyna {

/// Fills in what the micro-batches of these numbers hold on each stage: kept
/// and late blocks; everything else is small.
///
/// The last backward of a bundle adds sums of gradients while its kept bytes are still
/// there. Schedules that go by memory reserve them from the forward on, so that each
/// backward can run. Fixed orders do not reserve. With `beside` the bytes of that backward
/// go there, by stage, and not to `kept`.
void holdBlocks(PipelineProblem &problem, const ExecutableGraph &graph,
                const plan::Plan &plan, const std::vector<int> &microBatches,
                const PlanChoice &choice,
                PipelineProblem::Bytes *beside = nullptr);

/// Fills in the limits of a replica's stages: the smallest dynamic limit of a
/// stage's ranks, less each rank's bytes in `beside`. Also fills in the number
/// of micro-batches that they may hold.
void limitStages(PipelineProblem &problem, const ExecutableGraph &graph,
                 int replica, const PlanChoice &choice,
                 const std::vector<int64_t> &beside);

/// Bytes that a training micro-batch of any load holds from forward to backward, on the
/// stage that is nearest to its limit. The limits are `options.dynamicLimits`, which
/// must not be empty. Bytes are scaled to the stage with the smallest limit. They leave
/// out the rounding of each block. So they are linear in rounded rows and pairs, and
/// never above those of `holdBlocks`.
class HeldBytes {
public:
  /// Computes the tables for the modes of `options.recompute`. O(layers *
  /// tiers).
  HeldBytes(const ExecutableGraph &graph, const PlanOptions &options);
  int64_t limit() const { return limit_; }
  /// Returns the bytes of a load on its stage. They never fall if a count of
  /// the load rises. Pairs count only if scores are kept. O(1) if all stages
  /// are alike, at most O(stages).
  int64_t of(const Load &load) const;

private:
  /// Bytes for each row of its class, and for each pair.
  struct Row {
    double query = 0, key = 0, segment = 0, constant = 0, pair = 0;
    bool isAtMost(const Row &other) const {
      return query <= other.query && key <= other.key &&
             segment <= other.segment && constant <= other.constant &&
             pair <= other.pair;
    }
  };
  static void add(Row &row, const plan::LinearBytes &formula);
  void take(Row row, double scale);

  int64_t limit_ = 0;
  std::vector<Row> rows_; ///< rows that no other row covers
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STAGEMEMORY_H
