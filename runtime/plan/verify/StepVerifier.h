//===- StepVerifier.h - Verifies the step of a run ---------------*- C++ -*-===//
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

#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/plan/verify/StepMemory.h"

#include <optional>

namespace dyna {

/// Where a proof failed: -1 where no one place is to blame.
struct StepPosition {
  int phase = -1;
  PlanPosition at;
};

/// Verifies P14 for a step that has to update: home applies the gradients. P5 says that
/// all ranks do so, and once.
Status checkUpdated(const plan::StepPlan &step);

/// A step that passed the verifier.
///
/// Executors run only verified steps. Verification takes time that no device should
/// wait for. So steps are verified where they are made, ahead of the devices, and this
/// type shows it. There is no other way to create one, and nothing changes it
/// afterwards. A step of a run with one strategy has one phase (SwitchTable::ofOne).
class VerifiedStep {
public:
  /// Verifies a step for a mini-batch of these lengths with `targets` targets (-1: not
  /// known; VerifyOptions). `regionLimits` has the bytes of each rank's region; empty:
  /// no limit. A failure sets `failedAt`, if given. The time is linear in instructions
  /// and in what each rank sends and gets.
  static StatusOr<VerifiedStep>
  prove(const SwitchTable &switches, plan::StepPlan step,
        std::vector<int64_t> lengths, int64_t targets,
        const std::vector<int64_t> &regionLimits,
        StepPosition *failedAt = nullptr, const UpdateRules &updates = {});

  /// Verifies the parts of a step that some ranks run: P1 to P8 and P12 to P14 of these
  /// ranks. The whole step was verified where it was made, and the parts came over a
  /// wire or from a disk. Only these ranks can run them.
  static StatusOr<VerifiedStep>
  proveRanks(const SwitchTable &switches, plan::StepPlan step,
             const std::vector<int> &ranks, std::vector<int64_t> lengths,
             int64_t targets, const std::vector<int64_t> &regionLimits,
             const UpdateRules &updates = {});

  struct Phase {
    plan::Plan plan;
    std::vector<int64_t> samples; ///< as plan::Phase has them
    std::vector<int64_t> lengths; ///< tokens of these samples
    SwitchTable::PhaseSwitches switches;
  };
  const std::vector<Phase> &phases() const { return phases_; }
  int phaseCount() const { return static_cast<int>(phases_.size()); }
  /// Plan of the last phase, which is home's.
  const plan::Plan &homePlan() const { return phases_.back().plan; }
  /// Returns the blocks that a rank has in its region, with their places.
  const std::vector<StepBlock> &blocks(int rank) const { return blocks_[rank]; }
  /// Returns a copy of the plan that was verified.
  plan::StepPlan toStepPlan() const;
  /// Tokens of each sample of the mini-batch.
  const std::vector<int64_t> &lengths() const { return lengths_; }
  /// Returns true if it has the programs of all ranks.
  bool isWhole() const { return !ranks_; }
  /// Returns true if it is verified for `rank`.
  bool covers(int rank) const;

private:
  /// Creates steps without verification. One test uses it to run plans that the
  /// verifier refuses.
  friend struct UnprovenStep;
  /// `ranks`: nothing: all.
  static StatusOr<VerifiedStep>
  proveFor(const SwitchTable &switches, plan::StepPlan step,
           const std::optional<std::vector<int>> &ranks,
           std::vector<int64_t> lengths, int64_t targets,
           const std::vector<int64_t> &regionLimits, const UpdateRules &updates,
           StepPosition &position);

  std::vector<Phase> phases_;
  std::vector<std::vector<StepBlock>> blocks_; ///< by rank
  std::vector<int64_t> lengths_;
  std::optional<std::vector<int>> ranks_; ///< empty: all ranks
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STEPVERIFIER_H
