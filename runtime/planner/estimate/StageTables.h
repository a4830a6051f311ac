//===- StageTables.h - Tabulates the seconds of stages by load ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cutting a mini-batch asks for the seconds of a million loads, which is too much for a
// cost model. So its answers are tabulated, over queries and over the mean number of
// keys of a query in whole samples. A load of slices counts as one of whole samples with
// as many visible pairs. Both go in powers of two, with lines in between.
// Costs that are linear in queries and pairs are met exactly. An exact cut refuses
// costs that fall (PartitionMicroBatches.h). So a value of the table is at least the
// values for fewer queries and for fewer keys.
//
// If costs of slices were measured (runtime/cost/CostCurve.h), a load with
// context is multiplied by a factor. It comes from a second table, over the
// tokens and the context of a slice. The factor is the cost model's seconds of
// the slice, divided by its seconds of whole samples with as many queries and
// visible pairs.
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
  /// Tabulates loads of at most `mostTokens` queries. With `trains`, backward and the
  /// functions that compute again are included. O(log^2 mostTokens) costs of each kind
  /// of layer.
  StageTables(const ExecutableGraph &graph, const CostModel &costs,
              const PlanOptions &options, bool trains, int64_t mostTokens);

  int stages() const { return static_cast<int>(forward_.size()); }
  double forward(int stage, const Load &load) const {
    return at(forward_[stage], load);
  }
  double backward(int stage, const Load &load) const {
    return at(backward_[stage], load);
  }
  /// Returns forward and backward of the slowest stage.
  double slowest(const Load &load) const { return at(slowest_, load); }

  /// Returns the sum over all stages.
  double path(const Load &load) const { return at(path_, load); }

private:
  using Values =
      std::vector<double>; ///< [queries][mean keys of a query, or context]
  struct Table {
    Values whole;   ///< seconds
    Values factors; ///< of slices; empty: 1
  };
  /// Seconds by stage.
  struct Sums {
    std::vector<Values> forward, backward;
  };
  template <typename LoadAt>
  Sums tabulate(const ExecutableGraph &graph, const CostModel &costs,
                const PlanOptions &options, bool trains,
                const LoadAt &loadAt) const;
  void addFactors(const Sums &slices, const Sums &whole);
  double between(const Values &values, double row, double column) const;
  double at(const Table &table, const Load &load) const;
  void neverFall(Values &values) const;

  int powers_ = 0; ///< number of powers in both directions
  std::vector<Table> forward_, backward_;
  Table slowest_, path_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STAGETABLES_H
