//===- StepRegions.cpp - Sizes the region of each rank --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/StepRegions.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/graph/RankMemory.h"
#include "runtime/planner/place/PlacePhases.h"

#include <algorithm>

namespace dyna {
namespace {

class RegionSizes {
public:
  RegionSizes(const StepGraphs &graphs, int64_t tokensPerStep, bool training)
      : graphs_(graphs), tokensPerStep_(tokensPerStep), training_(training) {}

  StatusOr<StepRegions> within(int64_t rankBytes, bool atLeast) const;

private:
  /// Returns the options of the largest plans of a graph.
  PlanOptions widestOptions(const PlannedGraph &graph) const {
    PlanOptions options = graphs_.optionsOf(graph);
    // If more micro-batches are in flight than a mini-batch has, none of them
    // can be full.
    options.inFlight = static_cast<int>(
        std::min<int64_t>(options.inFlight, graph.microBatches + 1));
    options.tokensPerStep = tokensPerStep_;
    return options;
  }
  /// Returns the options of the smallest plans of a graph. If sizes are open,
  /// micro-batches are as large as the longest sample. A run chooses this size
  /// if it fits: no sample is refused or shortened then.
  PlanOptions smallestOptions(const PlannedGraph &graph) const {
    PlanOptions options = widestOptions(graph);
    if (graph.isSizeOpen && options.longestSample > 0) {
      options.maxTokensPerMicroBatch = options.longestSample;
      options.slices =
          options.slices.within(options.longestSample, options.longestSample);
    }
    return options;
  }
  /// Returns the bytes of the largest arena, with `dynamic` bytes for plans by
  /// rank.
  int64_t largestNeed(const PlannedGraph &graph,
                      const std::vector<int64_t> &dynamic) const;
  /// Returns the bytes of an arena that is large enough for any rank, so that
  /// nothing is refused.
  StatusOr<int64_t> enoughBytes() const;
  /// Returns the bytes that are enough for one graph with open sizes and short
  /// samples. A run splits documents into such samples if longer ones do not
  /// fit.
  StatusOr<int64_t> enoughForShort(const PlannedGraph &graph) const;
  static constexpr int64_t kShortSample = 32;
  /// Sizes a graph's regions alone, beside the tensors of other graphs on its
  /// ranks.
  StatusOr<DynamicRegions> sizeGraph(const PlannedGraph &graph,
                                     const PlanOptions &options,
                                     int64_t rankBytes, bool atLeast) const;
  /// Returns the failure for a graph that does not fit alone; `status` is that
  /// of its widest plans.
  Status refuseGraph(const PlannedGraph &graph, int64_t given,
                     int64_t rankBytes, const Status &status) const;
  /// Returns the failure for phases that fit alone, but not beside the phase
  /// before or with their switches' transit buffers.
  Status refuseNeighbours(int rank, int64_t rankBytes, int64_t need) const;
  Status sizeGraphs(int64_t given, int64_t rankBytes, bool atLeast,
                    StepRegions &regions,
                    std::vector<std::vector<int64_t>> &most) const;

