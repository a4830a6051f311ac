//===- PlanWriter.cpp - Writes and places the programs of a plan ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/PlanWriter.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/graph/ChooseRecompute.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/place/AssignMemory.h"
#include "runtime/planner/write/ProgramWriter.h"
#include "runtime/sim/PlanTimes.h"

#include <algorithm>

namespace dyna {

bool goesByMemory(const PlanOptions &options) {
  return !options.dynamicLimits.empty() &&
         (ruleOf(options.schedule).adapts || options.chooseRecompute);
}

Load largestLoadOf(const Model &model, const PlanOptions &options, bool alone) {
  const int64_t samples = options.maxTokensPerMicroBatch;
  const int64_t tokens = alone ? options.mostTokens() : samples;
  // This many tokens have the most pairs if samples are as long as possible.
  const int64_t length = std::min(longestSample(model, options), tokens);
  Load largest = times(loadOfSample(length), tokens / length) +
                 loadOfSample(tokens % length);
  largest.segments = samples;
  if (options.slices.any())
    largest.queries = largest.keys = largest.segments =
        options.slices.largest(tokens);
  return largest;
}

plan::Plan PlanWriter::empty() const {
  plan::Plan plan;
  plan.manifestHash = graph_.model().hash();
  plan.graph = graph_.name();
  plan.ranks.resize(graph_.ranks());
  return plan;
}

Status PlanWriter::forRanks(int replicas,
                            const std::function<Status(int)> &body) const {
  for (int replica = 0; replica < replicas; ++replica)
    for (int stage = 0; stage < graph_.stages(); ++stage)
      for (int shard = 0; shard < graph_.strategy().tp; ++shard)
        DYNA_RETURN_IF_ERROR(body(graph_.rankAt({replica, stage, shard})));
  return Status::ok();
}

StatusOr<double> PlanWriter::chooseModes(const plan::Plan &plan,
                                         const std::vector<int64_t> &beside,
                                         PlanChoice &choice) const {
  choice.microBatchRecompute.resize(plan.microBatches.size());
  auto own = microBatchesOfReplicas(plan, graph_.replicas());
  double slowest = 0;
  for (int replica = 0; replica < graph_.replicas(); ++replica) {
    DYNA_ASSIGN_OR_RETURN(double seconds,
                          dyna::chooseRecompute(graph_, costs_, plan, replica,
                                                own[replica], beside, choice));
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

StatusOr<std::vector<PipelineSchedule>>
PlanWriter::orderReplicas(const std::vector<PipelineProblem> &problems,
                          std::vector<StageOrders> orders,
                          const PlanChoice &choice, bool trains) const {
  std::vector<PipelineSchedule> schedules;
  for (size_t first = 0; first < problems.size();) {
    const bool isPair =
        graph_.strategy().mirror && trains && first + 1 < problems.size();
    if (!isPair) {
      DYNA_ASSIGN_OR_RETURN(auto schedule,
                            orderMessages(std::move(orders[first]),
                                          problems[first], choice, trains));
      schedules.push_back(std::move(schedule));
      ++first;
      continue;
    }
    DYNA_ASSIGN_OR_RETURN(
        auto pair,
        orderMirrored({std::move(orders[first]), std::move(orders[first + 1])},
                      {problems[first], problems[first + 1]}, choice));
    for (PipelineSchedule &schedule : pair)
      schedules.push_back(std::move(schedule));
    first += 2;
  }
  return schedules;
}

Status PlanWriter::write(plan::Plan &plan, int replicas,
                         const PlanChoice &choice, bool trains,
                         const CostsOf &costsOf, std::vector<int64_t> *held,
                         const ComputeOrder *given) const {
  const std::vector<std::vector<int>> microBatches =
      microBatchesOfReplicas(plan, graph_.strategy().dp);
  std::vector<PipelineProblem> problems;
  std::vector<StageOrders> orders;
  for (int replica = 0; replica < replicas; ++replica) {
    problems.push_back(costsOf(replica, microBatches[replica]));
    if (given) {
      orders.push_back(given->replicas[replica]);
      continue;
    }
    DYNA_ASSIGN_OR_RETURN(StageOrders own,
                          orderItems(problems.back(), choice, trains));
    dropEmptyItems(graph_, choice, own);
    orders.push_back(std::move(own));
  }
  DYNA_ASSIGN_OR_RETURN(
      const auto schedules,
      orderReplicas(problems, std::move(orders), choice, trains));
  for (int replica = 0; replica < replicas; ++replica) {
    if (held) {
      const auto peaks =
          peakBytesOf(schedules[replica].stages, problems[replica]);
      for (int stage = 0; stage < graph_.stages(); ++stage)
        for (int shard = 0; shard < graph_.strategy().tp; ++shard)
          (*held)[graph_.rankAt({replica, stage, shard})] = peaks[stage];
    }
    writeReplica(plan, replica, schedules[replica], microBatches[replica],
                 choice, trains);
  }
  return Status::ok();
}

void PlanWriter::writeReplica(plan::Plan &plan, int replica,
                              const PipelineSchedule &schedule,
                              const std::vector<int> &own,
                              const PlanChoice &choice, bool trains) const {
  const Bundles bundles = findBundles(plan, own);
  for (int stage = 0; stage < graph_.stages(); ++stage)
    for (int shard = 0; shard < graph_.strategy().tp; ++shard) {
      const ExecutableGraph::Place place = {replica, stage, shard};
      ProgramWriter writer(graph_, choice, plan, graph_.rankAt(place),
                           bundles.empty() ? nullptr : &bundles);
      writer.startGathers();
      writeSchedule(place, schedule, own, trains, writer);
      writer.finishGathers();
      if (!trains || !choice.reduces())
        continue;
      if (own.empty() || !writer.reducesEarly())
        writer.startReductions();
      if (choice.switched)
        writer.finishReductions();
      else
        writer.update();
    }
}

Status PlanWriter::writeEstimated(plan::Plan &plan, const PlanChoice &choice,
                                  bool trains,
                                  const std::vector<int64_t> &beside,
                                  std::vector<int64_t> *held) const {
  bool limited = trains && !choice.dynamicLimits.empty() &&
                 (held || ruleOf(choice.schedule).adapts);
  return write(
      plan, graph_.replicas(), choice, trains,
      [&](int replica, const std::vector<int> &own) {
        PipelineProblem problem =
            estimateStages(graph_, costs_, plan, own, choice);
        if (limited) {
          holdBlocks(problem, graph_, plan, own, choice);
          limitStages(problem, graph_, replica, choice, beside);
        }
        return problem;
      },
      held);
}

Status PlanWriter::placeAll(plan::Plan &plan, int replicas,
                            const Load *largest) const {
  FoundPlacements found;
  int first = -1; // shard 0 of the stage
  return forRanks(replicas, [&](int rank) {
    if (graph_.placeOf(rank).shard == 0)
      first = rank;
    else if (copyPlaces(plan.ranks[first], plan.ranks[rank]))
      return Status::ok();
    return assignMemory(graph_.replicaView(rank), plan, plan.ranks[rank],
                        largest, &found);
  });
}

Status PlanWriter::place(plan::Plan &plan, const PlanChoice &choice) const {
  DYNA_RETURN_IF_ERROR(placeAll(plan, graph_.replicas(), nullptr));
  if (choice.dynamicLimits.empty())
    return Status::ok();
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    plan::RankProgram &program = plan.ranks[rank];
    int64_t limit = choice.dynamicLimits[rank];
    if (program.dynamicBytes <= limit)
      continue;
    // Heuristic placement is not monotone in the sizes, so a smaller
    // micro-batch may, rarely, come out larger than the largest one.
    const bool hasLonger = std::any_of(
        plan.microBatches.begin(), plan.microBatches.end(),
        [&](const plan::MicroBatch &microBatch) {
          return loadOf(microBatch).queries > choice.maxTokensPerMicroBatch;
        });
    const Load largest = largestLoadOf(graph_.model(), choice, hasLonger);
    DYNA_RETURN_IF_ERROR(
        assignMemory(graph_.replicaView(rank), plan, program, &largest));
    if (program.dynamicBytes > limit)
      return Status::resourceExhausted(formatText(
          "this mini-batch needs %s beside parameters on rank %d, but there "
          "are %s: use smaller micro-batches%s or more recomputation",
          formatBytes(program.dynamicBytes), rank, formatBytes(limit),
          choice.slices.any() ? ", other slices" : ""));
  }
  return Status::ok();
}

StatusOr<WrittenPlan> PlanWriter::writeFirst(const plan::Plan &cut,
                                             PlanChoice &choice) const {
  WrittenPlan written;
  written.plan = cut;
  const std::vector<int64_t> beside(cut.rankCount(), 0);
  written.held = beside;
  if (choice.chooseRecompute && !choice.dynamicLimits.empty())
    DYNA_RETURN_IF_ERROR(chooseModes(written.plan, beside, choice).status());
  DYNA_RETURN_IF_ERROR(
      writeEstimated(written.plan, choice, /*trains=*/true, beside,
                     goesByMemory(choice) ? &written.held : nullptr));
  DYNA_ASSIGN_OR_RETURN(PlanTimes times,
                        timePlan(graph_, written.plan, costs_));
  written.seconds = times.makespan;
  return std::move(written);
}

Status PlanWriter::writeWithin(plan::Plan &plan, PlanChoice choice,
                               double atMost, const WrittenPlan *first) const {
  // If stages run further ahead, more received inputs wait. Estimates of the
  // memory of a stage do not contain these. So limits are tried in turn: as
  // many as fit, as under the cyclic schedule, as under 1F1B, one.
  using Behind = int; // stages
  const std::vector<int (*)(Behind)> most = {
      nullptr, [](Behind behind) { return 2 * behind + 1; },
      [](Behind behind) { return behind + 1; }, [](Behind) { return 1; }};
  const plan::Plan empty = plan;
  const bool isSliced = std::any_of(plan.microBatches.begin(),
                                    plan.microBatches.end(), continuesSample);
  for (auto *mostOf : most) {
    // Slices run ahead by whole samples, whatever the limit is, so one try is
    // enough.
    if (mostOf && isSliced && mostOf != most.back())
      continue;
    if (mostOf && (graph_.stages() == 1 || !ruleOf(choice.schedule).adapts))
      continue;
    choice.mostKept.clear();
    for (int stage = 0; mostOf && stage < graph_.stages(); ++stage)
      choice.mostKept.push_back(mostOf(graph_.stages() - 1 - stage));
    plan = empty;
    bool isSlower = false;
    Status written = writeWithinNumbers(plan, choice, atMost,
                                        mostOf ? nullptr : first, isSlower);
    if (written.code() != StatusCode::ResourceExhausted || isSlower)
      return written;
  }
  return Status::resourceExhausted("no order fits");
}

Status PlanWriter::writeWithinNumbers(plan::Plan &plan, PlanChoice &choice,
                                      double atMost, const WrittenPlan *first,
                                      bool &isSlower) const {
  constexpr int tries = 4;
  // Received inputs, gradients and workspaces need memory besides.
  std::vector<int64_t> beside(plan.rankCount(), 0), held = beside;
  const plan::Plan empty = plan;
  for (int turn = 0; turn < tries; ++turn) {
    const bool isWritten = first && turn == 0;
    if (isWritten) {
      plan = first->plan;
      held = first->held;
    } else {
      plan = empty;
      if (choice.chooseRecompute)
        DYNA_RETURN_IF_ERROR(chooseModes(plan, beside, choice).status());
      DYNA_RETURN_IF_ERROR(writeEstimated(plan, choice, true, beside, &held));
    }
    // Placing costs far more time than simulating, and no plan is faster with
    // less memory.
    if (atMost < never && !isWritten) {
      DYNA_ASSIGN_OR_RETURN(PlanTimes times, timePlan(graph_, plan, costs_));
      if ((isSlower = times.makespan >= atMost))
        return Status::resourceExhausted("another order is shorter");
    }
    DYNA_RETURN_IF_ERROR(placeAll(plan, graph_.replicas(), nullptr));
    bool fits = true;
    for (int rank = 0; rank < plan.rankCount(); ++rank) {
      int64_t bytes = plan.ranks[rank].dynamicBytes;
      int64_t above = bytes - choice.dynamicLimits[rank];
      if (above <= 0)
        continue;
      fits = false;
      // The excess of this attempt recurs with other orders of these sizes.
      beside[rank] = std::max(beside[rank] + above, bytes - held[rank]);
    }
    if (fits)
      return Status::ok();
  }
  return Status::resourceExhausted("no order fits");
}

} // namespace dyna
