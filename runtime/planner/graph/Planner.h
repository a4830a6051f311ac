//===- Planner.h - Plans the mini-batches of a strategy ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Samples become micro-batches of replicas by a named rule (batching/Batchings.h),
// and every stage's program is written by the schedule. Offsets are chosen by
// `placeBlocks`, so that `dynamic_bytes` is exactly what a program needs. The
// ranks of one stage and replica that differ only in their tensor-parallel
// coordinate have one program, but for the ranks of their peers.
//
// On one rank, a mini-batch is
//
//     for each window of `inFlight` micro-batches
//       each: LOAD, FORWARD 0 .. L-1
//       each: (RECOMPUTE) BACKWARD L-1 .. 0, each followed by FREE
//     GRAD_NORM and then UPDATE of each layer that owns parameters
//
// With `splitBackward`, BACKWARD is BACKWARD_INPUT, and the BACKWARD_WEIGHTs of
// a micro-batch follow after all of them. On several ranks, messages and
// exchanges come in between; see PipelineSchedule.h and ProgramWriter.h.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANNER_H
#define DYNA_RUNTIME_PLANNER_PLANNER_H

#include "runtime/planner/graph/PlanWriter.h"
#include "runtime/planner/write/PipelineSchedule.h"

namespace dyna {

/// Expectations of the costs for the pipeline of one replica.
struct ExpectedPipeline {
  PipelineProblem problem;
  PipelineSchedule schedule;
};

class Planner {
public:
  /// Pipelines are ordered by what `costs` expects of their layers. The graph's
  /// model, which is that of the costs too, must outlive the planner.
  Planner(ExecutableGraph graph, CostModel costs);
  /// Makes a planner with estimated costs.
  explicit Planner(const ExecutableGraph &graph);
  /// Makes a planner for one rank, with estimated costs.
  explicit Planner(const Model &model);

  const ExecutableGraph &graph() const { return graph_; }
  const CostModel &costs() const { return costs_; }

  /// `lengths[i]`: tokens of sample i, which its segment may exceed, where the
  /// batching pads; `targetTokens`: targets of all together.
  StatusOr<plan::Plan> training(const std::vector<int64_t> &lengths,
                                int64_t targetTokens,
                                const PlanOptions &options) const;
  /// Estimates the seconds of such a step without making its plan (estimateStep in
  /// PlanCandidates.h).
  StatusOr<double> estimateStep(const std::vector<int64_t> &lengths,
                                const PlanOptions &options) const;
  /// Plans EVALUATE in the same way: losses only, never padded, to compare
  /// steps.
  StatusOr<plan::Plan> evaluation(const std::vector<int64_t> &lengths,
                                  int64_t targetTokens,
                                  const PlanOptions &options) const;
  // The steps of these two functions, for callers that read or change what is
  // between. A plan from `cut`, passed through `schedule` and
  // `orderCommunication` with the same options, equals theirs byte for byte.

  /// Returns the micro-batches of a plan, without programs.
  StatusOr<plan::Plan> cut(const std::vector<int64_t> &lengths,
                           int64_t targetTokens, const PlanOptions &options,
                           bool trains) const;
  /// Replaces micro-batches of whole samples by their slices, as `options.slices` says.
  /// `auto` compares complete plans, simulated and placed within the limits.
  /// Fails with InvalidArgument if some are sliced already, or cannot be.
  StatusOr<plan::Plan> slice(plan::Plan plan, const PlanOptions &options,
                             bool trains) const;
  /// Programs that compute and exchange nothing, in the order of the schedule that
  /// fits the limits; `fallback` where it is another than asked for. Of `plan`,
  /// which P1 and P2 hold for, only the micro-batches count.
  StatusOr<plan::Plan> schedule(plan::Plan plan, const PlanOptions &options,
                                bool trains) const;
  /// The whole programs for what those of `plan` compute: messages, exchanges of
  /// parameters, updates and places, whatever of these it has already. Options
  /// for how backward is split and what is computed again are not looked at: the
  /// programs say that. Fails where they do not run every micro-batch through
  /// all stages, in forwards and backwards in one piece. P1 and P2 hold for it.
  StatusOr<plan::Plan> orderCommunication(const plan::Plan &plan,
                                          const PlanOptions &options) const;
  /// Returns the expected times of items and messages of such a plan, by
  /// replica.
  StatusOr<std::vector<ExpectedPipeline>>
  expect(const plan::Plan &plan, const PlanOptions &options) const;

  /// Casts the masters that each rank updates into the compute type; empty
  /// programs where these are the same.
  StatusOr<plan::Plan> cast() const;
  /// Gradients that are there already (a plan with `update` off leaves them):
  /// their reduction, norm and update alone.
  StatusOr<plan::Plan> update() const;

  /// Bytes of each rank's dynamic region that are enough for every plan made
  /// with these options: training (if `training`), evaluation and cast.
  StatusOr<std::vector<int64_t>> largestDynamicBytes(const PlanOptions &options,
                                                     bool training) const;
  /// Returns the bytes of each rank with which every mini-batch has a plan: its
  /// sequential form.
  StatusOr<std::vector<int64_t>> leastDynamicBytes(const PlanOptions &options,
                                                   bool training) const;

private:
  PlanWriter writer() const { return PlanWriter(graph_, costs_); }
  /// Reads what a plan's programs compute. The choice becomes the one that they have.
  StatusOr<ComputeOrder> readOrder(const plan::Plan &plan,
                                   PlanChoice &choice) const;

  ExecutableGraph graph_;
  CostModel costs_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANNER_H
