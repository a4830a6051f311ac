//===- SizedSteps.cpp - Sizes steps of given strategies -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/SizedSteps.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/report/StepReport.h"
#include "runtime/planner/step/StepRegions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace dyna {

static void addNotes(std::vector<std::string> &notes,
                     const std::vector<std::string> &more,
                     const std::string &strategy) {
  for (const std::string &note : more)
    notes.push_back(strategy.empty()
                        ? note
                        : formatText("strategy '%s': %s", strategy, note));
}

SizedSteps::Asked SizedSteps::Asked::alone(PlanRequest request) {
  Asked asked;
  asked.strategies = {request.strategy};
  asked.ranges = LengthRanges::ofAll(request.strategy.name);
  asked.request = std::move(request);
  return asked;
}

StatusOr<std::unique_ptr<SizedSteps>>
SizedSteps::create(const CostModel &costs, Asked asked,
                   std::vector<std::string> &notes) {
  auto made = std::make_unique<SizedSteps>();
  std::vector<PlannedGraph> all;
  for (const LengthRange &range : asked.ranges.ranges()) {
    asked.request.strategy = asked.strategies[range.strategy];
    std::vector<std::string> own;
    DYNA_ASSIGN_OR_RETURN(PlannedGraph graph,
                          planGraph(costs, asked.request, own));
    addNotes(notes, own, range.name);
    all.push_back(std::move(graph));
  }
  DYNA_ASSIGN_OR_RETURN(
      made->graphs_,
      StepGraphs::create(std::move(asked.ranges), std::move(all)));
  StepGraphs &graphs = *made->graphs_;
  const int64_t rankBytes = asked.memoryBytes > 0 ? asked.memoryBytes : -1;
  for (PlannedGraph &graph : graphs.graphs())
    if (rankBytes > 0) {
      std::vector<std::string> own;
      asked.request.strategy = graph.graph->strategy();
      DYNA_RETURN_IF_ERROR(limitMicroBatches(graphs, graph, asked.request,
                                             /*training=*/true, rankBytes,
                                             own));
      addNotes(notes, own, graph.name);
    }
  made->longest_ = asked.longest;
  if (asked.shortens) {
    DYNA_ASSIGN_OR_RETURN(const int64_t limit,
                          longestSampleOf(graphs, graphs.ofLongest(),
                                          /*training=*/true, rankBytes));
    made->longest_ = std::min(asked.longest, limit);
  }
  DYNA_RETURN_IF_ERROR(setLongestSample(graphs, made->longest_));
  if (asked.isScreening && graphs.count() == 1 &&
      graphs.home().options.slices.any()) {
    DYNA_RETURN_IF_ERROR(made->sizeForScreening(rankBytes));
    return made;
  }
  DYNA_ASSIGN_OR_RETURN(StepRegions regions,
                        sizeStepRegions(graphs, asked.request.tokensPerBatch,
                                        /*training=*/true, rankBytes,
                                        /*atLeast=*/true));
  regions.apply(graphs);
  for (size_t rank = 0; rankBytes > 0 && rank < regions.bytes.size(); ++rank)
    made->lackingBytes_ = std::max(
        made->lackingBytes_,
        graphs.homeBytes(static_cast<int>(rank), true) + regions.bytes[rank] -
            (rankBytes - rankBytes % plan::placeAlignment));
  made->planner_ = std::make_unique<StepPlanner>(graphs, asked.merges,
                                                 std::move(regions.bytes));
  return made;
}

