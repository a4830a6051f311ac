//===- TinyPlans.h - Plans of the tiny model, for tests ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLAN_TINYPLANS_H
#define DYNA_TEST_RUNTIME_PLAN_TINYPLANS_H

#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/place/AssignMemory.h"
#include "test/runtime/executor/TinyModel.h"

#include <gtest/gtest.h>

namespace dyna {

/// Samples of equal length: messages of different micro-batches have one size.
inline const std::vector<int64_t> equalLengths(8, 16);
/// Bytes that no plan of the tiny model needs.
constexpr int64_t enoughBytes = INT64_C(1) << 30;

/// A micro-batch for every sample of equal length.
inline PlanOptions
tinyPlanOptions(Schedule schedule = Schedule::OneForwardOneBackward) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = 16;
  options.schedule = schedule;
  options.inFlight = 2;
  return options;
}

/// The only rank there is.
inline ExecutableGraph onOneRank(const Model &model) {
  return *ExecutableGraph::create(model, Strategy());
}

/// At tensor degrees 2, with sp and without, and 4.
inline const Model &modelWithDegrees() {
  static const Model model = [] {
    TinyOptions options;
    options.hidden = 12;
    options.nestedTie = true;
    options.degrees = {{2, false}, {2, true}, {4, false}};
    return *Model::create(tinyManifest(options));
  }();
  return model;
}

/// New offsets, so that only the order of a changed plan is wrong.
inline void placeAgain(const ExecutableGraph &graph, plan::Plan &plan) {
  for (int rank = 0; rank < plan.rankCount(); ++rank)
    ASSERT_TRUE(
        assignMemory(graph.replicaView(rank), plan, plan.ranks[rank], nullptr)
            .isOk());
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLAN_TINYPLANS_H
