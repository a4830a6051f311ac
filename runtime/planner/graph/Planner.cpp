//===- Planner.cpp - The plan of every mini-batch of a strategy -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/Planner.h"

#include "runtime/base/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/graph/CutMiniBatch.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/place/AssignMemory.h"
#include "runtime/planner/write/ComputeOrder.h"
#include "runtime/planner/write/ProgramWriter.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace dyna {
namespace {

using plan::Instruction;

/// Returns a load that is at least that of every micro-batch of several samples. With
/// `alone` it is also at least that of every sample alone.
Load largestLoad(const Model &model, const PlanOptions &options, bool alone) {
  const int64_t samples = options.maxTokensPerMicroBatch;
  const int64_t tokens = alone ? options.mostTokens() : samples;
  // So many tokens have the most pairs if samples are as long as they can be.
  const int64_t length = std::min(longestSample(model, options), tokens);
  Load largest = times(loadOfSample(length), tokens / length) +
                 loadOfSample(tokens % length);
  largest.segments = samples;
  return largest;
}

/// Micro-batches of the longest sample that hold as much as any step, whatever
/// else it consists of.
int64_t mostLongest(const PlanOptions &options) {
  // Padding comes beside the tokens of a step.
  if (options.tokensPerStep == 0 || ruleOf(options.batching).pads)
    return std::numeric_limits<int64_t>::max();
  return options.tokensPerStep / options.mostTokens() + 2;
}

Status checkOptions(const Model &model, int ranks, const PlanOptions &options) {
  if (options.recompute.size() != 1 &&
      options.recompute.size() != static_cast<size_t>(model.layers()))
    return Status::invalidArgument(
        formatText("recompute modes for %d layers, but the model has %d",
                   options.recompute.size(), model.layers()));
  if (options.maxTokensPerMicroBatch <= 0 ||
      options.mostTokens() > maxMicroBatchTokens)
    return Status::invalidArgument(formatText(
        "micro-batches of %d tokens: expects 1 to %d",
        options.maxTokensPerMicroBatch > 0 ? options.mostTokens()
                                           : options.maxTokensPerMicroBatch,
        maxMicroBatchTokens));
  if (options.inFlight <= 0)
    return Status::invalidArgument(formatText(
        "%d micro-batches in flight: expects at least 1", options.inFlight));
  if (!options.dynamicLimits.empty() &&
      options.dynamicLimits.size() != static_cast<size_t>(ranks))
    return Status::invalidArgument(formatText("memory limits of %d ranks, but "
                                              "the strategy has %d",
                                              options.dynamicLimits.size(),
                                              ranks));
  return Status::ok();
}

/// Every micro-batch takes as long as any other, and `slowdown` times what it
/// took on the stage before; half of its backward can run apart, if anything can.
PipelineProblem evenStages(int stages, size_t microBatches,
                           const PlanOptions &options, double slowdown) {
  const bool apart = ruleOf(options.schedule).adapts && options.splitBackward;
  PipelineProblem costs;
  double seconds = 1;
  for (int stage = 0; stage < stages; ++stage, seconds *= slowdown) {
    costs.forward.emplace_back(microBatches, seconds);
    costs.backward.emplace_back(microBatches, 2 * seconds);
    if (apart)
      costs.weight.emplace_back(microBatches, seconds);
  }
  return costs;
}

ExecutableGraph oneRank(const Model &model) {
  return *ExecutableGraph::create(model, Strategy());
}

} // namespace

Planner::Planner(ExecutableGraph graph, CostModel costs)
    : graph_(std::move(graph)), costs_(std::move(costs)) {}

Planner::Planner(const ExecutableGraph &graph)
    : Planner(graph, CostModel(graph.model())) {}

Planner::Planner(const Model &model) : Planner(oneRank(model)) {}

plan::Plan Planner::empty() const {
  plan::Plan plan;
  plan.manifestHash = graph_.model().hash();
  plan.graph = graph_.name();
  plan.ranks.resize(graph_.ranks());
  return plan;
}

