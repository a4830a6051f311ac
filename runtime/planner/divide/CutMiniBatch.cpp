//===- CutMiniBatch.cpp - Cuts a mini-batch into micro-batches --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/divide/CutMiniBatch.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/cut/batching/Rows.h"
#include "runtime/planner/divide/CutClock.h"
#include "runtime/planner/divide/FindSlices.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/estimate/StageTables.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace dyna {
namespace {

/// Returns the cost of a pair of attention divided by the cost of a token, over all
/// layers. It is the slope from short samples to a long one of as many tokens. Half of
/// the square of a sample's length counts as pairs.
double tokensPerPair(const ExecutableGraph &graph, const CostModel &costs,
                     const PlanOptions &options, bool trains, int64_t tokens) {
  const Model &model = graph.model();
  const Strategy &strategy = graph.strategy();
  const int perNode = shardsPerNode(graph, costs, 0);
  const int64_t few = std::max<int64_t>(tokens / 16, 1);
  auto seconds = [&](int64_t length) {
    double sum = 0;
    for (int l = 0; l < model.layers(); ++l) {
      const plan::LayerKind &kind = model.kind(l);
      const KindAt at = costs.at(l, strategy, perNode);
      const Load load = loadOfEqual(length, tokens);
      auto passes = trainingPasses(kind, modeOf(options.recompute, l),
                                   options.splitBackward);
      passes.resize(trains ? passes.size() : 1);
      for (cost::Direction pass : passes)
        sum += costs.seconds(at, pass, load);
    }
    return sum;
  };
  const auto count = static_cast<double>(tokens);
  const double perPair = 2 * (seconds(tokens) - seconds(few)) /
                         (count * static_cast<double>(tokens - few));
  const double perToken =
      seconds(few) / count - perPair * static_cast<double>(few) / 2;
  return tokens > few && perPair > 0 && perToken > 0 ? perPair / perToken : 0;
}

Status checkLengths(const std::vector<int64_t> &lengths, int64_t most) {
  for (size_t sample = 0; sample < lengths.size(); ++sample)
    if (lengths[sample] < 0 || lengths[sample] > most)
      return Status::invalidArgument(formatText(
          "sample %d has %d tokens, but a micro-batch holds at most %d", sample,
          lengths[sample], most));
  return Status::ok();
}

/// Checks that padding is legal: queries of a sample must not see the tokens
/// after it.
Status checkPadding(const Model &model, const BatchingRule &rule) {
  for (const plan::LayerKind &kind : model.manifest().kinds())
    if (rule.pads && looksBehind(kind))
      return Status::invalidArgument(formatText(
          "micro-batches '%s' are padded, but '%s' has attention that is not "
          "causal and would look at the padding",
          rule.name, kind.name()));
  return Status::ok();
}

/// Searches how much a micro-batch may have: tries shares of what a replica has, and
/// keeps the cut that is done first.
class ShareSearch {
public:
  ShareSearch(const CutClock &clock, const PlanOptions &options, bool trains,
              BatchingProblem problem)
      : clock_(clock), options_(options), trains_(trains),
        problem_(std::move(problem)) {}

  StatusOr<MicroBatches> run() {
    DYNA_RETURN_IF_ERROR(attemptShares());
    const SlicePolicy policy = options_.slices.policy;
    if (policy == SlicePolicy::None || policy == SlicePolicy::Auto)
      return std::move(chosen().cut);
    return slicesByPolicy(chosen().cut, clock_.sliceTimes(), problem_.replicas,
                          options_.slices, options_.maxTokensPerMicroBatch);
  }

private:
  /// A cut, with the order of preference among cuts.
  struct Candidate {
    MicroBatches cut;
    bool leavesIdle = false;
    CutTime time = {false, 0};

    bool isBefore(const Candidate &other) const {
      return std::pair(leavesIdle, time) <
             std::pair(other.leavesIdle, other.time);
    }
  };

