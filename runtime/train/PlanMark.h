//===- PlanMark.h - How planners and executors find each other --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is in a store beside plans. All keys of a job begin with what makes its
// plans what they are, so that jobs share a server and planners started with
// other flags meet nobody. The key of a plan says for which lengths it is: what
// an earlier run left there is either the same plan or never asked for.
//
//   PREFIX:mark             PlanMark of the executors, by the process of rank 0
//   PREFIX:planners         their number, as long as one of them lives
//   PREFIX:STEP:RANK:HASH   a PlanEntry
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANMARK_H
#define DYNA_RUNTIME_TRAIN_PLANMARK_H

#include "runtime/train/PlanAhead.h"
#include "runtime/train/Session.h"

#include <chrono>
#include <map>

namespace dyna {

/// After which what nobody takes is forgotten, and after which planners are gone
/// that say nothing.
constexpr std::chrono::seconds plansAreKept = std::chrono::hours(24);
constexpr std::chrono::seconds plannersAreKept{30};

/// Where a run of executors stands.
struct PlanMark {
  /// Tells a run from those before it with the same flags.
  uint64_t run = 0;
  /// Planners may plan this step and the next `--plan-ahead`.
  int64_t step = 0;
  DataCursor cursor; ///< where that step's data begin
  bool hasEnded = false;

  std::string toJson() const;
  static StatusOr<PlanMark> fromJson(const std::string &text);
};

/// Follows the steps that the threads of a run's first process ask for, in whatever
/// order, and says where the run stands: planners plan nothing before its mark.
class RunPlace {
public:
  /// `ahead`: steps that wait at most (--plan-ahead).
  RunPlace(uint64_t run, int64_t ahead) : ahead_(ahead) { mark_.run = run; }
  /// Of the run's steps, the first; before any is wanted.
  void startAt(int64_t first) { first_ = first; }

  /// The plan of this step, whose data begin there, is wanted. Whether the mark
  /// has moved: it never goes back, and never passes a step that is still wanted.
  bool want(int64_t step, const DataCursor &begin);
  /// False until a mark can be told.
  bool isMarked() const { return isMarked_; }
  const PlanMark &mark() const { return mark_; }
  void end() { mark_.hasEnded = true; }

private:
  const int64_t ahead_;
  int64_t first_ = 0;
  PlanMark mark_;
  bool isMarked_ = false;
  std::map<int64_t, DataCursor> begins_; ///< of steps that may be marked yet
};

/// "dyna:0123456789abcdef"
std::string planPrefix(const Session &session);
std::string markKey(const std::string &prefix);
std::string plannersKey(const std::string &prefix);
std::string planKey(const std::string &prefix, const PlannedStep &step,
                    int rank);

/// From "I/N": planner I, counted from 0, of N.
struct PlannerNumber {
  int64_t index = 0, count = 1;
};
StatusOr<PlannerNumber> parsePlannerNumber(const std::string &text);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANMARK_H
