//===- Orchestrated.h - What a module says of its graphs' turns -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_ORCHESTRATED_H
#define DYNA_PASSES_PLAN_ORCHESTRATED_H

#include "passes/plan/Passes.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/request/LengthRanges.h"

namespace mlir::dyna {

/// What the `exec.orchestration` of a module says, and its switches.
struct Orchestrated {
  struct Turn {
    exec::GraphOp op;
    std::unique_ptr<::dyna::ExecutableGraph> graph;
  };
  std::vector<Turn> turns; ///< in order; the last is home's
  ::dyna::LengthRanges ranges;
  /// Of the turns' graphs, by their numbers.
  ::dyna::SwitchTable switches;

  int home() const { return static_cast<int>(turns.size()) - 1; }
  std::vector<const ::dyna::ExecutableGraph *> graphs() const {
    std::vector<const ::dyna::ExecutableGraph *> graphs;
    for (const Turn &turn : turns)
      graphs.push_back(turn.graph.get());
    return graphs;
  }
};

/// Diagnostics say which graph does not place the model, which range is wrong,
/// which switch is missing or moves something else than its graphs need.
FailureOr<Orchestrated> readOrchestration(exec::OrchestrationOp op,
                                          const ::dyna::Model &model);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_ORCHESTRATED_H