  Status attemptShares() {
    DYNA_RETURN_IF_ERROR(attempt(problem_.limit));
    if (problem_.stages == 1 && problem_.replicas == 1)
      return Status::ok();
    // Micro-batches are assigned to the least loaded replica. So a replica has
    // at most its share of the sum, and (1 - 1 / replicas) of the largest more.
    // For the cut this counts almost as one more stage.
    const int64_t inFlight = problem_.stages;
    if (problem_.replicas > 1) {
      ++problem_.stages;
      tried_ = 0;
      DYNA_RETURN_IF_ERROR(attempt(problem_.limit));
    }
    const int64_t whole = std::min(problem_.limit, wholeLoad());
    // Try the limit that leaves room for as many micro-batches as 1F1B keeps in
    // flight.
    if (clock_.isLimited() && problem_.limit / inFlight < whole)
      DYNA_RETURN_IF_ERROR(attempt(problem_.limit / inFlight));
    const int64_t most = std::max(8, problem_.stages);
    const int64_t least = leastLoad();
    for (int64_t parts = 1, step = 1; parts <= most || best_.leavesIdle;) {
      DYNA_RETURN_IF_ERROR(attempt(whole / parts));
      if (whole / parts < least)
        break; // every sample has a micro-batch of its own
      // 1, 2, 3, 4, 6, 8, 12, 16 ...
      step = (parts & (parts - 1)) == 0 && parts > 1 ? parts / 2 : step;
      parts += step;
    }
    return Status::ok();
  }

  /// Returns the best of the rule's first cuts, or of its others. Searched
  /// orders gain more where micro-batches differ, so these two are compared by
  /// such orders.
  Candidate &chosen() {
    if (other_.cut.empty())
      return best_;
    if (ruleOf(options_.schedule).adapts)
      for (Candidate *candidate : {&best_, &other_})
        candidate->time = clock_.timeOf(candidate->cut, /*searched=*/true);
    return other_.isBefore(best_) ? other_ : best_;
  }

  /// Returns the bytes of one micro-batch with a replica's part of the mini-batch, if
  /// parts are equal. A part above the largest micro-batch counts as that.
  int64_t wholeLoad() const {
    const int64_t tokens = std::accumulate(problem_.lengths.begin(),
                                           problem_.lengths.end(), INT64_C(0));
    const auto samples = static_cast<int64_t>(problem_.lengths.size());
    const int64_t own = std::min(
        problem_.maxTokens, std::max<int64_t>(1, tokens / problem_.replicas));
    const double part = static_cast<double>(own) /
                        static_cast<double>(std::max<int64_t>(tokens, 1));
    double squares = 0;
    for (int64_t length : problem_.lengths)
      squares += static_cast<double>(length) * static_cast<double>(length);
    Load whole;
    whole.queries = whole.keys = own;
    whole.segments = samples * own / std::max<int64_t>(tokens, 1);
    whole.pairs = static_cast<int64_t>(squares * part);
    whole.causalPairs = (whole.pairs + own) / 2;
    return problem_.held(whole);
  }

  /// Returns the bytes of the two shortest samples together. No micro-batch has two
  /// samples in less.
  int64_t leastLoad() const {
    std::vector<int64_t> shortest(2, 0);
    std::partial_sort_copy(problem_.lengths.begin(), problem_.lengths.end(),
                           shortest.begin(), shortest.end());
    return std::max<int64_t>(
        problem_.held(loadOfSample(shortest[0]) + loadOfSample(shortest[1])),
        2);
  }

  Status attempt(int64_t share) {
    problem_.share = std::max<int64_t>(share, 1);
    if (problem_.share == tried_)
      return Status::ok();
    tried_ = problem_.share;
    const BatchingRule &rule = ruleOf(options_.batching);
    DYNA_ASSIGN_OR_RETURN(MicroBatches cut, rule.cut(problem_));
    take(sliceMicroBatches(std::move(cut), options_.slices), best_);
    if (!rule.cutOtherwise || clock_.stages() == 1 || !trains_)
      return Status::ok();
    DYNA_ASSIGN_OR_RETURN(MicroBatches other, rule.cutOtherwise(problem_));
    other = sliceMicroBatches(std::move(other), options_.slices);
    // Plans and the time to make them grow with the number of micro-batches.
    if (other.size() <= 2 * best_.cut.size())
      take(std::move(other), other_);
    return Status::ok();
  }