/// A plan with micro-batches and empty programs.
StatusOr<plan::Plan> Planner::start(const std::vector<int64_t> &lengths,
                                    int64_t targetTokens,
                                    const PlanOptions &options,
                                    bool trains) const {
  DYNA_RETURN_IF_ERROR(checkOptions(graph_.model(), graph_.ranks(), options));
  plan::Plan plan = empty();
  plan.targetTokens = targetTokens;
  DYNA_ASSIGN_OR_RETURN(plan.microBatches,
                        cutMiniBatch(graph_, costs_, lengths, options, trains));
  return plan;
}

template <typename Body>
Status Planner::forRanks(int replicas, Body body) const {
  for (int replica = 0; replica < replicas; ++replica)
    for (int stage = 0; stage < graph_.stages(); ++stage)
      for (int shard = 0; shard < graph_.strategy().tp; ++shard)
        DYNA_RETURN_IF_ERROR(body(graph_.rankAt({replica, stage, shard})));
  return Status::ok();
}

Status Planner::write(plan::Plan &plan, int replicas,
                      const PlanOptions &options, bool trains,
                      const CostsOf &costsOf, std::vector<int64_t> *held,
                      const ComputeOrder *given) const {
  const Strategy &strategy = graph_.strategy();
  std::vector<std::vector<int>> microBatches =
      microBatchesOfReplicas(plan, strategy.dp);
  for (int replica = 0; replica < replicas; ++replica) {
    const std::vector<int> &own = microBatches[replica];
    PipelineProblem problem = costsOf(replica, own);
    StageOrders orders;
    if (given) {
      orders = given->replicas[replica];
    } else {
      DYNA_ASSIGN_OR_RETURN(orders, orderItems(problem, options, trains));
      dropEmptyItems(graph_, options, orders);
    }
    DYNA_ASSIGN_OR_RETURN(
        auto schedule,
        orderMessages(std::move(orders), problem, options, trains));
    std::vector<int64_t> peaks;
    if (held)
      peaks = peakBytesOf(schedule.stages, problem);
    for (int stage = 0; stage < graph_.stages(); ++stage)
      for (int shard = 0; shard < strategy.tp; ++shard) {
        ExecutableGraph::Place place = {replica, stage, shard};
        int rank = graph_.rankAt(place);
        if (held)
          (*held)[rank] = peaks[stage];
        ProgramWriter writer(graph_, options, plan, rank);
        writer.startGathers();
        writeSchedule(graph_, place, schedule, own, trains, writer);
        writer.finishGathers();
        if (!trains || !options.reduces())
          continue;
        if (own.empty())
          writer.startReductions();
        if (options.switched)
          writer.finishReductions();
        else
          writer.update();
      }
  }
  return Status::ok();
}

Status Planner::writeEstimated(plan::Plan &plan, const PlanOptions &options,
                               bool trains, const std::vector<int64_t> &beside,
                               std::vector<int64_t> *held) const {
  bool limited = trains && !options.dynamicLimits.empty() &&
                 (held || ruleOf(options.schedule).adapts);
  return write(
      plan, graph_.replicas(), options, trains,
      [&](int replica, const std::vector<int> &own) {
        PipelineProblem problem =
            estimateStages(graph_, costs_, plan, own, options);
        if (limited) {
          holdBlocks(problem, graph_, plan, own, options);
          limitStages(problem, graph_, replica, options, beside);
        }
        return problem;
      },
      held);
}

Status Planner::placeAll(plan::Plan &plan, int replicas,
                         const Load *largest) const {
  FoundPlacements found;
  return forRanks(replicas, [&](int rank) {
    return assignMemory(graph_.replicaView(rank), plan, plan.ranks[rank],
                        largest, &found);
  });
}

Status Planner::place(plan::Plan &plan, const PlanOptions &options) const {
  DYNA_RETURN_IF_ERROR(placeAll(plan, graph_.replicas(), nullptr));
  if (options.dynamicLimits.empty())
    return Status::ok();
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    plan::RankProgram &program = plan.ranks[rank];
    int64_t limit = options.dynamicLimits[rank];
    if (program.dynamicBytes <= limit)
      continue;
    // Heuristic placement is not monotone in the sizes, so a smaller
    // micro-batch may, rarely, come out larger than the largest one.
    const bool hasLonger = std::any_of(
        plan.microBatches.begin(), plan.microBatches.end(),
        [&](const plan::MicroBatch &microBatch) {
          return loadOf(microBatch).queries > options.maxTokensPerMicroBatch;
        });
    const Load largest = largestLoad(graph_.model(), options, hasLonger);
    DYNA_RETURN_IF_ERROR(
        assignMemory(graph_.replicaView(rank), plan, program, &largest));
    if (program.dynamicBytes > limit)
      return Status::resourceExhausted(formatText(
          "this mini-batch needs %s beside parameters on rank %d, but there "
          "are %s: use smaller micro-batches or more recomputation",
          formatBytes(program.dynamicBytes), rank, formatBytes(limit)));
  }
  return Status::ok();
}

