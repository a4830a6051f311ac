//===- ReplaceGraphs.h - Replaces the graphs of a run -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Between two steps a run may go over to another layer cut, strategy, set of ranges or
// number of ranks. Everything that can be refused is refused by `planReplacement`, which
// changes nothing. Then `replaceGraphs` carries the state and makes the next graphs those
// of the session. Steps that were planned for the graphs before must be dropped first.
//
// Arenas stay as large as they are: Session::arenaBytes says how large they are at least.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_REPLACEGRAPHS_H
#define DYNA_RUNTIME_TRAIN_REPLACEGRAPHS_H

#include "runtime/train/open/NextGraphs.h"

namespace dyna {

/// Graphs that can take the place of a session's, with their planner and the switch of
/// the state.
struct PlannedReplacement {
  TrainOptions options; ///< of the run from then on
  std::unique_ptr<StepGraphs> graphs;
  std::unique_ptr<StepPlanner> planner;
  GraphSwitch state;
  std::vector<std::string> notes;
  std::vector<int64_t> regionBytes; ///< that plans use, by rank
  int64_t step = 0; ///< before which graphs are replaced, from 0
  ReplacementCost cost;

  /// As ranks get it.
  Replacement forRanks(const Session &session) const;
};

/// Plans the replacement of the graphs of a session that trains. All processes plan the
/// same. Fails, with what is needed, if the strategy is unknown, has more ranks than the
/// run, or does not fit the arenas of this process.
StatusOr<PlannedReplacement> planReplacement(const Session &session,
                                             const NextStrategy &next);

/// Fails if a replacement needs more memory than this process can take now. Compares with
/// what is free on the machine, and with --memory-limit.
Status checkGrowth(const Session &session, const PlannedReplacement &next);

/// Replaces the graphs. All processes call it, when no step is in flight and no thread
/// plans. After a failure the session has the graphs that it had; other processes were
/// told, and no step runs any more.
Status replaceGraphs(Session &session, PlannedReplacement &next);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_REPLACEGRAPHS_H
