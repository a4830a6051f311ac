//===- StageTables.h - What stages take for any micro-batch ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cutting a mini-batch asks for the seconds of a million shapes, more than a cost
// model answers in the time there is. So its answers are tabulated: over tokens,
// and over the mean length of a token's sample (squares / tokens), both in powers
// of two, with lines in between. What is linear in tokens and pairs is met
// exactly. Curves do not fall (runtime/cost/CostCurve.h), but an exact cut would refuse
// costs that do (PartitionMicroBatches.h), so here nothing can: a value is at
// least those of fewer tokens and of shorter samples.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STAGETABLES_H
#define DYNA_RUNTIME_PLANNER_STAGETABLES_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/cut/PackForPipeline.h"
#include "runtime/planner/request/PlanOptions.h"

#include <vector>

namespace dyna {

class StageTables {
public:
  /// For shapes of at most `mostTokens`. With `trains`, backward and what it
  /// computes again are there too. O(log^2 mostTokens) costs of each kind of
  /// layer.
  StageTables(const ExecutableGraph &graph, const CostModel &costs,
              const PlanOptions &options, bool trains, int64_t mostTokens);

  int stages() const { return static_cast<int>(forward_.size()); }
  double forward(int stage, const RaggedShape &shape) const {
    return at(forward_[stage], shape);
  }
  double backward(int stage, const RaggedShape &shape) const {
    return at(backward_[stage], shape);
  }
  /// Of the slowest stage, both together.
  double slowest(const RaggedShape &shape) const { return at(slowest_, shape); }

  /// Of all stages, one after another.
  double path(const RaggedShape &shape) const { return at(path_, shape); }

private:
  using Table = std::vector<double>; ///< [tokens][mean length]
  double at(const Table &table, const RaggedShape &shape) const;
  void neverFall(Table &table) const;

  int powers_ = 0; ///< of either
  std::vector<Table> forward_, backward_;
  Table slowest_, path_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STAGETABLES_H
