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

CutTime CutClock::timeOf(const MicroBatches &cut, bool searched,
                         int only) const {
  plan::Plan plan;
  plan.microBatches = cut;
  const auto owned = microBatchesOfReplicas(plan, graph_.strategy().dp);
  CutTime slowest = {false, 0};
  for (int replica = 0; replica < graph_.strategy().dp; ++replica) {
    if (only >= 0 && replica != only)
      continue;
    PipelineProblem pipeline = pipelineOf(plan, owned[replica]);
    if (isLimited()) {
      holdBlocks(pipeline, graph_, plan, owned[replica], options_);
      limitStages(pipeline, graph_, replica, options_,
                  std::vector<int64_t>(graph_.ranks(), 0));
      pipeline.inFlight = options_.inFlight;
    }
    const CutTime time = searched ? timeOfSearched(std::move(pipeline))
                                  : timeOfReplica(std::move(pipeline));
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

CutTime CutClock::timeOfReplica(PipelineProblem pipeline) const {
  if (!isLimited()) {
    // A search of orders would take as long as everything else together.
    PlanOptions options = options_;
    if (ruleOf(options.schedule).adapts)
      options.schedule = Schedule::Cyclic;
    auto schedule = schedulePipeline(pipeline, options, trains_);
    return schedule.isOk() ? CutTime(false, makespanOf(schedule->stages))
                           : CutTime(true, never);
  }
  const double seconds = makespanWithin(pipeline, options_.schedule);
  if (seconds < never)
    return {false, seconds};
  return {true, makespanWithin(pipeline, Schedule::Adaptive)};
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