StatusOr<plan::Plan> Planner::cut(const std::vector<int64_t> &lengths,
                                  int64_t targetTokens,
                                  const PlanOptions &options,
                                  bool trains) const {
  PlanOptions own = options;
  if (!trains && ruleOf(own.batching).pads)
    own.batching = Batching::Ragged;
  DYNA_ASSIGN_OR_RETURN(Cut cut, cutFor(lengths, targetTokens, own, trains));
  // Of the programs that were tried nothing stays.
  cut.plan.ranks.assign(graph_.ranks(), {});
  cut.plan.fallback.clear();
  return std::move(cut.plan);
}

StatusOr<plan::Plan> Planner::schedule(plan::Plan plan,
                                       const PlanOptions &options,
                                       bool trains) const {
  DYNA_RETURN_IF_ERROR(checkOptions(graph_.model(), graph_.ranks(), options));
  plan.ranks.assign(graph_.ranks(), {});
  // Whether an order fits, its placed plan tells.
  DYNA_ASSIGN_OR_RETURN(plan, complete(plan, options, trains));
  keepCompute(plan);
  return plan;
}

StatusOr<ComputeOrder> Planner::readOrder(const plan::Plan &plan,
                                          PlanOptions &options) const {
  DYNA_RETURN_IF_ERROR(checkOptions(graph_.model(), graph_.ranks(), options));
  if (!plan.fallback.empty()) {
    DYNA_ASSIGN_OR_RETURN(options.schedule, findSchedule(plan.fallback));
  }
  DYNA_ASSIGN_OR_RETURN(ComputeOrder order,
                        readComputeOrder(graph_, plan, options));
  options.splitBackward = order.splitsBackward;
  options.microBatchRecompute = order.modes;
  return order;
}

StatusOr<plan::Plan> Planner::orderCommunication(const plan::Plan &plan,
                                                 PlanOptions options) const {
  DYNA_ASSIGN_OR_RETURN(const ComputeOrder order, readOrder(plan, options));
  plan::Plan ordered = plan;
  ordered.ranks.assign(graph_.ranks(), {});
  auto estimate = [&](int, const std::vector<int> &own) {
    return estimateStages(graph_, costs_, plan, own, options);
  };
  DYNA_RETURN_IF_ERROR(write(ordered, graph_.replicas(), options, order.trains,
                             estimate, nullptr, &order));
  DYNA_RETURN_IF_ERROR(checkSameCompute(plan, ordered));
  DYNA_RETURN_IF_ERROR(place(ordered, options));
  return ordered;
}

StatusOr<std::vector<ExpectedPipeline>>
Planner::expect(const plan::Plan &plan, PlanOptions options) const {
  DYNA_ASSIGN_OR_RETURN(ComputeOrder order, readOrder(plan, options));
  const auto own = microBatchesOfReplicas(plan, graph_.replicas());
  std::vector<ExpectedPipeline> pipelines;
  for (int replica = 0; replica < graph_.replicas(); ++replica) {
    ExpectedPipeline &pipeline = pipelines.emplace_back();
    pipeline.problem =
        estimateStages(graph_, costs_, plan, own[replica], options);
    DYNA_ASSIGN_OR_RETURN(pipeline.schedule,
                          orderMessages(std::move(order.replicas[replica]),
                                        pipeline.problem, options,
                                        order.trains));
  }
  return pipelines;
}

StatusOr<plan::Plan> Planner::training(const std::vector<int64_t> &lengths,
                                       int64_t targetTokens,
                                       const PlanOptions &options) const {
  DYNA_ASSIGN_OR_RETURN(
      Cut cut, cutFor(lengths, targetTokens, options, /*trains=*/true));
  return cut.isFilled ? std::move(cut.plan)
                      : complete(cut.plan, options, /*trains=*/true);
}

