//===- LargestPlans.cpp - Bounds the memory of all plans ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/LargestPlans.h"

#include "runtime/plan/program/Bundles.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/graph/PlanCandidates.h"
#include "runtime/planner/order/GraphLinks.h"
#include "runtime/planner/write/ProgramWriter.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace dyna {

/// Writes programs rank by rank, and places them.
static StatusOr<plan::Plan>
perRank(const PlanWriter &writer, int replicas,
        const std::function<void(ProgramWriter &)> &write) {
  plan::Plan plan = writer.empty();
  const PlanChoice choice;
  DYNA_RETURN_IF_ERROR(writer.forRanks(replicas, [&](int rank) {
    ProgramWriter program(writer.graph(), choice, plan, rank);
    write(program);
    return Status::ok();
  }));
  DYNA_RETURN_IF_ERROR(writer.placeAll(plan, replicas, nullptr));
  return plan;
}

StatusOr<plan::Plan> castPlan(const PlanWriter &writer, int replicas) {
  return perRank(writer, replicas,
                 [](ProgramWriter &program) { program.casts(); });
}

StatusOr<plan::Plan> updatePlan(const PlanWriter &writer) {
  return perRank(writer, writer.graph().replicas(), [](ProgramWriter &program) {
    program.startReductions();
    program.update();
  });
}

namespace {

/// Returns how many micro-batches of the longest sample hold as much as any
/// step, with any other samples.
int64_t mostLongest(const PlanOptions &options) {
  // Padding adds to the tokens of a step, so they have no limit.
  if (options.tokensPerStep == 0 || ruleOf(options.batching).pads)
    return std::numeric_limits<int64_t>::max();
  return options.tokensPerStep / options.mostTokens() + 2;
}

/// Returns stages on which all micro-batches take equally long, and `slowdown` times as
/// long as on the stage before. Half of a backward can run apart, if anything can.
PipelineProblem evenStages(const ExecutableGraph &graph, size_t microBatches,
                           const PlanOptions &options, double slowdown) {
  const bool apart = ruleOf(options.schedule).adapts && options.splitBackward;
  PipelineProblem costs;
  costs.links = linksOf(graph, 0);
  double seconds = 1;
  for (int stage = 0; stage < graph.stages(); ++stage, seconds *= slowdown) {
    costs.forward.emplace_back(microBatches, seconds);
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    const bool runsBackward = view.hasBackward(view.endLayer() - 1);
    costs.backward.emplace_back(microBatches, runsBackward ? 2 * seconds : 0);
    if (apart)
      costs.weight.emplace_back(microBatches, seconds);
  }
  return costs;
}

/// The most that plans of the largest micro-batches need. All replicas are alike,
/// so one of them is tried, or two that share devices.
class Largest {
public:
  explicit Largest(const PlanWriter &writer)
      : writer_(writer), graph_(writer.graph()),
        replicas_(graph_.strategy().mirror ? 2 : 1),
        ofReplica_(graph_.ranksPerReplica(), 0) {}

  Status take(const plan::Plan &plan) {
    return writer_.forRanks(replicas_, [&](int rank) {
      int64_t &bytes = ofReplica_[graph_.indexInReplica(rank)];
      bytes = std::max(bytes, plan.ranks[rank].dynamicBytes);
      return Status::ok();
    });
  }

  /// Plans the largest micro-batches. `alone`: each of the longest sample.
  /// Stages take what the costs expect, or with a slowdown what `evenStages`
  /// says.
  Status takeLargest(int microBatches, const PlanOptions &options, bool trains,
                     std::optional<double> slowdown = 1, bool alone = false) {
    // Those behind what is kept at a time find the place of those before.
    const int kept = std::min(microBatches, mostKept(options, alone));
    const int most = fewOf(mostPlaced, 4, options, alone);
    const int placed = kept <= most ? microBatches : most;
    DYNA_ASSIGN_OR_RETURN(plan::Plan plan,
                          sized(placed, options, trains, slowdown, alone));
    if (placed == microBatches)
      return take(plan);
    DYNA_ASSIGN_OR_RETURN(plan::Plan half,
                          sized(placed / 2, options, trains, slowdown, alone));
    addBytes(half, placed - placed / 2, kept - placed, plan);
    return take(plan);
  }

