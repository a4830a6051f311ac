//===- StepVerifier.h - The proof of a step of several graphs ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What must hold of a step with switches (StepPlan.h) beside what holds of the
// plan of each phase (PlanVerifier.h):
//
// - (P12) every phase is of another graph of the run, the last of home; every
//   sample of the mini-batch is in one phase; all count the same targets, and all
//   train or all evaluate; only home gathers and updates;
// - (P13) every rank that takes part in a bucket starts it once, values in the
//   phase before the one that they are for (or in the first, if for that), and
//   gradients in their own, and waits for it once; none is started before what it
//   passes on has come, nor before what it sends on of its phase; a layer runs
//   when all buckets that bring its parameters have been waited for; the
//   gradients of a phase start when those of the phase before have been waited
//   for: sums are the same in every run;
// - (P14) gradients leave once all backwards have added to them and they are
//   reduced, and are back home, in the phase behind at the latest, before home
//   reduces, measures or applies them; that it does apply them is asked of steps
//   that are not to leave them (`checkUpdated`).
//
// P9 and P10 hold of each phase by itself. P11 is proven of all of them together:
// a rank starts one thing after another, messages, exchanges and buckets of
// switches, through all phases, and each ends when all that take part have come
// to it. So two buckets that pass each other on some ranks are refused, whatever
// they lie between.
//
// P6 to P8 hold for what phases have in a rank's region, too, by the table of
// StepMemory.h: places are stated of what there is, and of nothing else; what is
// alive at one time lies apart; all of it lies inside.
//
// That each piece comes once, from a rank that has it, was proven when the
// switch was planned (checkSwitch).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STEPVERIFIER_H
#define DYNA_RUNTIME_PLAN_STEPVERIFIER_H

#include "runtime/plan/verify/StepMemory.h"
#include "runtime/plan/verify/VerifiedPlan.h"

namespace dyna {

/// Where a proof failed: -1 where no one place is to blame.
struct StepPosition {
  int phase = -1;
  PlanPosition at;
};

/// P14 of a step that is to train, for who knows that: home applies the gradients.
/// That it does so once, and all ranks do or none does, holds of its plan (P5).
Status checkUpdated(const plan::StepPlan &step);

class VerifiedStep {
public:
  /// Proves everything for a mini-batch of these lengths with so many targets.
  /// `regionLimits`: of each rank's region; empty: not limited. `failedAt` is
  /// set by a failure, if given. Linear in instructions and, for each rank, in
  /// what it sends and gets.
  static StatusOr<VerifiedStep>
  prove(const SwitchTable &switches, plan::StepPlan step,
        const std::vector<int64_t> &lengths, int64_t targets,
        const std::vector<int64_t> &regionLimits,
        StepPosition *failedAt = nullptr, const UpdateRules &updates = {});

  /// The parts of a training step that some ranks run, as
  /// VerifiedPlan::proveRanks has them: P1 to P8 and P12 to P14 of these ranks,
  /// which alone can run it.
  static StatusOr<VerifiedStep>
  proveRanks(const SwitchTable &switches, plan::StepPlan step,
             const std::vector<int> &ranks, const std::vector<int64_t> &lengths,
             int64_t targets, const std::vector<int64_t> &regionLimits,
             const UpdateRules &updates = {});

  struct Phase {
    VerifiedPlan plan;
    std::vector<int64_t> samples; ///< as plan::Phase has them
    SwitchTable::PhaseSwitches switches;
  };
  const std::vector<Phase> &phases() const { return phases_; }
  int phaseCount() const { return static_cast<int>(phases_.size()); }
  /// What a rank has in its region, and where.
  const std::vector<StepBlock> &blocks(int rank) const { return blocks_[rank]; }
  /// What was proven.
  plan::StepPlan toStepPlan() const;
  /// Targets of the whole mini-batch.
  int64_t targets() const { return targets_; }

private:
  /// `ranks`: nothing: all.
  static StatusOr<VerifiedStep>
  proveFor(const SwitchTable &switches, plan::StepPlan step,
           const std::optional<std::vector<int>> &ranks,
           const std::vector<int64_t> &lengths, int64_t targets,
           const std::vector<int64_t> &regionLimits, const UpdateRules &updates,
           StepPosition &position);

  std::vector<Phase> phases_;
  std::vector<std::vector<StepBlock>> blocks_; ///< by rank
  int64_t targets_ = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STEPVERIFIER_H
