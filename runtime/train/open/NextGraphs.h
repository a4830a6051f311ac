//===- NextGraphs.h - Makes graphs that a run can go over to ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A replacement of graphs needs the next graphs, the regions of their plans and the
// switch of the state. They can be made before there are ranks.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_NEXTGRAPHS_H
#define DYNA_RUNTIME_TRAIN_NEXTGRAPHS_H

#include "runtime/planner/step/StepRegions.h"
#include "runtime/train/session/Session.h"

namespace dyna {

/// A strategy, or ranges, that a run goes over to, spelled as flags.
struct NextStrategy {
  std::string strategy; ///< as in --strategy; empty if there are ranges
  std::string ranges;   ///< as in --ranges, of strategies known to the run
  /// Model with other layers frozen; null: the model of the present graphs.
  std::shared_ptr<const Model> model = nullptr;
};

/// Returns what a run has now: its strategy, or its ranges.
NextStrategy presentStrategy(const TrainOptions &options,
                             const StepGraphs &graphs);

/// Bytes and seconds of a replacement of graphs.
struct ReplacementCost {
  int64_t sentBytes = 0; ///< from ranks to other ranks
  int64_t missingBytes =
      0; ///< not yet on their rank: a lower bound of `sentBytes`
  double planSeconds = 0;  ///< to plan and verify the switch alone
  double carrySeconds = 0; ///< until all ranks have their state
};

/// Graphs and the regions of their plans.
struct SizedGraphs {
  Session chosen; ///< options, notes and graphs alone
  StepRegions regions;
};

/// Returns the options of a run that has `now` and goes over to the next
/// strategy.
TrainOptions optionsOf(const TrainOptions &now, const NextStrategy &next);

/// Chooses the graphs of `model` and `options`, and sizes their regions in arenas of
/// `rankBytes` (-1: no limit). `session` has the data. Fails if its samples do not fit.
StatusOr<SizedGraphs> sizeGraphs(const Session &session, const Model &model,
                                 const TrainOptions &options,
                                 int64_t rankBytes);

/// Plans and verifies the switch of the state between the homes of two sets of graphs,
/// on `ranks` ranks.
StatusOr<GraphSwitch> planState(const StepGraphs &from, const StepGraphs &to,
                                int ranks, ReplacementCost &cost);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_NEXTGRAPHS_H
