//===- GraphEstimates.h - Estimates the steps of given graphs ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs, passes and tools merge ranges by these estimates (AssignStrategies.h).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_GRAPHESTIMATES_H
#define DYNA_RUNTIME_PLANNER_GRAPHESTIMATES_H

#include "runtime/planner/step/AssignStrategies.h"
#include "runtime/planner/step/Orchestrate.h"

namespace dyna {

/// Estimates phases from sums over their samples, and takes the durations of planned
/// switches.
class GraphEstimates : public StepEstimates {
public:
  /// `phases` has an estimate for each graph. `order` lists graphs in the order of their
  /// phases.
  GraphEstimates(std::vector<PhaseEstimate> phases, std::vector<int> order,
                 SwitchSeconds switches)
      : phases_(std::move(phases)), order_(std::move(order)),
        switches_(std::move(switches)) {}

  double phaseSeconds(int graph, const PhaseLengths &lengths) const override {
    return phases_[graph].seconds(lengths);
  }
  double switchSeconds(const std::vector<int> &graphs) const override;

private:
  const std::vector<PhaseEstimate> phases_;
  const std::vector<int> order_;
  const SwitchSeconds switches_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_GRAPHESTIMATES_H
