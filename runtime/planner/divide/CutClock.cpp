//===- CutClock.cpp - Times cuts of a mini-batch --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/divide/CutClock.h"

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/order/GraphLinks.h"
#include "runtime/planner/order/MakespanWithin.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/write/PipelineSchedule.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace dyna {

static constexpr double never = std::numeric_limits<double>::infinity();

/// Returns one of all stages whose layers cost the same, for each such set.
static std::vector<int> differentStages(const ExecutableGraph &graph,
                                        const CostModel &costs,
                                        const PlanOptions &options) {
  std::set<std::vector<std::array<int, 3>>> seen;
  std::vector<int> stages;
  for (int stage = 0; stage < graph.stages(); ++stage) {
    std::vector<std::array<int, 3>> kinds;
    for (int l = graph.stage(stage).firstLayer; l < graph.stage(stage).endLayer;
         ++l)
      kinds.push_back({graph.model().layer(l).kind(),
                       shardsPerNode(graph, costs, stage),
                       modeOf(options.recompute, l)});
    if (seen.insert(std::move(kinds)).second)
      stages.push_back(stage);
  }
  return stages;
}

bool CutClock::isLimited() const {
  return trains_ && !ignoresMemory_ && !options_.dynamicLimits.empty();
}

SliceTimes CutClock::sliceTimes(const StageTables &tables,
                                const PlanOptions &options) const {
  return {tables, differentStages(graph_, costs_, options),
          [this](const Load &load) {
            return messageSeconds(graph_, costs_, {load});
          }};
}

/// Lets half of each backward run apart. The values for weight gradients stay until it
/// runs, so that steps need more memory.
static void splitEvenly(PipelineProblem &pipeline) {
  pipeline.weight = pipeline.backward;
  for (std::vector<double> &stage : pipeline.weight)
    for (double &seconds : stage)
      seconds /= 2;
}

CutTime timeWithin(PipelineProblem pipeline, const ExecutableGraph &graph,
                   const plan::Plan &plan, const std::vector<int> &own,
                   int replica, const PlanChoice &choice,
                   const std::vector<int64_t> &beside) {
  const bool adapts = ruleOf(choice.schedule).adapts;
  pipeline.inFlight = choice.inFlight;
  limitStages(pipeline, graph, replica, choice, beside);
  double seconds = never;
  if (!adapts) {
    PipelineProblem fixed = pipeline;
    PipelineProblem::Bytes backward;
    holdBlocks(fixed, graph, plan, own, choice, &backward);
    seconds = makespanWithin(fixed, choice.schedule, &backward);
  }
  if (seconds < never)
    return {false, seconds};
  holdBlocks(pipeline, graph, plan, own, choice);
  seconds = makespanWithin(pipeline, Schedule::Adaptive);
  return {!adapts || seconds == never, seconds};
}

CutTime CutClock::timeOf(const MicroBatches &cut, bool searched,
                         int only) const {
  plan::Plan plan;
  plan.microBatches = cut;
  const auto owned = microBatchesOfReplicas(plan, graph_.strategy().dp);
  const std::vector<int64_t> beside(graph_.ranks(), 0);
  CutTime slowest = {false, 0};
  for (int replica = 0; replica < graph_.strategy().dp; ++replica) {
    if (only >= 0 && replica != only)
      continue;
    const std::vector<int> &own = owned[replica];
    PipelineProblem pipeline = pipelineOf(plan, own);
    if (isLimited() && options_.splitBackward &&
        ruleOf(options_.schedule).adapts)
      splitEvenly(pipeline);
    CutTime time;
    if (searched) {
      if (isLimited()) {
        holdBlocks(pipeline, graph_, plan, own, options_);
        limitStages(pipeline, graph_, replica, options_, beside);
      }
      time = timeOfSearched(std::move(pipeline));
    } else if (isLimited()) {
      time = timeWithin(std::move(pipeline), graph_, plan, own, replica,
                        options_, beside);
    } else {
      time = timeOfUnlimited(pipeline);
    }
    slowest = {slowest.first || time.first,
               std::max(slowest.second, time.second)};
  }
  return slowest;
}

CutTime CutClock::timeOfSearched(PipelineProblem pipeline) const {
  pipeline.searchItems = 0;
  auto orders = ruleOf(options_.schedule).order(pipeline);
  if (orders.isOk() && timeItems(*orders, pipeline, {}).isOk())
    return {false, makespanOf(*orders)};
  return {true, never};
}

CutTime CutClock::timeOfUnlimited(const PipelineProblem &pipeline) const {
  // A search of orders would take as long as everything else together.
  PlanOptions options = options_;
  if (ruleOf(options.schedule).adapts)
    options.schedule = Schedule::Cyclic;
  auto schedule = schedulePipeline(pipeline, options, trains_);
  return schedule.isOk() ? CutTime(false, makespanOf(schedule->stages))
                         : CutTime(true, never);
}

PipelineProblem CutClock::pipelineOf(const plan::Plan &plan,
                                     const std::vector<int> &own) const {
  PipelineProblem pipeline;
  std::vector<Load> loads;
  for (int m : own)
    loads.push_back(loadOf(plan.microBatches[m]));
  pipeline.links = linksOf(
      graph_, countsMessages_ ? messageSeconds(graph_, costs_, loads) : 0);
  pipeline.previous = findBundles(plan, own).previous(own);
  for (int stage = 0; stage < tables_.stages(); ++stage) {
    std::vector<double> &forward = pipeline.forward.emplace_back();
    std::vector<double> &backward = pipeline.backward.emplace_back();
    for (const Load &load : loads) {
      forward.push_back(tables_.forward(stage, load));
      backward.push_back(tables_.backward(stage, load));
    }
  }
  return pipeline;
}

} // namespace dyna