Status SizedSteps::sizeForScreening(int64_t rankBytes) {
  PlannedGraph &own = graphs_->graphs().front();
  std::vector<int64_t> room;
  if (rankBytes > 0) {
    DYNA_ASSIGN_OR_RETURN(
        const std::vector<int64_t> least,
        own.planner->leastDynamicBytes(own.options, /*training=*/true));
    for (int rank = 0; rank < own.graph->ranks(); ++rank) {
      const int64_t left = rankBytes - rankBytes % plan::placeAlignment -
                           graphs_->homeBytes(rank, /*training=*/true);
      lackingBytes_ = std::max(lackingBytes_, least[rank] - left);
      room.push_back(std::max(left, least[rank]));
    }
  }
  own.options.dynamicLimits = std::move(room);
  planner_ = std::make_unique<StepPlanner>(*graphs_, /*merges=*/false,
                                           own.options.dynamicLimits);
  return Status::ok();
}

StatusOr<double>
SizedSteps::estimate(const std::vector<std::vector<int64_t>> &steps) const {
  const PlannedGraph &own = planner_->home();
  double seconds = 0;
  for (const std::vector<int64_t> &lengths : steps) {
    DYNA_ASSIGN_OR_RETURN(
        double one, own.planner->estimateStep(
                        joinedLengths(own.graph->model(), lengths, own.options),
                        own.options));
    seconds += one;
  }
  return seconds / static_cast<double>(std::max<size_t>(steps.size(), 1));
}

StatusOr<double>
SizedSteps::play(const std::vector<std::vector<int64_t>> &steps) const {
  double seconds = 0;
  for (const std::vector<int64_t> &lengths : steps) {
    DYNA_ASSIGN_OR_RETURN(
        VerifiedStep step,
        planner_->plan(
            lengths,
            std::accumulate(lengths.begin(), lengths.end(), INT64_C(0)),
            /*trains=*/true, /*update=*/true));
    DYNA_ASSIGN_OR_RETURN(auto phases, playPhases(*planner_, step, {}));
    seconds += reportStep(*planner_, step, phases).seconds;
  }
  return seconds / static_cast<double>(std::max<size_t>(steps.size(), 1));
}

int64_t cutLengths(std::vector<int64_t> &lengths, int64_t positions) {
  int64_t cut = 0;
  for (int64_t &length : lengths)
    if (positions > 0 && length > positions) {
      length = positions;
      ++cut;
    }
  return cut;
}

std::vector<std::vector<int64_t>> drawSteps(std::vector<int64_t> lengths,
                                            int64_t tokensPerStep) {
  constexpr int64_t enoughTokens = 1 << 19;
  const int64_t count = std::clamp<int64_t>(enoughTokens / tokensPerStep, 1, 4);
  // The time to plan grows faster than tokens, and this many show uneven loads.
  tokensPerStep = std::min(tokensPerStep, 2 * enoughTokens);
  std::sort(lengths.begin(), lengths.end());
  double tokens = 0;
  for (int64_t length : lengths)
    tokens += static_cast<double>(length);
  const auto all = static_cast<double>(lengths.size());
  const auto wanted = static_cast<double>(count * tokensPerStep);
  const int64_t samples =
      std::max<int64_t>(count, std::llround(wanted * all / tokens));
  std::vector<int64_t> drawn;
  for (int64_t i = 0; i < samples; ++i)
    drawn.push_back(lengths[static_cast<size_t>(
        (static_cast<double>(i) + 0.5) * all / static_cast<double>(samples))]);
  std::mt19937_64 random(1);
  for (size_t i = drawn.size(); i > 1; --i)
    std::swap(drawn[i - 1], drawn[random() % i]);
  std::vector<std::vector<int64_t>> steps;
  double left = std::accumulate(drawn.begin(), drawn.end(), 0.0);
  size_t next = 0;
  for (int64_t step = count; step > 0; --step) {
    const double share = left / static_cast<double>(step);
    double taken = 0;
    std::vector<int64_t> &own = steps.emplace_back();
    while (next < drawn.size() && (own.empty() || step == 1 || taken < share)) {
      own.push_back(drawn[next++]);
      taken += static_cast<double>(own.back());
    }
    left -= taken;
    if (own.empty())
      steps.pop_back();
  }
  return steps;
}

} // namespace dyna
