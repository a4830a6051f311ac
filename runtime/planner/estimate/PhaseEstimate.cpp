//===- PhaseEstimate.cpp - Estimates a phase under a strategy -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/PhaseEstimate.h"

#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"

#include <limits>
#include <map>

namespace dyna {
namespace {

/// Returns number of micro-batches that a pipeline holds.
int64_t heldCount(const ExecutableGraph &graph, const PlanOptions &options) {
  return graph.stages() > 1 ? graph.stages() : options.inFlight;
}

/// Returns the tokens of one of as many micro-batches as a pipeline holds, within its
/// memory; `most` at most.
int64_t tokensWithin(const ExecutableGraph &graph, const PlanOptions &options,
                     int64_t most) {
  if (options.dynamicLimits.empty())
    return most;
  const HeldBytes held(graph, options);
  const int64_t inFlight = heldCount(graph, options);
  int64_t fitting = 0;
  while (most - fitting > 1) {
    const int64_t middle = fitting + (most - fitting) / 2;
    (held.of(loadOfSample(middle)) <= held.limit() / inFlight ? fitting
                                                              : most) = middle;
  }
  return std::max<int64_t>(fitting, 1);
}

/// Returns how the options cut slices, or none if there is nothing to cut.
SliceChoice slicesOf(const ExecutableGraph &graph, const PlanOptions &options) {
  if (graph.stages() == 1 || ruleOf(options.batching).pads)
    return {};
  for (const plan::LayerKind &kind : graph.model().manifest().kinds())
    if (looksBehind(kind) || lacksKeyStore(kind))
      return {};
  return options.slices;
}

/// Exchanges of one stage, over all ranks that hold its parameters.
struct StageExchange {
  double reduce = 0, gather = 0, update = 0;
};

StageExchange exchangeOf(const ExecutableGraph &graph, const CostModel &costs,
                         int stage) {
  const int rank = graph.rankAt({0, stage, 0});
  const RankView &view = graph.replicaView(rank);
  const Strategy &strategy = graph.strategy();
  const bool zero = strategy.zero;
  struct Bytes {
    double gradients = 0, values = 0;
    int parameter = 0;
  };
  std::map<int, Bytes> groups;
  double updated = 0, all = 0;
  for (int p = 0; p < view.parameters(); ++p) {
    if (!view.holds(p) || view.isFrozen(p))
      continue;
    Bytes &bytes = groups[graph.holderGroup(p, rank)];
    const auto elements = static_cast<double>(view.elements(p));
    bytes.parameter = p;
    bytes.gradients +=
        elements * static_cast<double>(elementBytes(view.gradientType()));
    bytes.values +=
        elements * static_cast<double>(elementBytes(view.computeType(p)));
    all += elements;
    updated += elements / (zero ? view.place(p).holders : 1);
  }
  StageExchange seconds;
  for (const auto &[index, bytes] : groups) {
    const GroupShape shape =
        costs.cluster().shapeOf(graph.holders(bytes.parameter, rank));
    seconds.reduce += costs.cluster().exchangeSeconds(
        zero ? plan::LayerExchange::REDUCE_SCATTER
             : plan::LayerExchange::ALL_REDUCE,
        bytes.gradients, shape);
    if (zero)
      seconds.gather += costs.cluster().exchangeSeconds(
          plan::LayerExchange::ALL_GATHER, bytes.values, shape);
  }
  const int perNode = shardsPerNode(graph, costs, stage);
  for (int l = view.firstLayer(); l < view.endLayer(); ++l)
    seconds.update +=
        costs.seconds(costs.at(l, strategy, perNode), cost::UPDATE, Load());
  if (all > 0)
    seconds.update *= updated / all;
  return seconds;
}

/// Returns the seconds of the messages of a micro-batch through all stages.
double messageSeconds(const ExecutableGraph &graph, const CostModel &costs,
                      int64_t tokens) {
  double seconds = 0;
  for (int edge : graph.crossingEdges()) {
    const int from = graph.rankAt({0, graph.endsOf(edge).producer, 0});
    const int to = graph.rankAt({0, graph.endsOf(edge).consumer, 0});
    const int64_t bytes =
        graph.replicaView(to).messageBytes(edge, loadOfSample(tokens));
    seconds +=
        costs.cluster().messageSeconds(from, to, static_cast<double>(bytes));
  }
  return seconds;
}

} // namespace

PhaseEstimate::PhaseEstimate(const ExecutableGraph &graph,
                             const CostModel &costs, const PlanOptions &options)
    : PhaseEstimate(graph, costs, options,
                    std::make_shared<StageTables>(graph, costs, options,
                                                  /*trains=*/true,
                                                  options.mostTokens())) {}

PhaseEstimate::PhaseEstimate(const ExecutableGraph &graph,
                             const CostModel &costs, const PlanOptions &options,
                             std::shared_ptr<const StageTables> tables)
    : tables_(std::move(tables)), stages_(graph.stages()),
      replicas_(graph.replicas()), slices_(slicesOf(graph, options)),
      mostTokens_(tokensWithin(graph, options, options.maxTokensPerMicroBatch)),
      heldTokens_(options.dynamicLimits.empty()
                      ? 0
                      : heldCount(graph, options) *
                            tokensWithin(graph, options, options.mostTokens())),
      // Gradients are sent back over the same links.
      messageSeconds_(2 * messageSeconds(graph, costs, 0)),
      messageSecondsPerToken_(
          (2 * messageSeconds(graph, costs, mostTokens_) - messageSeconds_) /
          static_cast<double>(mostTokens_)) {
  for (int stage = 0; stage < stages_; ++stage) {
    const StageExchange exchange = exchangeOf(graph, costs, stage);
    const auto &layers = graph.stage(stage);
    reductionSeconds_ = std::max(reductionSeconds_, exchange.reduce);
    lastReduction_ =
        std::max(lastReduction_,
                 exchange.reduce / (layers.endLayer - layers.firstLayer));
    updateSeconds_ = std::max(updateSeconds_, exchange.update);
    gatherSeconds_ = std::max(gatherSeconds_, exchange.gather);
  }
}

double PhaseEstimate::pathSeconds(const Load &load) const {
  return tables_->path(load) + messageSeconds_ +
         messageSecondsPerToken_ * static_cast<double>(load.queries);
}

/// Returns the mean of loads that add up to `sum`, rounded up so that no count of a mean
/// is 0.
static Load meanOf(const Load &sum, int64_t loads) {
  auto mean = [&](int64_t count) { return (count + loads - 1) / loads; };
  return {mean(sum.queries), mean(sum.keys),        mean(sum.segments),
          mean(sum.pairs),   mean(sum.causalPairs), mean(sum.targets)};
}

double PhaseEstimate::pipelineSeconds(const PhaseLengths &lengths,
                                      int64_t perReplica,
                                      double inFlight) const {
  const Load &sum = lengths.load;
  const int64_t count = std::min<int64_t>(perReplica * replicas_, sum.segments);
  const Load mean = meanOf(sum, count);
  const double seconds = tables_->slowest(mean);
  const double longest = pathSeconds(loadOfSample(lengths.longest));
  // If samples are assigned one by one and the last round is not full, some
  // replicas have one sample more.
  const double each = seconds * static_cast<double>(perReplica);
  const double path = pathSeconds(mean);
  // With fewer micro-batches in flight than stages, some stages always wait.
  const double waiting =
      inFlight > 0 && inFlight < stages_
          ? path * std::max(1.0, static_cast<double>(perReplica) / inFlight)
          : 0;
  return std::max(
             {std::max(each, seconds) + path - seconds, longest, waiting}) +
         reductionBehind(mean);
}

double PhaseEstimate::slicedPipeline(const PhaseLengths &lengths,
                                     int64_t perReplica,
                                     int64_t heldTokens) const {
  const Load mean = meanOf(lengths.load, perReplica * replicas_);
  const double seconds = tables_->slowest(mean);
  const int64_t parts = (lengths.longest + mean.queries - 1) / mean.queries;
  const double longest =
      tables_->slowest(meanOf(loadOfSample(lengths.longest), parts)) *
      static_cast<double>(parts);
  const double fill = pathSeconds(mean) - seconds;
  // All slices of a sample are kept until its last one has passed. With no room for
  // slices of the next sample beside them, the pipeline runs empty behind each sample.
  double refills = 0;
  if (heldTokens > 0) {
    const auto held = static_cast<double>(heldTokens);
    const double beside = static_cast<double>((stages_ - 1) * mean.queries);
    const double lacking = std::clamp(
        (static_cast<double>(lengths.longest) + beside - held) / beside, 0.0,
        1.0);
    const double own = static_cast<double>(lengths.load.queries) /
                       static_cast<double>(replicas_);
    refills = lacking * std::max(0.0, own / held - 1);
  }
  return std::max(seconds * static_cast<double>(perReplica), longest) +
         (1 + refills) * fill + reductionBehind(mean);
}

double PhaseEstimate::slicedSeconds(const PhaseLengths &lengths,
                                    int64_t mostTokens,
                                    int64_t heldTokens) const {
  const int64_t tokens = (lengths.load.queries + replicas_ - 1) / replicas_;
  const int64_t least = std::max<int64_t>(
      1, (tokens + std::max(mostTokens, lengths.longest) - 1) /
             std::max(mostTokens, lengths.longest));
  if (slices_.policy == SlicePolicy::Chunks)
    return slicedPipeline(
        lengths,
        std::max(least, (tokens + slices_.number - 1) / slices_.number),
        heldTokens);
  // Slices are not smaller than the rows that memory is rounded to.
  const int64_t most = std::max(least, tokens / int64_t(DYNA_ROW_ALIGNMENT));
  double best = std::numeric_limits<double>::infinity();
  for (int64_t perReplica = least;;
       perReplica += std::max<int64_t>(1, perReplica / 4)) {
    perReplica = std::min(perReplica, most);
    int64_t slices = perReplica;
    if (slices_.isFixed())
      slices *= static_cast<int64_t>(
          slices_.cut((tokens + perReplica - 1) / perReplica).size());
    else if (slices_.number > 0)
      slices *= slices_.number;
    best = std::min(best, slicedPipeline(lengths, slices, heldTokens));
    if (perReplica == most)
      return best;
  }
}

double PhaseEstimate::seconds(const PhaseLengths &lengths, int64_t mostTokens,
                              double inFlight, int64_t heldTokens) const {
  if (lengths.load.segments == 0)
    return 0;
  if (!slices_.any() || lengths.load.queries == 0)
    return wholeSeconds(lengths, mostTokens, inFlight);
  const double sliced = slicedSeconds(lengths, mostTokens, heldTokens);
  const bool mayBeWhole = !slices_.isFixed() && slices_.number == 0;
  return mayBeWhole
             ? std::min(sliced, wholeSeconds(lengths, mostTokens, inFlight))
             : sliced;
}

double PhaseEstimate::wholeSeconds(const PhaseLengths &lengths,
                                   int64_t mostTokens, double inFlight) const {
  const int64_t samples = lengths.load.segments;
  const int64_t most = (samples + replicas_ - 1) / replicas_;
  const int64_t tokens = mostTokens * replicas_;
  const int64_t least =
      std::min(most, (lengths.load.queries + tokens - 1) / tokens);
  double best = std::numeric_limits<double>::infinity();
  for (int64_t perReplica = std::max<int64_t>(least, 1);;
       perReplica += std::max<int64_t>(1, perReplica / 4)) {
    perReplica = std::min(perReplica, most);
    const double seconds = pipelineSeconds(lengths, perReplica, inFlight);
    best = std::min(best, seconds);
    if (perReplica == most)
      return best;
  }
}

} // namespace dyna
