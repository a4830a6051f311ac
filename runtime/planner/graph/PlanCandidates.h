//===- PlanCandidates.h - Tries candidate plans of a step -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cuts, orders and recomputation of a step can be chosen in several ways. A candidate is
// one of them, and all candidates of a step are one table:
//
//     round 0    the schedule that is asked for and, if it searches orders, simple ones;
//                with chosen recomputation also fixed modes, and other cuts
//     round 1    a schedule that adapts to memory
//     round 2    one micro-batch after another, with all recomputed if that is chosen
//
// One loop tries them. Placed blocks tell if a plan fits, and its simulated programs how
// long it takes. Of the candidates of a round that fit, the shortest wins, then the
// first. A later round is only tried if none of the rounds before fits.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANCANDIDATES_H
#define DYNA_RUNTIME_PLANNER_PLANCANDIDATES_H

#include "runtime/planner/graph/PlanWriter.h"

#include <vector>

namespace dyna {

/// One way to plan a step.
struct PlanCandidate {
  PlanChoice choice;
  int cut = 0;   ///< index of its micro-batches
  int round = 0; ///< only candidates of one round are compared
  /// True if it has another schedule than the requested one, which plans name.
  bool isFallback = false;
};

/// Returns options with one mode everywhere.
PlanOptions withMode(PlanOptions options, plan::Recompute mode);

struct TriedPlan {
  plan::Plan plan;
  double seconds = PlanWriter::never; ///< simulated, if candidates are compared
};

/// Largest number of cuts into slices that become complete plans.
constexpr size_t mostComparedSlices = 2;

/// Modes of recomputation, by the amount of recomputation, least first.
constexpr plan::Recompute allModes[] = {
    plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL};

/// Adds the candidates of the first round that train on micro-batches number `cut`.
void addTraining(const PlanWriter &writer, const PlanOptions &options, int cut,
                 std::vector<PlanCandidate> &table);

/// Tries a table of candidates and returns the shortest plan of the first round in which
/// one fits. `cuts` has the micro-batches that candidates number.
StatusOr<TriedPlan> tryAll(const PlanWriter &writer,
                           const std::vector<plan::Plan> &cuts,
                           const std::vector<PlanCandidate> &table,
                           bool trains);

/// Returns the schedules of a training step that are tried for options: theirs, and
/// simple ones if theirs searches orders.
std::vector<PlanChoice> withSimpleOrders(const PlanWriter &writer,
                                         const PlanOptions &options);

/// Returns the choice of the last round. It needs least memory, and fits the limits that
/// `leastDynamicBytes` of these options returns.
PlanChoice lastResort(PlanOptions options);

/// Micro-batches of a plan, or the whole plan.
struct PlanCut {
  plan::Plan plan;
  bool isComplete = false; ///< it has its programs
};

/// Cuts a mini-batch by one choice of recomputation, without programs.
StatusOr<plan::Plan> cutBy(const PlanWriter &writer,
                           const std::vector<int64_t> &lengths,
                           int64_t targetTokens, const PlanOptions &options,
                           bool trains);

/// Returns the best plan of all rounds for given micro-batches. Fails with
/// ResourceExhausted if nothing fits.
StatusOr<plan::Plan> completePlan(const PlanWriter &writer,
                                  const plan::Plan &cut,
                                  const PlanOptions &options, bool trains);

/// Estimates the seconds of a training step: those of the pipeline of its busiest
/// replica, within the limits, without reductions and updates. It cuts the mini-batch and
/// chooses modes and slices as plans do, but writes and places no program. Smaller
/// micro-batches are not tried. Returns infinity if no order fits. Fails as cutStep.
StatusOr<double> estimateStep(const PlanWriter &writer,
                              const std::vector<int64_t> &lengths,
                              const PlanOptions &options);

/// Fails if options contradict the model or the number of ranks.
Status checkOptions(const Model &model, int ranks, const PlanOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANCANDIDATES_H
