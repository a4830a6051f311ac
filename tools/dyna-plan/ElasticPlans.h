//===- ElasticPlans.h - Compares other cuts and fewer ranks for a model ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements --rebalance and --repack. They show what a model with changed
// layers gains from another cut, or from fewer ranks. The present cut is that
// of the model before the change. Every other cut is planned and simulated,
// together with the switch of the state that leads to it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_ELASTICPLANS_H
#define DYNA_TOOLS_DYNA_PLAN_ELASTICPLANS_H

#include "runtime/cost/CostModel.h"
#include "tools/dyna-plan/PlayedSteps.h"

#include <string>
#include <vector>

namespace dyna {

/// Seconds of a step in which no function runs, as shares of the step. Means of
/// all stages.
struct IdleShares {
  double inherent =
      0; ///< fill and drain of the pipeline, also with equal stages
  double imbalance = 0; ///< stages have different loads
  double network = 0;   ///< messages and exchanges take time

  double all() const { return inherent + imbalance + network; }
};

/// Another cut, or other ranks, beside the present ones.
struct ElasticRow {
  std::string name;     ///< the policy, or the number of ranks
  std::string strategy; ///< with its cut; empty: layers have another order
  std::string note;     ///< remark about this plan
  std::string refusal;  ///< reason for no plan; then other fields are unset
  std::vector<int> cut; ///< empty: layers have another order
  std::vector<double>
      loads; ///< seconds of each stage in functions, in one step
  double stepSeconds = 0;
  double tokensPerSecond = 0;
  int ranks = 0;
  int64_t peakBytes = 0;
  bool fits = true;
  int64_t movedBytes = 0;
  double moveSeconds = 0;
  int64_t stepsToEarn = -1; ///< -1: never
  int64_t rounds = 0;       ///< of policies that repeat
  bool isSimulated = true;  ///< false: by loads alone
  IdleShares idle;
};

/// Ranks that a published policy empties.
struct EmptiedRanks {
  std::string policy;
  int wanted = 0, left = 0;
  int64_t moves = 0; ///< of layers
  bool keepsOrder = false;
};

struct ElasticReport {
  ElasticRow present;
  std::vector<ElasticRow> balanced, packed;
  std::vector<EmptiedRanks> emptied;
};

/// Plans --rebalance and --repack. `costs` has the states of --sparsity. Fails for bad
/// values of the two flags, and if the present cut cannot be planned. A policy without room
/// has a refusal instead.
StatusOr<ElasticReport>
planElastic(const PlanFlags &flags, const CostModel &costs,
            const Strategy &strategy, const StepLengths &steps,
            StepOutputs &outputs, std::vector<std::string> &notes);

/// Fails if the values of --rebalance or --repack are wrong, whatever the model is.
Status checkElastic(const PlanFlags &flags);

/// Returns tables for people. With `isLong` loads of stages and published policies follow.
std::string describeElastic(const ElasticReport &report, bool isLong);

/// Returns one JSON object for each row, on lines of their own.
std::string elasticJson(const ElasticReport &report);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_ELASTICPLANS_H
