//===- PlanMark.h - Names the keys of a store of plans ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All keys of a job begin with a hash of everything that determines its plans.
// So jobs can share a server, and planners with other flags do not interfere.
// Plans and planners belong to one run, whose random number its processes draw
// at the start. So two runs with equal flags, or with another learning rate, do
// not share plans. The key of a plan has a hash of its lengths.
//
//     PREFIX:run:SLOT            PlanMark of a run, put by rank 0's process
//     PREFIX:planners            number of planners that wait for a run
//     PREFIX:RUN:planners        number of planners of that run
//     PREFIX:RUN:planner:I       identity of planner I
//     PREFIX:RUN:ended           exists when the run is over
//     PREFIX:RUN:STEP:RANK:HASH  a PlanEntry
//
// Planner I of N joins the first run that has no planner I and no planners of
// another number. So all N join one run.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANMARK_H
#define DYNA_RUNTIME_TRAIN_PLANMARK_H

#include "runtime/train/plans/PlanAhead.h"
#include "runtime/train/session/Session.h"

#include <chrono>
#include <map>

namespace dyna {

/// Time after which unused plans are deleted, and time after which a silent
/// planner counts as gone.
constexpr std::chrono::seconds plansAreKept = std::chrono::hours(24);
constexpr std::chrono::seconds plannersAreKept{30};
/// Time after which a silent run counts as gone (RunBeacon.h), and largest
/// number of runs with one prefix.
constexpr std::chrono::seconds runsAreKept{30};
constexpr int kMostRuns = 16;

/// Position of a run of executors, as planners read it.
struct PlanMark {
  /// Number of the run, which differs from those of earlier runs with the same
  /// flags.
  uint64_t run = 0;
  /// First step to plan. Planners may plan it and the next `--plan-ahead`
  /// steps, by their own flag or the run's, whichever is more. The run requests
  /// this many plans before its mark moves.
  int64_t step = 0;
  int64_t ahead = 0; ///< --plan-ahead of the run
  DataCursor cursor; ///< position of the data of `step`

  std::string toJson() const;
  static StatusOr<PlanMark> fromJson(const std::string &text);
};

/// Follows the steps that the threads of a run's first process ask for, in any
/// order. Keeps the mark of the run: planners plan nothing before it.
class RunPlace {
public:
  /// `ahead`: largest number of steps that wait (--plan-ahead).
  RunPlace(uint64_t run, int64_t ahead) : ahead_(ahead) {
    mark_.run = run;
    mark_.ahead = ahead;
  }
  /// Sets the first step of the run. Called before any step is wanted.
  void startAt(int64_t first) { first_ = first; }

  /// Tells that the plan of this step is wanted, whose data begin at `begin`.
  /// Returns true if the mark has moved. The mark never goes back, and never
  /// passes a step that is still wanted.
  bool want(int64_t step, const DataCursor &begin);
  /// Returns false until the first mark is known.
  bool isMarked() const { return isMarked_; }
  const PlanMark &mark() const { return mark_; }

private:
  const int64_t ahead_;
  int64_t first_ = 0;
  PlanMark mark_;
  bool isMarked_ = false;
  std::map<int64_t, DataCursor> begins_; ///< of steps that may still be marked
};

/// Draws a number that no other run or process has, on any machine; never 0.
uint64_t drawRun();

/// Returns the prefix of the keys of all runs with these plans:
/// "dyna:0123456789abcdef".
std::string planPrefix(const Session &session);
/// Returns PREFIX:RUN, the prefix of the keys of one run.
std::string runPrefix(const std::string &prefix, uint64_t run);
std::string slotKey(const std::string &prefix, int slot);
/// Returns the key of the number of planners, for a prefix or for a run.
std::string plannersKey(const std::string &prefix);
std::string plannerKey(const std::string &run, int64_t index);
std::string endedKey(const std::string &run);
std::string planKey(const std::string &run, const PlannedStep &step, int rank);

/// Planner I, counted from 0, of N, parsed from "I/N".
struct PlannerNumber {
  int64_t index = 0, count = 1;
};
StatusOr<PlannerNumber> parsePlannerNumber(const std::string &text);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANMARK_H
