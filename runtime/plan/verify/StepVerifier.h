//===- StepVerifier.h - Verifies the step of a run --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step with switches (StepPlan.h) must pass these rules beside those for the
// plan of each phase (PlanVerifier.h):
//
// - (P12) Phases. Every phase has another graph of the run, and the last one is
//   home. Every sample of the mini-batch is in one phase. All phases count the
//   same targets, and all train or all evaluate. Only home gathers and updates.
// - (P13) Switches. Every rank that takes part in a bucket starts it once, and
//   waits for it once. It starts values in the phase before the one that they
//   are for (the first phase starts its own), and gradients in their own phase.
//   No bucket starts before the data that it passes on have come, nor before
//   the data of its phase exist. A layer runs after the waits for all buckets
//   that bring its parameters. The gradients of a phase start after the wait
//   for those of the phase before, so that sums are the same in every run.
// - (P14) Gradients leave after all backwards have added to them and they are
//   reduced. They are back home, in the next phase at the latest, before home
//   reduces, measures or applies them. `checkUpdated` also requires that home
//   applies them, for steps that must not leave them for later.
//
// P9 and P10 hold for each phase by itself. P11 is verified for all of them
// together. A rank runs its starts one after another through all phases:
// messages, exchanges and buckets of switches. Each start ends when all its
// ranks have reached it. So two buckets that pass each other on some ranks are
// refused, wherever they are.
//
// P6 to P8 also hold for the memory of phases in a rank's region, by the table
// of StepMemory.h. Existing blocks have places, and nothing else has. Blocks
// that are alive at one time do not overlap, and all lie inside.
//
// The planning of the switch has verified that each piece comes once, from a
// rank that has it (checkSwitch).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STEPVERIFIER_H
#define DYNA_RUNTIME_PLAN_STEPVERIFIER_H

#include "runtime/plan/graph/Turns.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/plan/verify/StepMemory.h"

#include <optional>

namespace dyna {

/// Place of a failure; -1 if no single place is wrong.
struct StepPosition {
  int phase = -1;
  PlanPosition at;
};

/// Verifies P14 for a step that has to update: home applies the gradients. P5 says that
/// all ranks do so, and once.
Status checkUpdated(const plan::StepPlan &step);

/// A step that passed the verifier.
///
/// Executors run only verified steps. To verify costs time, and no device
/// should wait for it. So steps are verified where they are made, ahead of the
/// devices, and this type shows it. There is no other constructor, and nothing
/// changes a step afterwards. A step of a run with one strategy has one phase
/// (SwitchTable::ofOne).
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
    std::vector<int64_t> samples; ///< in the form of plan::Phase
    std::vector<int64_t> lengths; ///< tokens of these samples
    SwitchTable::PhaseSwitches switches;
    Turns turns; ///< of ranks that share devices
  };
  const std::vector<Phase> &phases() const { return phases_; }
  int phaseCount() const { return static_cast<int>(phases_.size()); }
  /// Returns the plan of the last phase, which is home's.
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
  /// Verifies the step for these `ranks`; without them, for all.
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