  /// The lives of a sequential plan's blocks end with their micro-batch, and
  /// their order depends on nothing but whether others follow (the last one
  /// starts the reductions, which come in between), so that two stand for all:
  /// whatever the plan, its sequential form fits.
  Status takeSequential(const PlanOptions &options, bool training) {
    const PlanOptions sequential = lastResort(options);
    for (int count = 1; count <= 3; ++count)
      for (bool trains : {false, true})
        if (training || !trains)
          DYNA_RETURN_IF_ERROR(takeLargest(count, sequential, trains, 1, true));
    DYNA_ASSIGN_OR_RETURN(plan::Plan casts, castPlan(writer_, 1));
    return take(casts);
  }

  /// Returns how many micro-batches the first stage keeps, of as many as there
  /// may be. Slices of a micro-batch count as one.
  int mostKept(const PlanOptions &options, bool alone) const {
    const ScheduleRule &rule = ruleOf(options.schedule);
    const int kept =
        rule.mostKept({0, graph_.stages(), std::numeric_limits<int>::max(),
                       options.inFlight});
    // Windows have whole micro-batches. Other schedules run ahead by single slices, and
    // by all slices of one micro-batch.
    return rule.readsInFlight ? kept : heldBy(kept, options, alone);
  }

  /// Returns a number of micro-batches beyond which the need does not grow.
  /// With one stage a window is like any other of its size, but for the last
  /// one of a step. A pipeline is in its steady state when every stage has
  /// filled and drained once.
  int enough(const PlanOptions &options, bool alone) const {
    const int stages = graph_.stages(), kept = mostKept(options, alone);
    return stages > 1
               ? std::max(2 * kept, heldBy(2 * stages + 1, options, alone))
               : kept + 1;
  }
  /// Returns how many of `enough` micro-batches may each hold a long sample
  /// alone. The limit of tokens in a step bounds them.
  int enoughLongest(const PlanOptions &options) const {
    return options.mostTokens() > options.maxTokensPerMicroBatch
               ? static_cast<int>(std::min<int64_t>(enough(options, true),
                                                    mostLongest(options)))
               : 0;
  }

  /// Plans training. `onlyFullest`: with as many micro-batches as there may be,
  /// and no fewer. Sizes are then a good guess, which plans do not rely on.
  Status takeTraining(const PlanOptions &options, bool onlyFullest) {
    // Placement is within a few percent of what is alive at one time, so among
    // many only the fullest can need the most.
    for (bool alone : {false, true}) {
      const int upTo = alone ? enoughLongest(options) : enough(options, false);
      const int tried = fewOf(mostTried, 2, options, alone);
      const int last = std::min(std::max(upTo / 16, 8), tried);
      const int most = fewOf(mostPlaced, 4, options, alone);
      for (int count = onlyFullest ? std::max(upTo, 1) : 1; count <= upTo;
           ++count)
        if (count <= std::min(8, tried) ||
            (count > upTo - last && count <= most) || count == upTo)
          DYNA_RETURN_IF_ERROR(takeLargest(count, options, true, 1, alone));
      if (upTo == 0)
        continue;
      // Sends and inputs wait for slower stages, so there are more of them if
      // stages are less even. Factors that costs ignore (other work on the
      // machine, micro-batches of other sizes) make stages uneven too.
      for (std::optional<double> slowdown :
           {std::optional<double>(), {0.25}, {4.0}})
        if (!onlyFullest)
          DYNA_RETURN_IF_ERROR(
              takeLargest(upTo, options, true, slowdown, alone));
    }
    return Status::ok();
  }

  /// Plans evaluation. A stage has the most waiting inputs if all later stages
  /// are slower, even slightly, which takes long to show. With far slower
  /// stages the first micro-batches show it.
  Status takeEvaluation(const PlanOptions &options) {
    for (bool alone : {false, true}) {
      const int most =
          graph_.stages() > 1 ? heldBy(graph_.stages() + 2, options, alone) : 1;
      const int count = alone ? std::min(most, enoughLongest(options)) : most;
      for (double slowdown : {1, 4})
        if (count > 0)
          DYNA_RETURN_IF_ERROR(
              takeLargest(count, options, false, slowdown, alone));
    }
    return Status::ok();
  }

  std::vector<int64_t> ofRanks() const {
    std::vector<int64_t> bytes;
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      bytes.push_back(ofReplica_[graph_.indexInReplica(rank)]);
    return bytes;
  }

private:
  /// Schedules that keep what a whole step has (gpipe) keep thousands of small
  /// micro-batches, which take long to place. As all are equal here, each more than
  /// so many takes the same bytes more. Slices count.
  static constexpr int mostPlaced = 128;
  /// The first and the last numbers that are tried have so many slices in all.
  static constexpr int mostTried = 128;

