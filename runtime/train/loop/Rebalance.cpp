//===- Rebalance.cpp - Moves layers when that makes steps faster ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Rebalance.h"

#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "runtime/elastic/balance/LayerFacts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace dyna {
namespace {

/// Returns how much longer the slowest stage takes than the mean.
double imbalanceOf(const std::vector<double> &loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  return sum > 0 ? *std::max_element(loads.begin(), loads.end()) *
                       static_cast<double>(loads.size()) / sum
                 : 1;
}

/// Room for the tensors of the next cut beside those of the present one, in arenas of
/// `limit` bytes. Regions of plans are not part of it: the replacement checks these.
LayerBytes roomForCuts(const Session &session, std::vector<int64_t> tensorBytes,
                       int64_t limit) {
  const ExecutableGraph &graph = *session.home().graph;
  const auto stages = static_cast<size_t>(graph.stages());
  LayerBytes room;
  room.own = std::move(tensorBytes);
  room.kept.assign(room.own.size(), 0);
  room.inFlight.assign(stages, 0);
  for (int stage = 0; stage < graph.stages(); ++stage)
    room.limits.push_back(
        limit - session.graphs->homeBytes(graph.rankAt({0, stage, 0}), true));
  return room;
}

} // namespace

Rebalance::Rebalance(Session &session)
    : session_(session), graphSeconds_(session.graphSeconds) {
  if (session.options.rebalance.empty())
    return;
  if (auto flag = parseRebalanceFlag(session.options.rebalance); flag.isOk()) {
    flag_ = *flag;
    decider_ = MoveDecider(flag_->options);
  }
}

void Rebalance::modelChanged(bool hasOtherGraphs) {
  decider_.modelChanged();
  steps_.clear();
  count_ = 0;
  skipsStep_ |= hasOtherGraphs;
}

void Rebalance::stepEnded(int64_t step, StepLoad load) {
  if (!isOn())
    return;
  if (probe_.load)
    probe_.load(step, load);
  const bool skips = std::exchange(skipsStep_, false);
  if (!skips || std::exchange(deciderSkips_, false))
    decider_.stepEnded(load.seconds, static_cast<double>(load.tokens));
  if (skips || load.layers.empty())
    return;
  ++count_;
  steps_.push_back(std::move(load));
  if (count_ > flag_->options.measuredSteps ||
      steps_.size() > static_cast<size_t>(flag_->options.measuredSteps))
    steps_.pop_front();
}

bool Rebalance::isDue() const {
  return isOn() && session_.home().graph->stages() > 1 &&
         count_ >= flag_->options.measuredSteps;
}

Status Rebalance::measureLink() {
  if (secondsPerByte_ >= 0)
    return Status::ok();
  if (probe_.price) {
    secondsPerByte_ = probe_.price->secondsPerByte;
    return Status::ok();
  }
  constexpr int64_t bytes = int64_t{1} << 20;
  const ExecutableGraph &graph = *session_.home().graph;
  DYNA_ASSIGN_OR_RETURN(const double seconds,
                        session_.ranks->timeMessage(graph.rankAt({0, 0, 0}),
                                                    graph.rankAt({0, 1, 0}),
                                                    bytes, 3));
  std::vector<double> shared = {seconds};
  DYNA_RETURN_IF_ERROR(session_.ranks->sum(shared));
  secondsPerByte_ = shared[0] / static_cast<double>(bytes);
  // With --rank-memory, arenas have their memory from the start.
  if (!session_.options.rankMemory.empty())
    return Status::ok();
  constexpr int64_t fresh = int64_t{8} << 20;
  DYNA_ASSIGN_OR_RETURN(const double taken,
                        session_.ranks->timeNewMemory(fresh));
  secondsPerNewByte_ = taken / static_cast<double>(fresh);
  return Status::ok();
}

