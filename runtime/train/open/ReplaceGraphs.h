//===- ReplaceGraphs.h - Replaces the graphs of a run -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Between two steps a run may go over to another layer cut, strategy, set of
// ranges or number of ranks. `planReplacement` makes all checks that can fail,
// and changes nothing. Then `replaceGraphs` carries the state and makes the
// next graphs those of the session. Steps that were planned for the old graphs
// must be dropped first.
//
// Arenas keep their size. Session::arenaBytes sets their least size.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_REPLACEGRAPHS_H
#define DYNA_RUNTIME_TRAIN_REPLACEGRAPHS_H

#include "runtime/train/open/NextGraphs.h"

namespace dyna {

/// Graphs that can replace those of a session, with their planner and the
/// switch of the state.
struct PlannedReplacement {
  TrainOptions options;               ///< of the run after the replacement
  std::shared_ptr<const Model> model; ///< null: that of the present graphs
  std::unique_ptr<StepGraphs> graphs;
  std::unique_ptr<StepPlanner> planner;
  GraphSwitch state;
  std::vector<std::string> notes;
  std::vector<int64_t> regionBytes; ///< used by plans, by rank
  int64_t step = 0; ///< the replacement is before this step, counted from 0
  ReplacementCost cost;

  /// Returns the replacement in the form that ranks need.
  Replacement forRanks(const Session &session) const;
};

/// Plans the replacement of the graphs of a session that trains. All processes
/// plan the same. Fails if the strategy is unknown, has more ranks than the
/// run, or does not fit the arenas of this process. The message says what is
/// needed.
StatusOr<PlannedReplacement> planReplacement(const Session &session,
                                             const NextStrategy &next);

/// Fails if a replacement needs more memory than is free on the machine or than
/// --memory-limit allows.
Status checkGrowth(const Session &session, const PlannedReplacement &next);

/// Replaces the graphs. All processes call it, while no step is in flight and
/// no thread plans. After a failure the session keeps its old graphs. Other
/// processes are told, and no further step runs.
Status replaceGraphs(Session &session, PlannedReplacement &next);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_REPLACEGRAPHS_H
