//===- MoveDecider.h - Decides to move, stay or go back ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The loop of a run tells what happened, and asks between two steps:
//
//     decider.modelChanged()          weights were pruned, layers frozen, ...
//     decider.stepEnded(s, work)      seconds of a step, and how much work it had
//     decider.decide(problem)         stay, move to this cut, or go back
//     decider.moved(decision)         what was answered has been done, or
//     decider.refused()               could not be done
//
// States, and what leads from one to the next:
//
//     Measuring ── enough steps since the model changed ──> Settled
//     Settled   ── moved ──> Watching
//     Watching  ── enough steps, which are not slower ──> Settled
//     Watching  ── enough steps, which are slower: moved back, or too late for that
//                  ──> Barred
//     any       ── refused ──> Barred
//     any       ── modelChanged ──> Measuring
//
// Steps have different work, so seconds are divided by the work, in any unit. The median
// after a move is compared with that before it. The first step after a move is left out:
// it makes plans that later ones use again. A move back has a price too, and it happens
// only if the steps that are left earn it. The load per layer was wrong for this model
// then, so nothing moves until the model changes.
//
// There is no clock here. The same calls give the same answers, so processes that make
// the same calls agree.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_MOVEDECIDER_H
#define DYNA_RUNTIME_ELASTIC_MOVEDECIDER_H

#include "runtime/elastic/decide/BestMove.h"

#include <string>

namespace dyna {

enum class MoveAnswer : uint8_t { Stay, Move, GoBack };
enum class MoveState : uint8_t { Measuring, Settled, Watching, Barred };

/// Returns a word for reports, such as "go back" and "watching".
const char *wordOf(MoveAnswer answer);
const char *wordOf(MoveState state);

struct MoveOptions {
  /// Steps that are measured before a move, and after it. 0: nothing is measured, and
  /// no move is taken back.
  int measuredSteps = 5;
  /// Share by which steps are slower after a move that is taken back.
  double slowerShare = 0.02;
};

/// An answer with its reasons.
struct MoveDecision {
  MoveAnswer answer = MoveAnswer::Stay;
  MoveState state = MoveState::Measuring; ///< state when it was made
  std::vector<int> from;                  ///< the cut at that time
  WeighedMove move;                       ///< the cut that was weighed
  /// Medians of seconds per work, before and after the last move; 0 if not measured.
  double before = 0, after = 0;

  /// Returns a line for people, with the numbers.
  std::string describe() const;
};

class MoveDecider {
public:
  explicit MoveDecider(const MoveOptions &options = {});

  MoveState state() const { return state_; }

  /// Forgets steps before a change of the model, and allows moves again.
  void modelChanged();
  /// Counts a step. `work` is positive: tokens, or expected seconds.
  void stepEnded(double seconds, double work = 1);
  /// Answers for the best cut.
  MoveDecision decide(const MoveProblem &problem);
  /// Answers for one cut, as another policy has it.
  MoveDecision decide(const MoveProblem &problem, const std::vector<int> &cut);
  /// Tells that the cut of this decision, a move or a way back, is the present one.
  void moved(const MoveDecision &decision);
  /// Tells that a move was not possible.
  void refused();

private:
  /// Ends Watching if enough steps ran. Returns true if the last move is taken back.
  bool goesBack(const MoveProblem &problem, MoveDecision &decision);
  MoveDecision answer(const MoveProblem &problem, const std::vector<int> *cut);

  /// Steps of one model under one cut.
  struct Steps {
    std::vector<double> perWork; ///< seconds, the last steps of all
    double work = 0;             ///< of all steps
    int64_t count = 0;

    double meanWork() const;
    double median() const;
  };

  MoveOptions options_;
  MoveState state_ = MoveState::Measuring;
  Steps steps_;               ///< since the model or the cut changed
  double before_ = 0;         ///< median before the last move
  bool skipsStep_ = false;    ///< the first one after a move
  std::vector<int> previous_; ///< cut before the last move
};

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_MOVEDECIDER_H