StatusOr<plan::Plan> Planner::evaluation(const std::vector<int64_t> &lengths,
                                         int64_t targetTokens,
                                         const PlanOptions &options) const {
  DYNA_ASSIGN_OR_RETURN(plan::Plan plan,
                        cut(lengths, targetTokens, options, false));
  return complete(plan, options, false);
}

template <typename Write>
StatusOr<plan::Plan> Planner::perRank(int replicas, Write write) const {
  plan::Plan plan = empty();
  PlanOptions options;
  DYNA_RETURN_IF_ERROR(forRanks(replicas, [&](int rank) {
    ProgramWriter writer(graph_, options, plan, rank);
    write(writer);
    return Status::ok();
  }));
  DYNA_RETURN_IF_ERROR(placeAll(plan, replicas, nullptr));
  return plan;
}

StatusOr<plan::Plan> Planner::cast(int replicas) const {
  return perRank(replicas, [](ProgramWriter &writer) { writer.casts(); });
}

StatusOr<plan::Plan> Planner::cast() const { return cast(graph_.replicas()); }

StatusOr<plan::Plan> Planner::update() const {
  return perRank(graph_.replicas(), [](ProgramWriter &writer) {
    writer.startReductions();
    writer.update();
  });
}

/// The most that plans of the largest micro-batches need. All replicas are alike,
/// so one of them is tried.
class Planner::Largest {
public:
  Largest(const Planner &planner, const PlanOptions &options)
      : planner_(planner), graph_(planner.graph_), options_(options),
        ofReplica_(graph_.ranksPerReplica(), 0) {}

  Status take(const plan::Plan &plan) {
    return planner_.forRanks(1, [&](int rank) {
      int64_t &bytes = ofReplica_[graph_.indexInReplica(rank)];
      bytes = std::max(bytes, plan.ranks[rank].dynamicBytes);
      return Status::ok();
    });
  }

  /// `alone`: each of the longest sample. Stages take what the costs expect, or
  /// with a slowdown what `evenStages` says.
  Status takeLargest(int microBatches, const PlanOptions &options, bool trains,
                     std::optional<double> slowdown = 1, bool alone = false) {
    // Those behind what is kept at a time find the place of those before.
    const int kept = std::min(microBatches, mostKept(options));
    const int placed = kept <= mostPlaced ? microBatches : mostPlaced;
    DYNA_ASSIGN_OR_RETURN(plan::Plan plan,
                          sized(placed, options, trains, slowdown, alone));
    if (placed == microBatches)
      return take(plan);
    DYNA_ASSIGN_OR_RETURN(plan::Plan half,
                          sized(placed / 2, options, trains, slowdown, alone));
    for (size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      int64_t &bytes = plan.ranks[rank].dynamicBytes;
      const int64_t more =
          std::max<int64_t>(0, bytes - half.ranks[rank].dynamicBytes);
      const int steps = placed - placed / 2;
      bytes += (more + steps - 1) / steps * (kept - placed);
    }
    return take(plan);
  }

  /// The lives of a sequential plan's blocks end with their micro-batch, and
  /// their order depends on nothing but whether others follow (the last one
  /// starts the reductions, which come in between), so that two stand for all:
  /// whatever the plan, its sequential form fits.
  Status takeSequential(bool training) {
    const PlanOptions sequential = lastResort(options_);
    for (int count = 1; count <= 3; ++count)
      for (bool trains : {false, true})
        if (training || !trains)
          DYNA_RETURN_IF_ERROR(takeLargest(count, sequential, trains, 1, true));
    DYNA_ASSIGN_OR_RETURN(plan::Plan casts, planner_.cast(1));
    return take(casts);
  }

  /// By the first stage, of as many micro-batches as there may be.
  int mostKept(const PlanOptions &options) const {
    return ruleOf(options.schedule)
        .mostKept({0, graph_.stages(), std::numeric_limits<int>::max(),
                   options.inFlight});
  }