StatusOr<std::vector<double>> Rebalance::measureWaits() {
  const ExecutableGraph &graph = *session_.home().graph;
  int64_t tokens = 0, microBatches = 0;
  for (const StepLoad &step : steps_) {
    tokens += step.tokens;
    microBatches += step.microBatches;
  }
  Load load;
  load.queries = load.keys =
      std::max<int64_t>(tokens / std::max<int64_t>(microBatches, 1), 1);
  std::vector<double> waits(graph.stages());
  for (int edge : graph.crossingEdges()) {
    const auto [producer, consumer] = graph.endsOf(edge);
    const int from = graph.rankAt({0, producer, 0});
    const int to = graph.rankAt({0, consumer, 0});
    const int64_t bytes = graph.rankView(from).messageBytes(edge, load);
    DYNA_ASSIGN_OR_RETURN(const double seconds,
                          session_.ranks->timeMessage(from, to, bytes, 2));
    // Values go from producer to consumer, and gradients back.
    waits[consumer] += seconds;
    waits[producer] += seconds;
  }
  DYNA_RETURN_IF_ERROR(session_.ranks->sum(waits));
  return waits;
}

MovePrice Rebalance::priceNow() const {
  if (probe_.price)
    return *probe_.price;
  MovePrice price;
  price.secondsPerByte = secondsPerByte_;
  price.planSeconds = graphSeconds_;
  // The first step after a move cannot be planned ahead, so it waits for its
  // plan.
  for (const StepLoad &step : steps_)
    price.lostOverlapSeconds +=
        step.planSeconds / static_cast<double>(steps_.size());
  int64_t stays = 0; // bytes that are copied to the other end of the arena
  const ExecutableGraph &graph = *session_.home().graph;
  for (int rank = 0; rank < graph.ranks(); ++rank)
    stays = std::max(stays, session_.graphs->homeBytes(rank, true));
  price.fixedSeconds =
      fixedSeconds_ >= 0
          ? fixedSeconds_
          : (secondsPerByte_ + secondsPerNewByte_) * static_cast<double>(stays);
  return price;
}

MoveProblem Rebalance::problemOf(std::vector<double> waits,
                                 int64_t stepsLeft) const {
  MoveProblem problem;
  const Strategy &now = strategy();
  problem.seconds = medianSeconds(steps_);
  double microBatches = 0;
  for (const StepLoad &step : steps_)
    microBatches += static_cast<double>(step.microBatches) /
                    static_cast<double>(steps_.size());
  problem.microBatches =
      std::max<int64_t>(std::llround(microBatches / now.dp), 1);
  problem.waits = std::move(waits);
  problem.cut = now.layers;
  problem.stepsLeft = stepsLeft;
  problem.price = priceNow();
  problem.test = flag_->test;
  return problem;
}

StatusOr<std::optional<StepClock>>
Rebalance::clockOf(const MoveProblem &problem) const {
  const StepLoad &last = steps_.back();
  if (last.work.empty())
    return std::optional<StepClock>();
  const PlannedGraph &home = session_.home();
  DYNA_ASSIGN_OR_RETURN(StepWork work,
                        stepWork(home.planner->costs(), strategy(), last.work,
                                 home.options, problem.seconds));
  return std::optional(StepClock(std::move(work), problem.waits));
}

StatusOr<MoveDecision> Rebalance::decide(const MoveProblem &problem,
                                         std::vector<double> parameters) {
  if (flag_->policy == BalancePolicy::Time)
    return decider_.decide(problem);
  BalanceProblem balance;
  balance.seconds = problem.seconds;
  balance.parameters = std::move(parameters);
  balance.waits = problem.waits;
  balance.cut = problem.cut;
  balance.memory = problem.memory;
  auto balanced = balanceLayers(flag_->policy, balance);
  // If an even cut does not fit the memory, layers stay.
  if (balanced.status().code() == StatusCode::ResourceExhausted)
    return decider_.decide(problem, problem.cut);
  DYNA_RETURN_IF_ERROR(balanced.status());
  return decider_.decide(problem, balanced->layers.cut());
}

