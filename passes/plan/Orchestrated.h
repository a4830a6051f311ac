//===- Orchestrated.h - Reads the orchestration of a module -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_ORCHESTRATED_H
#define DYNA_PASSES_PLAN_ORCHESTRATED_H

#include "passes/plan/Passes.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/request/LengthRanges.h"

namespace mlir::dyna {

/// Graphs, ranges and switches of a module's `exec.orchestration`.
struct Orchestrated {
  struct Turn {
    exec::GraphOp op;
    std::unique_ptr<::dyna::ExecutableGraph> graph;
  };
  std::vector<Turn> turns; ///< in order; the last is home's
  ::dyna::LengthRanges ranges;
  /// Switches between the graphs of the turns, by their numbers.
  ::dyna::SwitchTable switches;

  int home() const { return static_cast<int>(turns.size()) - 1; }
  std::vector<const ::dyna::ExecutableGraph *> graphs() const {
    std::vector<const ::dyna::ExecutableGraph *> graphs;
    for (const Turn &turn : turns)
      graphs.push_back(turn.graph.get());
    return graphs;
  }
};

/// Reads and checks an orchestration. Diagnostics report a graph that does not
/// place the model, a wrong range, and a switch that is missing or moves the
/// wrong tensors.
FailureOr<Orchestrated> readOrchestration(exec::OrchestrationOp op,
                                          const ::dyna::Model &model);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_ORCHESTRATED_H