  /// Tokens of a micro-batch, or of one that holds a long sample alone.
  static int64_t tokensOf(const PlanOptions &options, bool alone) {
    return alone ? options.mostTokens() : options.maxTokensPerMicroBatch;
  }
  static int64_t slicesOf(const PlanOptions &options, bool alone) {
    return options.slices.slicesOf(tokensOf(options, alone));
  }
  /// Returns a number of micro-batches that have about `count` slices, at least
  /// `atLeast`.
  static int fewOf(int count, int64_t atLeast, const PlanOptions &options,
                   bool alone) {
    const int64_t slices = slicesOf(options, alone);
    return slices == 1 ? count
                       : static_cast<int>(std::max(atLeast, count / slices));
  }
  /// Returns the largest number of micro-batches that `count` consecutive
  /// slices belong to. The first slice ends a micro-batch.
  static int heldBy(int count, const PlanOptions &options, bool alone) {
    const int64_t slices = slicesOf(options, alone);
    return slices == 1 || count == 1
               ? count
               : static_cast<int>(1 + (count - 2 + slices) / slices);
  }

  /// Adds the bytes of `more` micro-batches or slices to a plan that has `steps` of
  /// them more than `half`.
  static void addBytes(const plan::Plan &half, int64_t steps, int64_t more,
                       plan::Plan &plan) {
    for (size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      int64_t &bytes = plan.ranks[rank].dynamicBytes;
      const int64_t grown =
          std::max<int64_t>(0, bytes - half.ranks[rank].dynamicBytes);
      bytes += (grown + steps - 1) / steps * more;
    }
  }

  /// Slices of a micro-batch that are placed. All behind them are alike, so that each
  /// takes the same bytes more.
  std::size_t mostSlices(const PlanOptions &options) const {
    // Half of them fill the pipeline, and end behind the list.
    return 2 * std::max<std::size_t>({32, static_cast<size_t>(graph_.stages()),
                                      options.slices.lengths.size()});
  }

  StatusOr<plan::Plan> sized(int microBatches, const PlanOptions &options,
                             bool trains, std::optional<double> slowdown,
                             bool alone) {
    SliceChoice slices;
    slices.lengths = options.slices.cut(tokensOf(options, alone));
    const std::size_t all = slices.lengths.size(), most = mostSlices(options);
    slices.lengths.resize(std::min(all, most));
    DYNA_ASSIGN_OR_RETURN(plan::Plan plan, sized(microBatches, options, slices,
                                                 trains, slowdown, alone));
    if (all <= most)
      return plan;
    const int64_t placedRows = storeRows(slices);
    slices.lengths.resize(most / 2);
    DYNA_ASSIGN_OR_RETURN(plan::Plan half, sized(microBatches, options, slices,
                                                 trains, slowdown, alone));
    const auto steps = static_cast<int64_t>(most - most / 2),
               more = static_cast<int64_t>(all - most);
    addBytes(half, steps, more, plan);
    // Rows of stores are rounded up once for each micro-batch.
    const int64_t rows = (placedRows - storeRows(slices)) * more / steps;
    addStores(dyna_round_rows(tokensOf(options, alone)) - placedRows - rows,
              std::min(microBatches, mostKept(options, alone)), plan);
    return plan;
  }

  /// Returns the rows of the store of a micro-batch with these slices.
  static int64_t storeRows(const SliceChoice &slices) {
    return dyna_round_rows(std::accumulate(slices.lengths.begin(),
                                           slices.lengths.end(), int64_t{0}));
  }

  /// Adds rows to the stores of so many micro-batches.
  void addStores(int64_t rows, int microBatches, plan::Plan &plan) const {
    for (int rank = 0; rows > 0 && rank < plan.rankCount(); ++rank) {
      const RankView &view = graph_.replicaView(rank);
      for (int l = view.firstLayer(); l < view.endLayer(); ++l)
        plan.ranks[rank].dynamicBytes +=
            microBatches *
            (view.keyBytes(l, rows) + view.keyGradientBytes(l, rows));
    }
  }

