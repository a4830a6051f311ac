//===- Planner.cpp - Plans the mini-batches of a strategy -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/Planner.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/divide/FindSlices.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/graph/CompareSlices.h"
#include "runtime/planner/graph/CutStep.h"
#include "runtime/planner/graph/LargestPlans.h"
#include "runtime/planner/graph/PlanCandidates.h"
#include "runtime/planner/write/ComputeOrder.h"

namespace dyna {

static ExecutableGraph oneRank(const Model &model) {
  return *ExecutableGraph::create(model, Strategy());
}

Planner::Planner(ExecutableGraph graph, CostModel costs)
    : graph_(std::move(graph)), costs_(std::move(costs)) {
  if (!graph_.strategy().mirror)
    return;
  std::vector<int> devices;
  for (int rank = 0; rank < graph_.ranks(); ++rank)
    devices.push_back(graph_.deviceOf(rank));
  costs_.placeRanks(std::move(devices));
}

Planner::Planner(const ExecutableGraph &graph)
    : Planner(graph, CostModel(graph.model())) {}

Planner::Planner(const Model &model) : Planner(oneRank(model)) {}

StatusOr<plan::Plan> Planner::cut(const std::vector<int64_t> &lengths,
                                  int64_t targetTokens,
                                  const PlanOptions &options,
                                  bool trains) const {
  PlanOptions own = options;
  if (!trains && ruleOf(own.batching).pads)
    own.batching = Batching::Ragged;
  DYNA_ASSIGN_OR_RETURN(PlanCut cut,
                        cutStep(writer(), lengths, targetTokens, own, trains));
  // Remove the programs that were tried.
  cut.plan.ranks.assign(graph_.ranks(), {});
  cut.plan.fallback.clear();
  return std::move(cut.plan);
}

StatusOr<plan::Plan> Planner::slice(plan::Plan plan, const PlanOptions &options,
                                    bool trains) const {
  DYNA_RETURN_IF_ERROR(checkOptions(graph_.model(), graph_.ranks(), options));
  for (int m = 0; m < plan.microBatchCount(); ++m)
    if (continuesSample(plan.microBatches[m]))
      return Status::invalidArgument(formatText(
          "micro-batch %d begins inside a sample: slices are cut from whole "
          "samples",
          m));
  if (options.slices.policy != SlicePolicy::Auto || !trains) {
    DYNA_ASSIGN_OR_RETURN(plan.microBatches,
                          sliceCut(graph_, costs_, std::move(plan.microBatches),
                                   options, trains));
    return plan;
  }
  // As in plans that are made at once, choices that do not fit the memory do
  // not count.
  PlanOptions whole = options;
  whole.slices = {};
  DYNA_ASSIGN_OR_RETURN(
      PlanCut best,
      compareSlices(writer(), PlanCut{plan, /*isComplete=*/false}, whole));
  plan.microBatches = std::move(best.plan.microBatches);
  return plan;
}

StatusOr<plan::Plan> Planner::schedule(plan::Plan plan,
                                       const PlanOptions &options,
                                       bool trains) const {
  DYNA_RETURN_IF_ERROR(checkOptions(graph_.model(), graph_.ranks(), options));
  plan.ranks.assign(graph_.ranks(), {});
  // Only the placed plan shows that the order fits.
  DYNA_ASSIGN_OR_RETURN(plan, completePlan(writer(), plan, options, trains));
  keepCompute(plan);
  return plan;
}

StatusOr<ComputeOrder> Planner::readOrder(const plan::Plan &plan,
                                          PlanChoice &choice) const {
  DYNA_RETURN_IF_ERROR(checkOptions(graph_.model(), graph_.ranks(), choice));
  if (!plan.fallback.empty()) {
    DYNA_ASSIGN_OR_RETURN(choice.schedule, findSchedule(plan.fallback));
  }
  DYNA_ASSIGN_OR_RETURN(ComputeOrder order,
                        readComputeOrder(graph_, plan, choice));
  choice.splitBackward = order.splitsBackward;
  choice.microBatchRecompute = order.modes;
  return order;
}

StatusOr<plan::Plan>
Planner::orderCommunication(const plan::Plan &plan,
                            const PlanOptions &options) const {
  PlanChoice choice = options;
  DYNA_ASSIGN_OR_RETURN(const ComputeOrder order, readOrder(plan, choice));
  plan::Plan ordered = plan;
  ordered.ranks.assign(graph_.ranks(), {});
  auto estimate = [&](int, const std::vector<int> &own) {
    return estimateStages(graph_, costs_, plan, own, choice);
  };
  DYNA_RETURN_IF_ERROR(writer().write(ordered, graph_.replicas(), choice,
                                      order.trains, estimate, nullptr, &order));
  DYNA_RETURN_IF_ERROR(checkSameCompute(plan, ordered));
  DYNA_RETURN_IF_ERROR(writer().place(ordered, choice));
  return ordered;
}

StatusOr<std::vector<ExpectedPipeline>>
Planner::expect(const plan::Plan &plan, const PlanOptions &options) const {
  PlanChoice choice = options;
  DYNA_ASSIGN_OR_RETURN(ComputeOrder order, readOrder(plan, choice));
  const auto own = microBatchesOfReplicas(plan, graph_.replicas());
  std::vector<PipelineProblem> problems;
  for (int replica = 0; replica < graph_.replicas(); ++replica)
    problems.push_back(
        estimateStages(graph_, costs_, plan, own[replica], choice));
  DYNA_ASSIGN_OR_RETURN(auto schedules, writer().orderReplicas(
                                            problems, std::move(order.replicas),
                                            choice, order.trains));
  std::vector<ExpectedPipeline> pipelines(problems.size());
  for (size_t replica = 0; replica < pipelines.size(); ++replica) {
    pipelines[replica].problem = std::move(problems[replica]);
    pipelines[replica].schedule = std::move(schedules[replica]);
  }
  return pipelines;
}

StatusOr<plan::Plan> Planner::training(const std::vector<int64_t> &lengths,
                                       int64_t targetTokens,
                                       const PlanOptions &options) const {
  auto plan = [&](const PlanOptions &fixed) -> StatusOr<plan::Plan> {
    DYNA_ASSIGN_OR_RETURN(PlanCut cut, cutStep(writer(), lengths, targetTokens,
                                               fixed, /*trains=*/true));
    return cut.isComplete
               ? std::move(cut.plan)
               : completePlan(writer(), cut.plan, fixed, /*trains=*/true);
  };
  auto made = plan(options);
  if (options.slices.policy != SlicePolicy::Auto ||
      made.status().code() != StatusCode::ResourceExhausted)
    return made;
  // Regions have room for whole micro-batches, and usually for their slices.
  PlanOptions whole = options;
  whole.slices = {};
  return plan(whole);
}

StatusOr<double> Planner::estimateStep(const std::vector<int64_t> &lengths,
                                       const PlanOptions &options) const {
  return dyna::estimateStep(writer(), lengths, options);
}

StatusOr<plan::Plan> Planner::evaluation(const std::vector<int64_t> &lengths,
                                         int64_t targetTokens,
                                         const PlanOptions &options) const {
  DYNA_ASSIGN_OR_RETURN(plan::Plan plan,
                        cut(lengths, targetTokens, options, false));
  return completePlan(writer(), plan, options, false);
}

StatusOr<plan::Plan> Planner::cast() const {
  return castPlan(writer(), graph_.replicas());
}

StatusOr<plan::Plan> Planner::update() const { return updatePlan(writer()); }

StatusOr<std::vector<int64_t>>
Planner::leastDynamicBytes(const PlanOptions &options, bool training) const {
  return dyna::leastDynamicBytes(writer(), options, training);
}

StatusOr<std::vector<int64_t>>
Planner::largestDynamicBytes(const PlanOptions &options, bool training) const {
  return dyna::largestDynamicBytes(writer(), options, training);
}

} // namespace dyna
