//===- CutMiniBatch.cpp - Micro-batches of a mini-batch -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/CutMiniBatch.h"

#include "runtime/base/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/cut/batching/Rows.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/estimate/StageTables.h"
#include "runtime/planner/graph/ChooseRecompute.h"
#include "runtime/planner/graph/ChooseSlices.h"
#include "runtime/planner/order/GraphLinks.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/write/PipelineSchedule.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
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
      const KindAt at{model.layer(l).kind(), strategy.tp, strategy.sp, perNode};
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

/// Behind a sample there are tokens that a query of it must not see.
Status checkPadding(const Model &model, const BatchingRule &rule) {
  for (const plan::LayerKind &kind : model.manifest().kinds())
    if (rule.pads && looksBehind(kind))
      return Status::invalidArgument(formatText(
          "micro-batches '%s' are padded, but '%s' has attention that is not "
          "causal and would look at the padding",
          rule.name, kind.name()));
  return Status::ok();
}

/// Returns one of all stages whose layers cost the same, for each such set.
std::vector<int> differentStages(const ExecutableGraph &graph,
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

class ShareSearch {
public:
  ShareSearch(const ExecutableGraph &graph, const CostModel &costs,
              const StageTables &tables, const PlanOptions &options,
              bool trains, BatchingProblem problem)
      : graph_(graph), costs_(costs), tables_(tables), options_(options),
        trains_(trains), problem_(std::move(problem)) {}

  StatusOr<MicroBatches> run() {
    DYNA_RETURN_IF_ERROR(attemptShares());
    const SlicePolicy policy = options_.slices.policy;
    if (policy == SlicePolicy::None || policy == SlicePolicy::Auto)
      return std::move(chosen().cut);
    return slice(chosen().cut);
  }

  /// Cuts micro-batches into slices by the policy, which is not `Auto`.
  StatusOr<MicroBatches> slice(const MicroBatches &whole) const {
    return slicesByPolicy(whole, times(), problem_.replicas, options_.slices,
                          options_.maxTokensPerMicroBatch);
  }

  /// Returns the cuts into slices that are faster than the whole by the clock of the
  /// schedule, with messages; the fastest first, `most` of them.
  StatusOr<std::vector<SlicedCut>> fasterSlices(const MicroBatches &whole,
                                                size_t most) {
    const bool searched = ruleOf(options_.schedule).adapts;
    countsMessages_ = true;
    // What fits depends on modes, which complete plans choose.
    ignoresMemory_ = choosesModes();
    const Time limit = timeOf(whole, searched);
    const SliceTimes costs = times();
    DYNA_ASSIGN_OR_RETURN(auto all,
                          slicesByCost(whole, costs, problem_.replicas));
    std::vector<std::pair<Time, size_t>> faster;
    for (size_t i = 0; i < all.size(); ++i)
      if (const Time time = timeOf(all[i].cut, searched, all[i].slowest);
          time < limit)
        faster.push_back({time, i});
    std::sort(faster.begin(), faster.end());
    std::vector<SlicedCut> best;
    for (size_t i = 0; i < std::min(most, faster.size()); ++i)
      best.push_back({std::move(all[faster[i].second].cut), {}});
    if (choosesModes() && !best.empty()) {
      DYNA_ASSIGN_OR_RETURN(SlicedCut joint, sliceWithin(whole));
      if (!joint.microBatches.empty())
        best.push_back(std::move(joint));
    }
    return best;
  }

private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  /// First: true if a replica's memory does not fit the order that is asked for. Second:
  /// seconds of the slowest replica, infinite if one fits no order.
  using Time = std::pair<bool, double>;

  /// A cut, with the order of preference among cuts.
  struct Candidate {
    MicroBatches cut;
    bool leavesIdle = false;
    Time time = {false, 0};

    bool isBefore(const Candidate &other) const {
      return std::pair(leavesIdle, time) <
             std::pair(other.leavesIdle, other.time);
    }
  };

  Status attemptShares() {
    DYNA_RETURN_IF_ERROR(attempt(problem_.limit));
    if (problem_.stages == 1 && problem_.replicas == 1)
      return Status::ok();
    // However micro-batches are dealt, each to who has least, a replica has at
    // most its share of the sum and (1 - 1 / replicas) of the largest more: to
    // the cut that is nearly one stage more.
    const int64_t inFlight = problem_.stages;
    if (problem_.replicas > 1) {
      ++problem_.stages;
      tried_ = 0;
      DYNA_RETURN_IF_ERROR(attempt(problem_.limit));
    }
    const int64_t whole = std::min(problem_.limit, wholeLoad());
    // What leaves room for as many micro-batches as 1F1B has in flight.
    if (isLimited() && problem_.limit / inFlight < whole)
      DYNA_RETURN_IF_ERROR(attempt(problem_.limit / inFlight));
    const int64_t most = std::max(8, problem_.stages);
    const int64_t least = leastLoad();
    for (int64_t parts = 1, step = 1; parts <= most || best_.leavesIdle;) {
      DYNA_RETURN_IF_ERROR(attempt(whole / parts));
      if (whole / parts < least)
        break; // every sample is alone
      // 1, 2, 3, 4, 6, 8, 12, 16 ...
      step = (parts & (parts - 1)) == 0 && parts > 1 ? parts / 2 : step;
      parts += step;
    }
    return Status::ok();
  }

  /// The best of the rule's first cuts, or of its others. Searched orders gain more
  /// where micro-batches differ, so these two are compared by such orders.
  Candidate &chosen() {
    if (other_.cut.empty())
      return best_;
    if (ruleOf(options_.schedule).adapts)
      for (Candidate *candidate : {&best_, &other_})
        candidate->time = timeOf(candidate->cut, /*searched=*/true);
    return other_.isBefore(best_) ? other_ : best_;
  }

  /// Whether loads are bytes.
  bool isLimited() const {
    return trains_ && !ignoresMemory_ && !options_.dynamicLimits.empty();
  }
  bool choosesModes() const {
    return trains_ && options_.chooseRecompute &&
           !options_.dynamicLimits.empty();
  }

  /// Cuts slices and chooses their modes together, so that the schedule keeps no more
  /// than there is. Returns nothing if nothing fits.
  StatusOr<SlicedCut> sliceWithin(const MicroBatches &whole) const;
  /// The same for one replica.
  StatusOr<ModeCut> sliceWithin(const MicroBatches &whole, int replica,
                                const ModeTimes &modes, int64_t limit) const;
  /// Returns the bytes that the fullest stage keeps of such a cut. A schedule that goes
  /// by memory counts as 1F1B.
  int64_t peakOf(const ModeCut &cut, int replica, const ModeTimes &modes) const;

  /// Of what a replica has, if all have as much, in one micro-batch, if it may
  /// have as much.
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

  /// Of the two shortest samples: with less, no micro-batch has two.
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
    if (!rule.cutOtherwise || graph_.stages() == 1 || !trains_)
      return Status::ok();
    DYNA_ASSIGN_OR_RETURN(MicroBatches other, rule.cutOtherwise(problem_));
    other = sliceMicroBatches(std::move(other), options_.slices);
    // Plans and the time to make them grow with the number of micro-batches.
    if (other.size() <= 2 * best_.cut.size())
      take(std::move(other), other_);
    return Status::ok();
  }

  SliceTimes times() const { return timesOf(tables_, options_); }

  /// `tables` are those of `options`.
  SliceTimes timesOf(const StageTables &tables,
                     const PlanOptions &options) const {
    return {tables, differentStages(graph_, costs_, options),
            [this](const Load &load) {
              return messageSeconds(graph_, costs_, {load});
            }};
  }

  /// Keeps the cut if it is better than `best`.
  void take(MicroBatches cut, Candidate &best) const {
    Candidate candidate;
    candidate.leavesIdle = leavesIdle(cut);
    candidate.time = timeOf(cut, /*searched=*/false);
    candidate.cut = std::move(cut);
    if (best.cut.empty() || candidate.isBefore(best))
      best = std::move(candidate);
  }

  /// Whether a replica has nothing while a micro-batch could be two.
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

  /// Times the slowest replica, or the one that is given; with `searched` under the best
  /// simple order of a schedule that searches.
  Time timeOf(const MicroBatches &cut, bool searched, int only = -1) const {
    plan::Plan plan;
    plan.microBatches = cut;
    const auto owned = microBatchesOfReplicas(plan, problem_.replicas);
    Time slowest = {false, 0};
    for (int replica = 0; replica < problem_.replicas; ++replica) {
      if (only >= 0 && replica != only)
        continue;
      PipelineProblem pipeline = pipelineOf(plan, owned[replica]);
      if (isLimited()) {
        holdBlocks(pipeline, graph_, plan, owned[replica], options_);
        limitStages(pipeline, graph_, replica, options_,
                    std::vector<int64_t>(graph_.ranks(), 0));
        pipeline.inFlight = options_.inFlight;
      }
      const Time time = searched ? timeOfSearched(std::move(pipeline))
                                 : timeOfReplica(std::move(pipeline));
      slowest = {slowest.first || time.first,
                 std::max(slowest.second, time.second)};
    }
    return slowest;
  }

  Time timeOfSearched(PipelineProblem pipeline) const {
    pipeline.searchItems = 0;
    auto orders = ruleOf(options_.schedule).order(pipeline);
    if (orders.isOk() && timeItems(*orders, pipeline, {}).isOk())
      return {false, makespanOf(*orders)};
    return {true, never};
  }

  Time timeOfReplica(PipelineProblem pipeline) const {
    if (!isLimited()) {
      // A search of orders takes as long as all else together.
      PlanOptions options = options_;
      if (ruleOf(options.schedule).adapts)
        options.schedule = Schedule::Cyclic;
      auto schedule = schedulePipeline(pipeline, options, trains_);
      return schedule.isOk() ? Time(false, makespanOf(schedule->stages))
                             : Time(true, never);
    }
    const double seconds = makespanWithin(pipeline, options_.schedule);
    if (seconds < never)
      return {false, seconds};
    return {true, makespanWithin(pipeline, Schedule::Adaptive)};
  }

  PipelineProblem pipelineOf(const plan::Plan &plan,
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

  const ExecutableGraph &graph_;
  const CostModel &costs_;
  const StageTables &tables_;
  const PlanOptions &options_;
  const bool trains_;
  BatchingProblem problem_;
  Candidate best_, other_; ///< of the rule's `cut`, and of its `cutOtherwise`
  int64_t tried_ = 0;      ///< share
  bool countsMessages_ = false;
  bool ignoresMemory_ = false;
};

StatusOr<SlicedCut> ShareSearch::sliceWithin(const MicroBatches &whole) const {
  constexpr plan::Recompute all[] = {
      plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL};
  std::deque<StageTables> tables;
  ModeTimes modes;
  int64_t limit = 0;
  for (plan::Recompute mode : all) {
    PlanOptions uniform = options_;
    uniform.recompute = {mode};
    uniform.slices.policy = SlicePolicy::Auto; // their keys count
    const HeldBytes held(graph_, uniform);
    limit = held.limit();
    tables.emplace_back(graph_, costs_, uniform, /*trains=*/true,
                        options_.mostTokens());
    modes.push_back({timesOf(tables.back(), uniform),
                     [held](const Load &load) { return held.of(load); }});
  }
  SlicedCut sliced;
  for (int replica = 0; replica < problem_.replicas; ++replica) {
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

StatusOr<ModeCut> ShareSearch::sliceWithin(const MicroBatches &whole,
                                           int replica, const ModeTimes &modes,
                                           int64_t limit) const {
  constexpr int tries = 3;
  // The program limits all bytes together; a schedule gives some back before it takes
  // others. So the limit is as many times what there is.
  int64_t total = std::numeric_limits<int64_t>::max();
  for (int turn = 0;; ++turn) {
    DYNA_ASSIGN_OR_RETURN(ModeCut cut,
                          sliceWithModes(whole, replica, modes, total));
    if (cut.modes.empty()) // nothing to do for this replica
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

int64_t ShareSearch::peakOf(const ModeCut &cut, int replica,
                            const ModeTimes &modes) const {
  plan::Plan plan;
  plan.microBatches = cut.microBatches;
  const auto owned = microBatchesOfReplicas(plan, problem_.replicas);
  PipelineProblem pipeline = pipelineOf(plan, owned[replica]);
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

/// Of a row that several samples may share.
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
sliceCut(const ExecutableGraph &graph, const CostModel &costs,
         std::vector<plan::MicroBatch> whole, const PlanOptions &options,
         bool trains) {
  if (options.slices.policy == SlicePolicy::None)
    return sliceMicroBatches(std::move(whole), options.slices);
  if (options.slices.policy == SlicePolicy::Auto) {
    DYNA_ASSIGN_OR_RETURN(auto best, fasterSlices(graph, costs, whole, options,
                                                  trains, /*most=*/1));
    return best.empty() ? std::move(whole) : std::move(best[0].microBatches);
  }
  BatchingProblem problem;
  problem.replicas = graph.strategy().dp;
  StageTables tables(graph, costs, options, trains, options.mostTokens());
  return ShareSearch(graph, costs, tables, options, trains, std::move(problem))
      .slice(whole);
}

StatusOr<std::vector<SlicedCut>>
fasterSlices(const ExecutableGraph &graph, const CostModel &costs,
             const std::vector<plan::MicroBatch> &whole,
             const PlanOptions &options, bool trains, size_t most) {
  if (!trains || graph.stages() == 1 ||
      !checkSliceable(graph.model(), options.batching).isOk())
    return std::vector<SlicedCut>();
  BatchingProblem problem;
  problem.stages = graph.stages();
  problem.replicas = graph.strategy().dp;
  StageTables tables(graph, costs, options, trains, options.mostTokens());
  return ShareSearch(graph, costs, tables, options, trains, std::move(problem))
      .fasterSlices(whole, most);
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
  return ShareSearch(graph, costs, tables, options, trains, std::move(problem))
      .run();
}

} // namespace dyna
