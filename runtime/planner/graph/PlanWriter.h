//===- PlanWriter.h - Writes and places the programs of a plan --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The writer turns the micro-batches of a plan into programs of its ranks, for one
// choice of schedule and recomputation. It places their blocks, and says if they fit.
// It compares no choices: PlanCandidates.h does.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANWRITER_H
#define DYNA_RUNTIME_PLANNER_PLANWRITER_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/request/PlanChoice.h"
#include "runtime/planner/write/ComputeOrder.h"
#include "runtime/planner/write/PipelineSchedule.h"

#include <functional>
#include <limits>
#include <vector>

namespace dyna {

/// Returns true if the order or the modes of a training step follow from the limits.
/// Only placing such a plan tells which.
bool goesByMemory(const PlanOptions &options);

/// Returns a load that is at least that of every micro-batch of several samples. With
/// `alone` it is also at least that of every sample alone. If they are sliced it is that
/// of the largest slice.
Load largestLoadOf(const Model &model, const PlanOptions &options, bool alone);

/// A plan without places.
struct WrittenPlan {
  plan::Plan plan;
  std::vector<int64_t> held; ///< most bytes that micro-batches keep, by rank
  double seconds = 0;        ///< simulated
};

class PlanWriter {
public:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// `graph` and `costs`, whose models are the same, must outlive the writer.
  PlanWriter(const ExecutableGraph &graph, const CostModel &costs)
      : graph_(graph), costs_(costs) {}

  const ExecutableGraph &graph() const { return graph_; }
  const CostModel &costs() const { return costs_; }

  /// Returns a plan without micro-batches, with an empty program for each rank.
  plan::Plan empty() const;
  /// Calls `body(rank)` for the ranks of the first replicas until one fails.
  Status forRanks(int replicas, const std::function<Status(int)> &body) const;

  /// Returns the seconds of the stages of a replica for its micro-batches, which have
  /// these numbers.
  using CostsOf = std::function<PipelineProblem(int, const std::vector<int> &)>;
  /// Writes the programs of the first replicas. `held`, if given, gets the most bytes of
  /// each rank that micro-batches keep by the problem's tables. With `given` the items
  /// have that order, not the schedule's.
  Status write(plan::Plan &plan, int replicas, const PlanChoice &choice,
               bool trains, const CostsOf &costsOf,
               std::vector<int64_t> *held = nullptr,
               const ComputeOrder *given = nullptr) const;
  /// Orders the items and messages of the first replicas, in these orders. A replica that
  /// shares devices with the one before it runs beside that one (`orderMirrored`).
  StatusOr<std::vector<PipelineSchedule>>
  orderReplicas(const std::vector<PipelineProblem> &problems,
                std::vector<StageOrders> orders, const PlanChoice &choice,
                bool trains) const;
  /// Writes all programs by the costs. `beside` has the bytes of each rank that are not
  /// for what micro-batches keep.
  Status writeEstimated(plan::Plan &plan, const PlanChoice &choice, bool trains,
                        const std::vector<int64_t> &beside,
                        std::vector<int64_t> *held = nullptr) const;
  /// Writes and places a training plan whose order or recomputation follows from the
  /// limits. Limits become tighter until what they leave out fits too. Returns
  /// ResourceExhausted if nothing fits, or if the plan takes `atMost` seconds or more.
  /// `first`, if given, is what `writeFirst` returned for this choice.
  Status writeWithin(plan::Plan &plan, PlanChoice choice, double atMost,
                     const WrittenPlan *first = nullptr) const;

  /// Writes and simulates such a plan, or one whose order does not go by limits. It is
  /// not placed, and may not fit. With less memory nothing is shorter. Fills in the
  /// modes of `choice` if they are to be chosen. Fails with ResourceExhausted if no
  /// order fits.
  StatusOr<WrittenPlan> writeFirst(const plan::Plan &cut,
                                   PlanChoice &choice) const;

  /// Places written programs. Returns ResourceExhausted if one exceeds its limit.
  Status place(plan::Plan &plan, const PlanChoice &choice) const;
  /// Places the programs of the first replicas, without limits. With `largest`,
  /// micro-batches count as that load, whatever they are.
  Status placeAll(plan::Plan &plan, int replicas, const Load *largest) const;

  /// Chooses the modes of all replicas (ChooseRecompute.h). Returns the longest makespan.
  StatusOr<double> chooseModes(const plan::Plan &plan,
                               const std::vector<int64_t> &beside,
                               PlanChoice &choice) const;

private:
  /// Writes the programs of a replica for micro-batches of these numbers.
  void writeReplica(plan::Plan &plan, int replica,
                    const PipelineSchedule &schedule,
                    const std::vector<int> &own, const PlanChoice &choice,
                    bool trains) const;
  Status writeWithinNumbers(plan::Plan &plan, PlanChoice &choice, double atMost,
                            const WrittenPlan *first, bool &isSlower) const;

  const ExecutableGraph &graph_;
  const CostModel &costs_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANWRITER_H
