//===- Planner.h - The plan of every mini-batch of a strategy -*- C++ -*-===//
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

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/write/PipelineSchedule.h"

#include <functional>

namespace dyna {

class ProgramWriter;
struct ComputeOrder;

/// What the costs expect of the pipeline of one replica.
struct ExpectedPipeline {
  PipelineProblem problem;
  PipelineSchedule schedule;
};

class Planner {
public:
  /// Pipelines are ordered by what `costs` expects of their layers. The graph's
  /// model, which is that of the costs too, must outlive the planner.
  Planner(ExecutableGraph graph, CostModel costs);
  /// With estimated costs.
  explicit Planner(const ExecutableGraph &graph);
  /// One rank.
  explicit Planner(const Model &model);

  const ExecutableGraph &graph() const { return graph_; }
  const CostModel &costs() const { return costs_; }

  /// `lengths[i]`: tokens of sample i, which its segment may exceed, where the
  /// batching pads; `targetTokens`: targets of all together.
  StatusOr<plan::Plan> training(const std::vector<int64_t> &lengths,
                                int64_t targetTokens,
                                const PlanOptions &options) const;
  /// The same for EVALUATE: losses only, never padded, which is for comparing
  /// steps.
  StatusOr<plan::Plan> evaluation(const std::vector<int64_t> &lengths,
                                  int64_t targetTokens,
                                  const PlanOptions &options) const;
  // What these two consist of, for who looks at what is between, or changes it: a
  // plan from `cut`, passed through `schedule` and `orderCommunication` with the
  // same options, is theirs byte for byte.

  /// Micro-batches, and no programs.
  StatusOr<plan::Plan> cut(const std::vector<int64_t> &lengths,
                           int64_t targetTokens, const PlanOptions &options,
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
                                          PlanOptions options) const;
  /// By replica, when items and messages of such a plan are expected.
  StatusOr<std::vector<ExpectedPipeline>> expect(const plan::Plan &plan,
                                                 PlanOptions options) const;

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
  /// With so many there is a plan, whatever the lengths: its sequential form.
  StatusOr<std::vector<int64_t>> leastDynamicBytes(const PlanOptions &options,
                                                   bool training) const;

private:
  /// Empty programs of all ranks.
  plan::Plan empty() const;
  /// `body(rank)` for those of the first replicas, until one fails.
  template <typename Body> Status forRanks(int replicas, Body body) const;
  StatusOr<plan::Plan> start(const std::vector<int64_t> &lengths,
                             int64_t targetTokens, const PlanOptions &options,
                             bool trains) const;
  /// A plan of micro-batches, with the programs of the first schedule that fits.
  StatusOr<plan::Plan> complete(const plan::Plan &empty,
                                const PlanOptions &options, bool trains) const;
  /// What a plan's programs compute; the options become those that they have.
  StatusOr<ComputeOrder> readOrder(const plan::Plan &plan,
                                   PlanOptions &options) const;
  /// Fills in the programs of a plan of micro-batches. Fails with
  /// ResourceExhausted where this schedule does not fit.
  Status fill(plan::Plan &plan, const PlanOptions &options, bool trains) const;
  /// The same of a training step, for the shortest, played (PlanTimes.h), of the
  /// plans that fit: with this order or, where it is searched, a simple one, which
  /// `fallback` then names; with the modes chosen, or without recomputation.
  Status fillFastest(plan::Plan &plan, const PlanOptions &options) const;
  /// The same, and what the step takes; infinity where nothing fits.
  StatusOr<double> fillAndPlay(plan::Plan &plan,
                               const PlanOptions &options) const;
  /// These, and for a schedule that searches those of the simple orders that its
  /// plans are compared with.
  std::vector<PlanOptions> withSimpleOrders(const PlanOptions &options) const;
  /// One micro-batch after another, with the least memory there is to choose.
  static PlanOptions lastResort(PlanOptions options);
  struct Cut {
    plan::Plan plan;
    bool isFilled = false; ///< with the programs that `complete` would make
  };
  /// `cutOnce`, with smaller micro-batches where memory is so tight that with those
  /// stages mostly wait, if these are faster.
  StatusOr<Cut> cutFor(const std::vector<int64_t> &lengths,
                       int64_t targetTokens, const PlanOptions &options,
                       bool trains) const;
  /// `start`, for the recomputation with which the step is shortest, where that
  /// is to be chosen: more of it leaves room for larger micro-batches.
  StatusOr<Cut> cutOnce(const std::vector<int64_t> &lengths,
                        int64_t targetTokens, const PlanOptions &options,
                        bool trains) const;
  /// Of what was chosen by estimates, and of cuts for one mode everywhere, the one
  /// that is played in the least time.
  StatusOr<Cut>
  shortestOf(const plan::Plan &chosen,
             std::vector<std::pair<plan::Recompute, plan::Plan>> cuts,
             const PlanOptions &options) const;
  /// Of all replicas (ChooseRecompute.h), and the longest makespan.
  StatusOr<double> chooseModes(const plan::Plan &plan,
                               const std::vector<int64_t> &beside,
                               PlanOptions &options) const;
  /// What the stages of a replica take for its micro-batches, which have these
  /// numbers.
  using CostsOf = std::function<PipelineProblem(int, const std::vector<int> &)>;
  /// The programs of the first replicas. `held`, unless null, gets the most
  /// bytes of each rank that micro-batches keep by the problem's tables. With
  /// `given` the order is that one, not the schedule's.
  Status write(plan::Plan &plan, int replicas, const PlanOptions &options,
               bool trains, const CostsOf &costsOf,
               std::vector<int64_t> *held = nullptr,
               const ComputeOrder *given = nullptr) const;
  /// `beside`: bytes of each rank that are not for what micro-batches keep.
  Status writeEstimated(plan::Plan &plan, const PlanOptions &options,
                        bool trains, const std::vector<int64_t> &beside,
                        std::vector<int64_t> *held = nullptr) const;
  /// Where the schedule goes by memory, or what is computed again does: limits
  /// are made tighter until what they leave out fits too.
  Status writeWithin(plan::Plan &plan, PlanOptions options,
                     double atMost) const;
  Status writeWithinNumbers(plan::Plan &plan, PlanOptions &options,
                            double atMost, bool &isSlower) const;
  Status place(plan::Plan &plan, const PlanOptions &options) const;
  /// `largest`: for micro-batches of this size, whatever the plan's are.
  Status placeAll(plan::Plan &plan, int replicas, const Load *largest) const;
  class Largest;
  template <typename Write>
  StatusOr<plan::Plan> perRank(int replicas, Write write) const;
  StatusOr<plan::Plan> cast(int replicas) const;

  ExecutableGraph graph_;
  CostModel costs_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANNER_H
