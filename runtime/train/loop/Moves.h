//===- Moves.h - Decides when a run goes over to other graphs ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Between two steps a trainer asks which strategy comes next. All processes get
// the same answer, because it depends only on what they have in common.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_MOVES_H
#define DYNA_RUNTIME_TRAIN_MOVES_H

#include "runtime/train/flags/RepackList.h"
#include "runtime/train/open/NextGraphs.h"

#include <optional>

namespace dyna {

class Moves {
public:
  /// `session` must outlive it.
  explicit Moves(Session &session) : session_(session) {}

  /// Returns the goal of an entry of --repack that is due after `step` steps, or
  /// nothing.
  std::optional<PackGoal> goalAt(int64_t step) const;
  /// Returns the goal that holds after every change of the model, or nothing.
  std::optional<PackGoal> goal() const { return goalAt(Repack::always); }
  /// Returns true if a remaining entry has a goal.
  bool hasGoal() const;

  /// Returns the strategy that the run goes over to after `step` steps, or
  /// nothing. Fails if that is not possible from the present strategy.
  StatusOr<std::optional<NextStrategy>> next(int64_t step) const;

  /// Returns the step of the next entry of --repack from this step on; -1 if
  /// there is none.
  int64_t nextStep(int64_t step) const;

  /// Removes the entry of --repack of that step, once it is done or refused. A
  /// checkpoint saves the remaining entries.
  void end(int64_t step);

private:
  Session &session_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_MOVES_H