StatusOr<std::optional<NextStrategy>> Rebalance::next(int64_t stepsLeft) {
  if (!isDue() || stepsLeft <= 0)
    return std::optional<NextStrategy>();
  count_ = 0;
  DYNA_RETURN_IF_ERROR(measureLink());
  std::vector<double> waits = steps_.back().waits;
  if (waits.empty()) {
    DYNA_ASSIGN_OR_RETURN(waits, measureWaits());
  }
  // All processes count.
  std::vector<double> parameters;
  if (flag_->policy == BalancePolicy::Parameters) {
    DYNA_ASSIGN_OR_RETURN(parameters, session_.ranks->survivorsByLayer());
  }
  decision_ = MoveDecision();
  decision_.from = strategy().layers;
  decision_.move.cut = decision_.from;
  if (session_.ranks->hasRankZero()) {
    MoveProblem problem = problemOf(std::move(waits), stepsLeft);
    DYNA_ASSIGN_OR_RETURN(BytesOfLayers bytes,
                          bytesOfLayers(*session_.model, strategy()));
    problem.stateBytes = std::move(bytes.state);
    LayerBytes room;
    if (!session_.options.rankMemory.empty()) {
      DYNA_ASSIGN_OR_RETURN(const int64_t limit,
                            parseBytes(session_.options.rankMemory));
      room = roomForCuts(session_, std::move(bytes.tensors), limit);
      problem.memory = &room;
    }
    DYNA_ASSIGN_OR_RETURN(const std::optional<StepClock> clock,
                          clockOf(problem));
    problem.clock = clock ? &*clock : nullptr;
    DYNA_ASSIGN_OR_RETURN(decision_, decide(problem, std::move(parameters)));
    loads_ = {stageLoads(problem.seconds, problem.cut, problem.waits),
              stageLoads(problem.seconds, decision_.move.cut, problem.waits)};
    lastImbalance_ = imbalanceOf(loads_.now);
    firstImbalance_ = firstImbalance_ > 0 ? firstImbalance_ : lastImbalance_;
    hasOutcome_ = decision_.before > 0 && decision_.after > 0;
  }
  std::vector<double> answer = {static_cast<double>(decision_.answer)};
  answer.insert(answer.end(), decision_.move.cut.begin(),
                decision_.move.cut.end());
  DYNA_RETURN_IF_ERROR(session_.ranks->shareFromFirst(answer));
  decision_.answer = static_cast<MoveAnswer>(std::lround(answer[0]));
  if (decision_.answer == MoveAnswer::Stay)
    return std::optional<NextStrategy>();
  Strategy next = strategy();
  next.name.clear();
  next.layers.clear();
  for (size_t stage = 1; stage < answer.size(); ++stage)
    next.layers.push_back(static_cast<int>(std::lround(answer[stage])));
  decision_.move.cut = next.layers;
  return std::optional(NextStrategy{describeStrategy(next), ""});
}

void Rebalance::moved(const ReplacementCost &cost, double seconds) {
  decider_.moved(decision_);
  ++moves_;
  sentBytes_ += cost.sentBytes;
  seconds_ += seconds;
  takenBack_ += decision_.answer == MoveAnswer::GoBack ? 1 : 0;
  fixedSeconds_ = std::max(
      cost.carrySeconds -
          secondsPerByte_ * static_cast<double>(decision_.move.bytes.port),
      0.0);
  graphSeconds_ = std::max(seconds - cost.carrySeconds, 0.0);
  steps_.clear();
  count_ = 0;
  skipsStep_ = deciderSkips_ = true;
}

std::string Rebalance::takeOutcome(int64_t step) {
  if (!std::exchange(hasOutcome_, false))
    return "";
  JsonArray loads;
  for (double load : loads_.now)
    loads.add(jsonRounded(load, 9));
  return JsonObject()
      .add("step", step)
      .add("moved",
           JsonObject()
               .add("version", session_.version)
               .add("seconds_per_token_before",
                    jsonRounded(decision_.before, 12))
               .add("seconds_per_token_after", jsonRounded(decision_.after, 12))
               .add("stage_loads", loads))
      .text();
}

std::string Rebalance::describeEnd() const {
  if (firstImbalance_ == 0)
    return "no decision yet";
  std::string text = countOf(moves_, "move");
  if (takenBack_ > 0)
    text += formatText(", %d of them back", takenBack_);
  if (moves_ > 0)
    text += formatText("; %s were sent, and %.1f ms passed",
                       formatBytes(sentBytes_), 1e3 * seconds_);
  return text + formatText("; the slowest stage took %.2f times the mean at "
                           "first, and %.2f times at the end",
                           firstImbalance_, lastImbalance_);
}

void Rebalance::refused() {
  decider_.refused();
  count_ = 0;
}

} // namespace dyna
