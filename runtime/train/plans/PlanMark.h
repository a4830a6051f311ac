//===- PlanMark.h - How planners and executors find each other --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Keys of a store. All keys of a job begin with what makes its plans what they
// are, so that jobs share a server and planners started with other flags meet
// nobody. Plans and planners belong to one run, whose number its processes draw at
// their start: two runs with equal flags, or of another learning rate, take
// nothing from each other. The key of a plan says for which lengths it is.
//
//   PREFIX:run:SLOT             PlanMark of a run, by the process of rank 0
//   PREFIX:planners             how many planners wait for a run together
//   PREFIX:RUN:planners         how many plan for that run
//   PREFIX:RUN:planner:I        who is planner I of them
//   PREFIX:RUN:ended            that run is over
//   PREFIX:RUN:STEP:RANK:HASH   a PlanEntry
//
// Planner I of N joins the first run that has no planner I and no planners of
// another number, so all N join one run.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANMARK_H
#define DYNA_RUNTIME_TRAIN_PLANMARK_H

#include "runtime/train/plans/PlanAhead.h"
#include "runtime/train/session/Session.h"

#include <chrono>
#include <map>

namespace dyna {

/// After which what nobody takes is forgotten, and after which planners are gone
/// that say nothing.
constexpr std::chrono::seconds plansAreKept = std::chrono::hours(24);
constexpr std::chrono::seconds plannersAreKept{30};
/// After which a run is gone that says nothing (RunBeacon.h), and how many may be
/// alike at a time.
constexpr std::chrono::seconds runsAreKept{30};
constexpr int kMostRuns = 16;

/// Where a run of executors stands.
struct PlanMark {
  /// Tells a run from those before it with the same flags.
  uint64_t run = 0;
  /// Planners may plan this step and the next `--plan-ahead`, theirs or the run's,
  /// whichever is more: a run asks for so many before its mark moves.
  int64_t step = 0;
  int64_t ahead = 0; ///< --plan-ahead of the run
  DataCursor cursor; ///< where that step's data begin

  std::string toJson() const;
  static StatusOr<PlanMark> fromJson(const std::string &text);
};

/// Follows the steps that the threads of a run's first process ask for, in whatever
/// order, and says where the run stands: planners plan nothing before its mark.
class RunPlace {
public:
  /// `ahead`: steps that wait at most (--plan-ahead).
  RunPlace(uint64_t run, int64_t ahead) : ahead_(ahead) {
    mark_.run = run;
    mark_.ahead = ahead;
  }
  /// Of the run's steps, the first; before any is wanted.
  void startAt(int64_t first) { first_ = first; }

  /// The plan of this step, whose data begin there, is wanted. Whether the mark
  /// has moved: it never goes back, and never passes a step that is still wanted.
  bool want(int64_t step, const DataCursor &begin);
  /// False until a mark can be told.
  bool isMarked() const { return isMarked_; }
  const PlanMark &mark() const { return mark_; }

private:
  const int64_t ahead_;
  int64_t first_ = 0;
  PlanMark mark_;
  bool isMarked_ = false;
  std::map<int64_t, DataCursor> begins_; ///< of steps that may be marked yet
};

/// A number that no other run or process has, on any machine; never 0.
uint64_t drawRun();

/// "dyna:0123456789abcdef"
std::string planPrefix(const Session &session);
/// PREFIX:RUN, with which the keys of one run begin.
std::string runPrefix(const std::string &prefix, uint64_t run);
std::string slotKey(const std::string &prefix, int slot);
/// Key of the number of planners, for a prefix or for a run.
std::string plannersKey(const std::string &prefix);
std::string plannerKey(const std::string &run, int64_t index);
std::string endedKey(const std::string &run);
std::string planKey(const std::string &run, const PlannedStep &step, int rank);

/// From "I/N": planner I, counted from 0, of N.
struct PlannerNumber {
  int64_t index = 0, count = 1;
};
StatusOr<PlannerNumber> parsePlannerNumber(const std::string &text);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANMARK_H
