//===- FindSlices.cpp - Finds slices of cut mini-batches ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/divide/FindSlices.h"

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/planner/divide/CutClock.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/estimate/StageTables.h"
#include "runtime/planner/order/PipelineTimes.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace dyna {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Compares cuts of one mini-batch into slices by a clock.
class SliceFinder {
public:
  SliceFinder(const ExecutableGraph &graph, const CostModel &costs,
              const StageTables &tables, const PlanOptions &options)
      : graph_(graph), costs_(costs), options_(options),
        clock_(graph, costs, tables, options, /*trains=*/true) {
    clock_.countMessages();
    // Modes are chosen in complete plans, and they determine what fits.
    if (options.choosesModes())
      clock_.ignoreMemory();
  }

  StatusOr<std::vector<SlicedCut>> run(const MicroBatches &whole, size_t most) {
    const bool searched = ruleOf(options_.schedule).adapts;
    const CutTime limit = clock_.timeOf(whole, searched);
    DYNA_ASSIGN_OR_RETURN(auto all, slicesByCost(whole, clock_.sliceTimes(),
                                                 graph_.strategy().dp));
    std::vector<std::pair<CutTime, size_t>> faster;
    for (size_t i = 0; i < all.size(); ++i)
      // By the formula the other replicas take fewer seconds.
      if (const CutTime time =
              clock_.timeOf(all[i].cut, searched, all[i].slowest);
          time < limit || limit.second == never)
        faster.push_back({time, i});
    std::sort(faster.begin(), faster.end());
    std::vector<SlicedCut> best;
    for (size_t i = 0; i < std::min(most, faster.size()); ++i)
      best.push_back(
          {std::move(all[faster[i].second].cut), {}, faster[i].first < limit});
    if (options_.choosesModes() && !best.empty()) {
      DYNA_ASSIGN_OR_RETURN(SlicedCut joint, sliceWithin(whole));
      if (!joint.microBatches.empty())
        best.push_back(std::move(joint));
    }
    return best;
  }

private:
  /// Cuts slices and chooses their modes together, so that the schedule keeps no more
  /// than there is. Returns nothing if nothing fits.
  StatusOr<SlicedCut> sliceWithin(const MicroBatches &whole) const;
  /// Cuts the micro-batches of one replica so, for `limit` bytes of a stage.
  StatusOr<ModeCut> sliceWithin(const MicroBatches &whole, int replica,
                                const ModeTimes &modes, int64_t limit) const;
  /// Returns the bytes that the fullest stage keeps of such a cut. A schedule that goes
  /// by memory counts as 1F1B.
  int64_t peakOf(const ModeCut &cut, int replica, const ModeTimes &modes) const;

  const ExecutableGraph &graph_;
  const CostModel &costs_;
  const PlanOptions &options_;
  CutClock clock_;
};

StatusOr<SlicedCut> SliceFinder::sliceWithin(const MicroBatches &whole) const {
  constexpr plan::Recompute all[] = {
      plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL};
  std::deque<StageTables> tables;
  ModeTimes modes;
  int64_t limit = 0;
  for (plan::Recompute mode : all) {
    PlanOptions uniform = options_;
    uniform.recompute = {mode};
    uniform.slices.policy = SlicePolicy::Auto; // count the bytes of stored keys
    const HeldBytes held(graph_, uniform);
    limit = held.limit();
    tables.emplace_back(graph_, costs_, uniform, /*trains=*/true,
                        options_.mostTokens());
    modes.push_back({clock_.sliceTimes(tables.back(), uniform),
                     [held](const Load &load) { return held.of(load); }});
  }
  SlicedCut sliced;
  for (int replica = 0; replica < graph_.strategy().dp; ++replica) {
    auto cut = sliceWithin(whole, replica, modes, limit);
    if (cut.status().code() == StatusCode::ResourceExhausted)
      return SlicedCut();
    DYNA_RETURN_IF_ERROR(cut.status());
    for (size_t m = 0; m < cut->modes.size(); ++m) {
      sliced.microBatches.push_back(std::move(cut->microBatches[m]));
      sliced.modes.push_back(all[cut->modes[m]]);
    }
  }
  return std::move(sliced);
}

StatusOr<ModeCut> SliceFinder::sliceWithin(const MicroBatches &whole,
                                           int replica, const ModeTimes &modes,
                                           int64_t limit) const {
  constexpr int tries = 3;
  // The program limits the sum of all bytes, but a schedule frees some bytes
  // before it allocates others. So the limit is larger in proportion to the
  // peak.
  int64_t total = std::numeric_limits<int64_t>::max();
  for (int turn = 0;; ++turn) {
    DYNA_ASSIGN_OR_RETURN(ModeCut cut,
                          sliceWithModes(whole, replica, modes, total));
    if (cut.modes.empty()) // this replica has no samples
      return std::move(cut);
    const int64_t peak = peakOf(cut, replica, modes);
    if (peak <= limit || turn == tries)
      return std::move(cut);
    const double part = static_cast<double>(limit) / static_cast<double>(peak);
    total =
        std::min(cut.bytes - 1,
                 static_cast<int64_t>(part * static_cast<double>(cut.bytes)));
  }
}

int64_t SliceFinder::peakOf(const ModeCut &cut, int replica,
                            const ModeTimes &modes) const {
  plan::Plan plan;
  plan.microBatches = cut.microBatches;
  const auto owned = microBatchesOfReplicas(plan, graph_.strategy().dp);
  PipelineProblem pipeline = clock_.pipelineOf(plan, owned[replica]);
  std::vector<int64_t> kept;
  for (int m : owned[replica])
    kept.push_back(modes[cut.modes[m]].bytes(loadOf(plan.microBatches[m])));
  pipeline.kept.assign(pipeline.stages(), kept);
  pipeline.inFlight = options_.inFlight;
  const ScheduleRule &rule = ruleOf(options_.schedule);
  auto orders = (rule.adapts ? ruleOf(Schedule::OneForwardOneBackward) : rule)
                    .order(pipeline);
  if (!orders.isOk())
    return 0;
  const auto peaks = peakBytesOf(*orders, pipeline);
  return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end());
}

} // namespace

StatusOr<std::vector<plan::MicroBatch>>
sliceCut(const ExecutableGraph &graph, const CostModel &costs,
         std::vector<plan::MicroBatch> whole, const PlanOptions &options,
         bool trains) {
  if (options.slices.policy == SlicePolicy::None)
    return sliceMicroBatches(std::move(whole), options.slices);
  if (options.slices.policy == SlicePolicy::Auto) {
    DYNA_ASSIGN_OR_RETURN(auto best, fasterSlices(graph, costs, whole, options,
                                                  trains, /*most=*/1));
    return best.empty() || !best[0].isFaster ? std::move(whole)
                                             : std::move(best[0].microBatches);
  }
  const StageTables tables(graph, costs, options, trains, options.mostTokens());
  const CutClock clock(graph, costs, tables, options, trains);
  return slicesByPolicy(whole, clock.sliceTimes(), graph.strategy().dp,
                        options.slices, options.maxTokensPerMicroBatch);
}

StatusOr<std::vector<SlicedCut>>
fasterSlices(const ExecutableGraph &graph, const CostModel &costs,
             const std::vector<plan::MicroBatch> &whole,
             const PlanOptions &options, bool trains, size_t most) {
  if (!trains || graph.stages() == 1 ||
      !checkSliceable(graph.model(), options.batching).isOk())
    return std::vector<SlicedCut>();
  const StageTables tables(graph, costs, options, trains, options.mostTokens());
  return SliceFinder(graph, costs, tables, options).run(whole, most);
}

} // namespace dyna