  const StepGraphs &graphs_;
  const int64_t tokensPerStep_;
  const bool training_;
};

int64_t RegionSizes::largestNeed(const PlannedGraph &graph,
                                 const std::vector<int64_t> &dynamic) const {
  int64_t most = 0;
  for (size_t rank = 0; rank < dynamic.size(); ++rank)
    most = std::max(
        most, dynamic[rank] +
                  graphs_.bytesOf(graph, static_cast<int>(rank), training_));
  return graphs_.heldBeside(graph, training_) + most;
}

StatusOr<int64_t> RegionSizes::enoughBytes() const {
  std::vector<std::vector<int64_t>> least;
  int64_t most = 0;
  for (const PlannedGraph &graph : graphs_.graphs()) {
    DYNA_ASSIGN_OR_RETURN(auto own, graph.planner->leastDynamicBytes(
                                        smallestOptions(graph), training_));
    most = std::max(most, largestNeed(graph, own));
    least.push_back(std::move(own));
  }
  if (!graphs_.areSeveral())
    return most;
  const Orchestration &made = graphs_.orchestration();
  const RegionNeed need =
      needOfRegions(made.switches, made.order, least, training_);
  for (size_t rank = 0; rank < need.least.size(); ++rank)
    most = std::max(most, graphs_.homeBytes(static_cast<int>(rank), training_) +
                              need.least[rank]);
  return most;
}

StatusOr<DynamicRegions> RegionSizes::sizeGraph(const PlannedGraph &graph,
                                                const PlanOptions &options,
                                                int64_t rankBytes,
                                                bool atLeast) const {
  const int64_t beside = graphs_.heldBeside(graph, training_);
  return sizeDynamicRegions(
      *graph.planner, options, graphs_.persistentOf(graph, training_),
      rankBytes < 0 ? rankBytes : std::max<int64_t>(rankBytes - beside, 0),
      atLeast);
}

StatusOr<int64_t> RegionSizes::enoughForShort(const PlannedGraph &graph) const {
  PlanOptions options = smallestOptions(graph);
  options.longestSample = std::min(options.longestSample, kShortSample);
  options.maxTokensPerMicroBatch = kShortSample;
  DYNA_ASSIGN_OR_RETURN(auto bytes,
                        graph.planner->leastDynamicBytes(options, training_));
  return largestNeed(graph, bytes);
}

Status RegionSizes::refuseGraph(const PlannedGraph &graph, int64_t given,
                                int64_t rankBytes, const Status &status) const {
  DYNA_ASSIGN_OR_RETURN(int64_t enough, enoughBytes());
  // `enough` counts bytes of the smallest plans, so the missing bytes must,
  // too.
  const Status least =
      sizeGraph(graph, smallestOptions(graph), rankBytes, /*atLeast=*/false)
          .status();
  const Status &said = least.isOk() ? status : least;
  std::string phase;
  if (graphs_.areSeveral())
    phase = formatText("--rank-memory %d: strategy '%s'", given, graph.name);
  if (!graphs_.isHome(graph))
    phase += formatText(", beside %s of '%s', which is home",
                        formatBytes(graphs_.heldBeside(graph, training_)),
                        graphs_.home().name);
  std::string shorter;
  if (!graphs_.areSeveral() && graph.isSizeOpen) {
    DYNA_ASSIGN_OR_RETURN(int64_t least, enoughForShort(graph));
    if (least < enough)
      shorter = formatText(
          ", %d where longer documents are split into samples of %d tokens",
          least, kShortSample);
  }
  return Status::resourceExhausted(
      formatText("%s%s%s; --rank-memory %d is enough%s, and %s", phase,
                 phase.empty() ? "" : ": ", said.message(), enough, shorter,
                 !graph.isSizeOpen ? "smaller --tokens-per-micro-batch helps"
                 : graph.options.slices.any()
                     ? "shorter samples, fewer slices or more recomputation "
                       "help"
                     : "shorter samples or more recomputation help"));
}

Status RegionSizes::refuseNeighbours(int rank, int64_t rankBytes,
                                     int64_t need) const {
  DYNA_ASSIGN_OR_RETURN(int64_t enough, enoughBytes());
  const Orchestration &made = graphs_.orchestration();
  const Neighbours pair =
      largestNeighbours(made.switches, made.order, rank, training_);
  const int64_t home = graphs_.homeBytes(rank, training_);
  const std::string needed = formatText(
      "a rank may take %s, but rank %d needs %s at least: %s for parameters "
      "and their state of '%s', which is home, and %s",
      formatBytes(rankBytes), rank, formatBytes(home + need), formatBytes(home),
      graphs_.home().name, formatBytes(need));
  if (pair.bytes < need)
    return Status::resourceExhausted(
        formatText("%s while what another strategy has goes home: "
                   "--rank-memory %d is enough",
                   needed, enough));
  return Status::resourceExhausted(formatText(
      "%s while the parameters of '%s' come and those of '%s' are still there, "
      "for which %s are left; each of the two fits alone: --rank-memory %d is "
      "enough",
      needed, graphs_.graph(pair.behind).name, graphs_.graph(pair.before).name,
      formatBytes(std::max<int64_t>(rankBytes - home, 0)), enough));
}

Status RegionSizes::sizeGraphs(int64_t given, int64_t rankBytes, bool atLeast,
                               StepRegions &regions,
                               std::vector<std::vector<int64_t>> &most) const {
  for (const PlannedGraph &graph : graphs_.graphs()) {
    auto sized = sizeGraph(graph, widestOptions(graph), rankBytes, atLeast);
    if (sized.status().code() == StatusCode::ResourceExhausted)
      return refuseGraph(graph, given, rankBytes, sized.status());
    DYNA_RETURN_IF_ERROR(sized.status());
    regions.isLimited |= sized->areLimited();
    regions.limits.push_back(sized->bytes);
    most.push_back(sized->most);
  }
  return Status::ok();
}

StatusOr<StepRegions> RegionSizes::within(int64_t rankBytes,
                                          bool atLeast) const {
  const int64_t given = rankBytes;
  // Arenas consist of whole blocks, so drop what is less than one.
  if (rankBytes > 0)
    rankBytes -= rankBytes % plan::placeAlignment;
  StepRegions regions;
  std::vector<std::vector<int64_t>> most;
  DYNA_RETURN_IF_ERROR(sizeGraphs(given, rankBytes, atLeast, regions, most));
  if (!graphs_.areSeveral()) {
    regions.bytes = regions.limits.front();
    regions.most = most.front();
    return regions;
  }
  const Orchestration &made = graphs_.orchestration();
  regions.most = needOfRegions(made.switches, made.order, most, training_).most;
  regions.bytes = regions.most;
  if (rankBytes < 0)
    return regions;
  const RegionNeed need =
      needOfRegions(made.switches, made.order, regions.limits, training_);
  for (int rank = 0; rank < static_cast<int>(regions.bytes.size()); ++rank) {
    const int64_t room = rankBytes - graphs_.homeBytes(rank, training_);
    if (need.least[rank] > room && !atLeast)
      return refuseNeighbours(rank, rankBytes, need.least[rank]);
    regions.bytes[rank] =
        std::min(regions.most[rank], std::max(room, need.least[rank]));
  }
  return regions;
}

} // namespace

void StepRegions::apply(StepGraphs &graphs) const {
  for (size_t number = 0; number < graphs.graphs().size(); ++number)
    graphs.graphs()[number].options.dynamicLimits = limits[number];
}

StatusOr<StepRegions> sizeStepRegions(const StepGraphs &graphs,
                                      int64_t tokensPerStep, bool training,
                                      int64_t rankBytes, bool atLeast) {
  return RegionSizes(graphs, tokensPerStep, training)
      .within(rankBytes, atLeast);
}

} // namespace dyna