  /// Plans micro-batches of exactly these slices.
  StatusOr<plan::Plan> sized(int microBatches, const PlanOptions &options,
                             const SliceChoice &slices, bool trains,
                             std::optional<double> slowdown, bool alone) {
    plan::Plan plan = writer_.empty();
    plan::Segment all;
    all.length = std::accumulate(slices.lengths.begin(), slices.lengths.end(),
                                 int64_t{0});
    for (int m = 0; m < microBatches * replicas_; ++m) {
      all.sample = m;
      plan.microBatches.push_back({{all}, m / microBatches});
    }
    plan.microBatches = sliceMicroBatches(std::move(plan.microBatches), slices);
    auto seconds = [&](int, const std::vector<int> &own) {
      if (!slowdown)
        return estimateStages(graph_, writer_.costs(), plan, own, options);
      PipelineProblem even = evenStages(graph_, own.size(), options, *slowdown);
      even.previous = findBundles(plan, own).previous(own);
      return even;
    };
    DYNA_RETURN_IF_ERROR(
        writer_.write(plan, replicas_, options, trains, seconds));
    const Load largest = largestLoadOf(graph_.model(), options, alone);
    DYNA_RETURN_IF_ERROR(writer_.placeAll(plan, replicas_, &largest));
    return plan;
  }

  const PlanWriter &writer_;
  const ExecutableGraph &graph_;
  const int replicas_; ///< that are tried
  std::vector<int64_t> ofReplica_;
};

} // namespace

/// Slices that stand for those of a policy. The rows of each are rounded up, so many small
/// ones take more.
static int64_t usualSlices(const PlanOptions &options) {
  constexpr int64_t usual = 4, most = 64;
  const SliceChoice &slices = options.slices;
  const int64_t tokens = options.mostTokens();
  int64_t asked = slices.number;
  if (slices.policy == SlicePolicy::Chunks) {
    const int64_t chunk = slices.number > 0 ? slices.number : leastChunk;
    asked = (tokens + chunk - 1) / chunk;
  }
  return std::min(std::clamp(asked, usual, most), tokens);
}

/// Cuts that stand for all that the planner may choose: whole micro-batches, and slices
/// with the stores that these need. Under `auto` slices do not have to fit.
static std::vector<PlanOptions> withFixedSlices(const PlanWriter &writer,
                                                const PlanOptions &options) {
  std::vector<PlanOptions> all = {options};
  if (options.slices.policy == SlicePolicy::None)
    return all;
  all[0].slices = {};
  if (!checkSliceable(writer.graph().model(), options.batching).isOk())
    return all;
  all.push_back(all[0]);
  all[1].slices.count = options.slices.policy == SlicePolicy::Auto
                            ? std::min<int64_t>(2, options.mostTokens())
                            : usualSlices(options);
  return all;
}

StatusOr<std::vector<int64_t>> leastDynamicBytes(const PlanWriter &writer,
                                                 const PlanOptions &options,
                                                 bool training) {
  // Smaller micro-batches than those that slices were asked for are tried too.
  PlanOptions fitting = options;
  fitting.slices = options.slices.within(options.maxTokensPerMicroBatch,
                                         options.mostTokens());
  DYNA_RETURN_IF_ERROR(
      checkOptions(writer.graph().model(), writer.graph().ranks(), fitting));
  Largest largest(writer);
  for (const PlanOptions &fixed : withFixedSlices(writer, fitting)) {
    // What `auto` cuts stays whole if slices do not fit.
    if (options.slices.policy == SlicePolicy::Auto && fixed.slices.any())
      break;
    DYNA_RETURN_IF_ERROR(largest.takeSequential(fixed, training));
  }
  return largest.ofRanks();
}

StatusOr<std::vector<int64_t>> largestDynamicBytes(const PlanWriter &writer,
                                                   const PlanOptions &options,
                                                   bool training) {
  DYNA_RETURN_IF_ERROR(
      checkOptions(writer.graph().model(), writer.graph().ranks(), options));
  Largest largest(writer);
  for (const PlanOptions &fixed : withFixedSlices(writer, options)) {
    // Evaluation and the last resort stay whole under `auto`.
    const bool onlyTrains =
        options.slices.policy == SlicePolicy::Auto && fixed.slices.any();
    if (!onlyTrains) {
      DYNA_RETURN_IF_ERROR(largest.takeSequential(fixed, training));
      // What else is tried makes that form rare.
      DYNA_RETURN_IF_ERROR(largest.takeEvaluation(fixed));
    }
    if (training)
      for (const PlanChoice &tried : withSimpleOrders(writer, fixed))
        DYNA_RETURN_IF_ERROR(largest.takeTraining(tried, onlyTrains));
  }
  return largest.ofRanks();
}

} // namespace dyna
