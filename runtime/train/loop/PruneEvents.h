//===- PruneEvents.h - Prunes weights while a run trains --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Events of --prune. An event is between two steps: `from=3000` means that step 3000, as
// metrics count steps, is the first with these weights. A save between the two steps is
// before the event. If the step behind an event was dropped, the save is behind the event,
// and says so. A resumed run does not repeat it.
//
// Events can need scores of weights (runtime/executor/step/Pruning.h). Steps add to them as
// long as an event is ahead. The step just before an event keeps gradients of pruned
// weights, if weights grow again. Its products with pruned weights are dense.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PRUNEEVENTS_H
#define DYNA_RUNTIME_TRAIN_PRUNEEVENTS_H

#include "runtime/executor/run/RankTeam.h"
#include "runtime/train/flags/PruneFlag.h"
#include "runtime/train/flags/TrainOptions.h"

#include <optional>
#include <string>

namespace dyna {

struct StepMetrics;

/// Gives masks, and scores if there is a need for them, to the parameters that --prune names; does nothing without the flag.
/// Called before graphs are made. Fails if --sparse-from is given and no layer accepts
/// sparse weights.
Status setMasks(Model &model, const TrainOptions &options);

class PruneEvents {
public:
  /// `options` have passed `resolveOptions`. `resumed` is what a saved run had pruned.
  PruneEvents(const TrainOptions &options, const Model &model,
              const PrunedSoFar &resumed);

  /// Returns true if the run has --prune.
  bool isOn() const { return flag_.has_value(); }
  /// Returns true if there is an event before the step, counted from 0.
  bool isDue(int64_t step) const {
    return flag_ && flag_->schedule.hasEvent(step + 1) && pruned_.event != step;
  }
  /// Returns true if the step, counted from 0, adds to the scores of weights.
  bool addsScores(int64_t step) const {
    return flag_ && flag_->isByGradient &&
           flag_->schedule.nextEvent(step + 2) >= 0;
  }
  /// Returns true if the step, counted from 0, keeps gradients of pruned weights.
  bool scoresPruned(int64_t step) const {
    return flag_ && flag_->regrow > 0 && flag_->schedule.hasEvent(step + 2);
  }
  /// Returns the first step, counted from 0, from this one on that has an event before
  /// it; -1 if there is none.
  int64_t nextDue(int64_t step) const {
    const int64_t next = flag_ ? flag_->schedule.nextEvent(step + 1) : -1;
    return next < 0 ? -1 : next - 1;
  }
  /// Prunes before a step. All processes call it, and no step is in flight. Fails on
  /// all of them if a weight is no number; nothing was changed then.
  Status prune(RankTeam &ranks, int64_t step);

  /// Counts work as far as heads or channels are left, in a run that is resumed. All
  /// processes call it.
  Status countUnits(RankTeam &ranks) const {
    return flag_ ? ranks.countUnits(flag_->structure) : Status::ok();
  }

  const PrunedSoFar &pruned() const { return pruned_; }
  /// Adds the pruning data of a step.
  void addTo(StepMetrics &metrics) const;

  /// Return lines for people: at the start, after the last event, and at the
  /// end.
  std::vector<std::string> describeStart(int64_t steps) const;
  std::string describeEvent() const;
  std::string describeEnd() const;

private:
  /// Notes which forms the weights of the first rank have.
  void countForms(RankTeam &ranks);

  std::optional<PruneFlag> flag_;
  int64_t parameters_ = 0, weights_ = 0; ///< numbers of masked ones
  int64_t scoreBytes_ = 0;               ///< of a weight
  int accepted_ = 0; ///< masked parameters that may have a sparse form
  double sparseFrom_ = 0;
  int sparse_ = 0; ///< parameters in sparse form, of the first rank here
  int64_t formBytes_ = 0;
  /// Returns the share of weights that are zero. Units are whole, so it may differ from
  /// the share that was asked for.
  double zeroShare() const;

  PrunedSoFar pruned_;
  int64_t lastStep_ = -1; ///< before which weights were last pruned, from 0
  double lastSeconds_ = 0;
  int64_t lastRegrown_ = 0, lastUnits_ = 0, lastSurvivingUnits_ = 0;
  int64_t events_ = 0;
  double seconds_ = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PRUNEEVENTS_H