  /// As many micro-batches as can need more than fewer of them. With one stage a
  /// window is like any other of its size, but for the last one of a step. A
  /// pipeline is in its steady state when every stage has filled and drained once.
  int enough(const PlanOptions &options) const {
    const int stages = graph_.stages(), kept = mostKept(options);
    return stages > 1 ? std::max(2 * kept, 2 * stages + 1) : kept + 1;
  }
  /// Of those, the ones that may be a long sample: as many as a step has tokens
  /// for.
  int enoughLongest(const PlanOptions &options) const {
    return options.mostTokens() > options.maxTokensPerMicroBatch
               ? static_cast<int>(
                     std::min<int64_t>(enough(options), mostLongest(options)))
               : 0;
  }

  Status takeTraining(const PlanOptions &options) {
    // Placement is within a few percent of what is alive at one time, so among
    // many only the fullest can need the most.
    for (bool alone : {false, true}) {
      const int upTo = alone ? enoughLongest(options) : enough(options);
      for (int count = 1; count <= upTo; ++count)
        if (count <= 8 ||
            (count > upTo - std::max(upTo / 16, 8) && count <= mostPlaced) ||
            count == upTo)
          DYNA_RETURN_IF_ERROR(takeLargest(count, options, true, 1, alone));
      if (upTo == 0)
        continue;
      // Where sends and inputs lie until a slower stage comes to them, there are
      // more of these the less even stages are. What costs leave out (other work
      // beside this, micro-batches of other sizes) makes them uneven too.
      for (std::optional<double> slowdown :
           {std::optional<double>(), {0.25}, {4.0}})
        DYNA_RETURN_IF_ERROR(takeLargest(upTo, options, true, slowdown, alone));
    }
    return Status::ok();
  }

  /// A stage has the most waiting for it where all behind it are slower, however
  /// little, which takes long to show. Far slower ones show it with the first
  /// micro-batches.
  Status takeEvaluation(const PlanOptions &options) {
    const int most = graph_.stages() > 1 ? graph_.stages() + 2 : 1;
    for (bool alone : {false, true}) {
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
  /// micro-batches, and placing takes the square of their number. As all are equal
  /// here, each more than so many takes the same bytes more.
  static constexpr int mostPlaced = 128;

  StatusOr<plan::Plan> sized(int microBatches, const PlanOptions &options,
                             bool trains, std::optional<double> slowdown,
                             bool alone) {
    plan::Plan plan = planner_.empty();
    plan::Segment all;
    all.length = alone ? options.mostTokens() : options.maxTokensPerMicroBatch;
    plan.microBatches.assign(microBatches, {{all}, /*replica=*/0});
    auto seconds = [&](int, const std::vector<int> &own) {
      return slowdown
                 ? evenStages(graph_.stages(), own.size(), options, *slowdown)
                 : estimateStages(graph_, planner_.costs_, plan, own, options);
    };
    DYNA_RETURN_IF_ERROR(planner_.write(plan, 1, options, trains, seconds));
    const Load largest = largestLoad(graph_.model(), options, alone);
    DYNA_RETURN_IF_ERROR(planner_.placeAll(plan, 1, &largest));
    return plan;
  }

  const Planner &planner_;
  const ExecutableGraph &graph_;
  const PlanOptions &options_;
  std::vector<int64_t> ofReplica_;
};

StatusOr<std::vector<int64_t>>
Planner::leastDynamicBytes(const PlanOptions &options, bool training) const {
  DYNA_RETURN_IF_ERROR(checkOptions(graph_.model(), graph_.ranks(), options));
  Largest largest(*this, options);
  DYNA_RETURN_IF_ERROR(largest.takeSequential(training));
  return largest.ofRanks();
}

StatusOr<std::vector<int64_t>>
Planner::largestDynamicBytes(const PlanOptions &options, bool training) const {
  DYNA_RETURN_IF_ERROR(checkOptions(graph_.model(), graph_.ranks(), options));
  Largest largest(*this, options);
  DYNA_RETURN_IF_ERROR(largest.takeSequential(training));
  // What else is tried makes that form rare.
  DYNA_RETURN_IF_ERROR(largest.takeEvaluation(options));
  if (training)
    for (const PlanOptions &tried : withSimpleOrders(options))
      DYNA_RETURN_IF_ERROR(largest.takeTraining(tried));
  return largest.ofRanks();
}

} // namespace dyna