  /// Keeps the cut if it is better than `best`.
  void take(MicroBatches cut, Candidate &best) const {
    Candidate candidate;
    candidate.leavesIdle = leavesIdle(cut);
    candidate.time = clock_.timeOf(cut, /*searched=*/false);
    candidate.cut = std::move(cut);
    if (best.cut.empty() || candidate.isBefore(best))
      best = std::move(candidate);
  }

  /// Returns true if a replica has no micro-batch, although one of another replica has
  /// several samples.
  bool leavesIdle(const MicroBatches &cut) const {
    int busy = 0, last = -1;
    bool canBeCut = false;
    for (const plan::MicroBatch &microBatch : cut) {
      busy += microBatch.replica != last;
      last = microBatch.replica;
      canBeCut |= microBatch.segments.size() > 1;
    }
    return canBeCut && busy < problem_.replicas;
  }

  const CutClock &clock_;
  const PlanOptions &options_;
  const bool trains_;
  BatchingProblem problem_;
  Candidate best_, other_; ///< of the rule's `cut`, and of its `cutOtherwise`
  int64_t tried_ = 0;      ///< share
};

/// Returns the tokens of the longest row that several samples share.
int64_t rowTokens(const Model &model, const PlanOptions &options) {
  return std::min(longestSample(model, options),
                  options.maxTokensPerMicroBatch);
}

} // namespace

int64_t longestSample(const Model &model, const PlanOptions &options) {
  const int64_t positions = model.manifest().facts().positions();
  return positions > 0 ? std::min(positions, options.mostTokens())
                       : options.mostTokens();
}

std::vector<std::vector<int64_t>>
joinedSamples(const Model &model, const std::vector<int64_t> &lengths,
              const PlanOptions &options) {
  if (!ruleOf(options.batching).joins)
    return {};
  return fillRows(lengths, rowTokens(model, options));
}

std::vector<int64_t> joinedLengths(const Model &model,
                                   const std::vector<int64_t> &lengths,
                                   const PlanOptions &options) {
  if (!ruleOf(options.batching).joins)
    return lengths;
  std::vector<int64_t> joined;
  for (const std::vector<int64_t> &row :
       joinedSamples(model, lengths, options)) {
    joined.push_back(0);
    for (int64_t sample : row)
      joined.back() += lengths[sample];
  }
  return joined;
}

StatusOr<std::vector<plan::MicroBatch>>
cutMiniBatch(const ExecutableGraph &graph, const CostModel &costs,
             const std::vector<int64_t> &lengths, const PlanOptions &options,
             bool trains) {
  const BatchingRule &rule = ruleOf(options.batching);
  DYNA_RETURN_IF_ERROR(checkLengths(lengths, options.mostTokens()));
  DYNA_RETURN_IF_ERROR(checkPadding(graph.model(), rule));
  BatchingProblem problem;
  problem.lengths = lengths;
  problem.stages = graph.stages();
  problem.replicas = graph.strategy().dp;
  problem.maxTokens = options.maxTokensPerMicroBatch;
  problem.rowTokens = rowTokens(graph.model(), options);
  problem.tokensPerPair =
      tokensPerPair(graph, costs, options, trains, problem.rowTokens);
  if (!rule.takesShares) {
    DYNA_ASSIGN_OR_RETURN(MicroBatches cut, rule.cut(problem));
    return sliceCut(graph, costs, std::move(cut), options, trains);
  }
  StageTables tables(graph, costs, options, trains, options.mostTokens());
  problem.seconds = [&](const Load &load) { return tables.slowest(load); };
  problem.held = [](const Load &load) { return load.queries; };
  problem.limit = options.mostTokens();
  std::optional<HeldBytes> held;
  if (trains && !options.dynamicLimits.empty()) {
    held.emplace(graph, options);
    problem.held = [&](const Load &load) { return held->of(load); };
    problem.limit = held->limit();
  }
  const CutClock clock(graph, costs, tables, options, trains);
  return ShareSearch(clock, options, trains, std::move(problem)).run();
}

} // namespace dyna
