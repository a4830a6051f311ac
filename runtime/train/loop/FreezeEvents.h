//===- FreezeEvents.h - Freezes layers while a run trains -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Events of --freeze. An event is between two steps. It replaces the graphs by those of a
// model with other layers frozen. A save between the two
// steps may be before the event or behind it. It says which layers are frozen, and the
// events that are left.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_FREEZEEVENTS_H
#define DYNA_RUNTIME_TRAIN_FREEZEEVENTS_H

#include "runtime/train/flags/FreezeList.h"
#include "runtime/train/session/Checkpointing.h"
#include "runtime/train/session/Session.h"

#include <memory>
#include <optional>

namespace dyna {

/// Checks --freeze before a session is opened, and notes in the session what a resumed run
/// had frozen. `resumed` is null without --resume.
Status setFrozen(const Model &model, const TrainOptions &options,
                 const RunState *resumed, Session &session);

class FreezeEvents {
public:
  /// `session` must outlive it. A session begins with no layer frozen. What a resumed run
  /// had frozen (Session::frozenBefore) is frozen before its first step.
  /// `norms` are those of a checkpoint.
  explicit FreezeEvents(Session &session, std::vector<double> norms = {});

  /// Returns true if the run has frozen layers, or will have some.
  bool isOn() const;
  /// Returns the layers that are frozen from a step on, if others are now.
  StatusOr<std::optional<FrozenLayers>> next(int64_t step) const;
  /// Returns the step of the next event from this one on; -1 if there is none.
  int64_t nextStep(int64_t step) const;
  /// Returns true if the event before this step needs the norms of the step before.
  bool needsNorms(int64_t step) const;
  /// Notes the squared norms of the gradients of a step, by layer.
  void sawNorms(const std::vector<double> &squares);
  /// Returns the norms that a checkpoint needs so that the event before a step can be
  /// repeated; empty if it needs none.
  std::vector<double> savedNorms(int64_t step) const {
    return needsNorms(step) ? norms_ : std::vector<double>();
  }
  /// Leaves out the events up to this step, which are done.
  void end(int64_t step);
  /// Notes that these layers are frozen now.
  void froze(FrozenLayers layers);

  /// Returns the layers that a checkpoint names: those that are frozen, or are to be before
  /// anything else.
  std::string saved() const;
  /// Returns the metrics record of what was frozen after so many steps.
  std::string record(int64_t step) const;
  /// Returns what is frozen, for people.
  std::string describe() const;

private:
  Session &session_;
  FrozenLayers now_;
  std::vector<double> norms_; ///< of the last step that was counted, by layer
  FrozenLayers wanted_; ///< once a resumed run has gone over to it, `now_`
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_FREEZEEVENTS_H
