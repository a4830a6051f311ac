//===- AutoPack.cpp - Chooses how many ranks a run has --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/AutoPack.h"

#include "runtime/base/text/Text.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/elastic/balance/LayerFacts.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/train/open/ReplaceGraphs.h"
#include "runtime/transport/ProcessTransport.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

/// Micro-batches become smaller by these factors, if their size is open.
constexpr std::array<int64_t, 4> divisors = {1, 2, 4, 8};

/// A micro-batch of the mean size, with samples of the mean length.
struct MeanWork {
  int64_t tokens = 1, length = 1;
  int64_t microBatches = 1; ///< of a step, in all replicas
  int64_t stepTokens = 1;
};

/// Returns the mean of these steps, or the work of a usual step if there are none.
MeanWork meanOf(const std::deque<StepLoad> &steps,
                const TrainOptions &options) {
  MeanWork mean;
  if (steps.empty()) {
    mean.tokens = mean.length = std::max<int64_t>(1, options.chosenMicroBatch);
    mean.stepTokens = options.tokensPerBatch;
    mean.microBatches = std::max<int64_t>(1, mean.stepTokens / mean.tokens);
    return mean;
  }
  int64_t tokens = 0, microBatches = 0, samples = 0;
  for (const StepLoad &step : steps) {
    tokens += step.tokens;
    microBatches += step.microBatches;
    for (const plan::MicroBatch &one : step.work)
      samples += static_cast<int64_t>(one.segments.size());
  }
  const auto count = static_cast<int64_t>(steps.size());
  mean.tokens =
      std::max<int64_t>(1, tokens / std::max<int64_t>(1, microBatches));
  mean.length = std::clamp<int64_t>(tokens / std::max<int64_t>(1, samples), 1,
                                    mean.tokens);
  mean.microBatches = std::max<int64_t>(1, microBatches / count);
  mean.stepTokens = std::max<int64_t>(1, tokens / count);
  return mean;
}

/// The degrees of one replica, which has all rows of its parameters.
Strategy replicaOf(const Strategy &strategy) {
  Strategy one = strategy;
  one.name.clear();
  one.dp = 1;
  one.zero = false;
  return one;
}

std::vector<int64_t> gradientBytes(const Model &model, int tp) {
  std::vector<int64_t> bytes;
  for (int layer = 0; layer < model.layers(); ++layer) {
    bytes.push_back(0);
    for (int p : model.layer(layer).parameters())
      if (!model.isFrozen(p))
        bytes.back() += model.elements(p) *
                        partElementBytes(model, p, ParameterPart::Gradient) /
                        tp;
  }
  return bytes;
}

} // namespace

void AutoPack::modelChanged() {
  steps_.clear();
  isAnswered_ = false;
}

void AutoPack::stepEnded(StepLoad load) {
  if (isAnswered_)
    return;
  steps_.push_back(std::move(load));
  if (steps_.size() > measuredSteps)
    steps_.pop_front();
}

std::vector<plan::Recompute> AutoPack::modes() const {
  if (!session_.options.recompute.empty())
    return {modeOf(session_.home().options.recompute, 0)};
  return {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
          plan::RECOMPUTE_FULL};
}

StatusOr<int64_t> AutoPack::rankLimit() const {
  if (!session_.options.rankMemory.empty())
    return parseBytes(session_.options.rankMemory);
  int64_t bytes = std::max<int64_t>(availableMemory(), 0);
  if (launchedProcesses() > 1)
    bytes /= launchedProcessesHere();
  for (size_t local = 0; local < session_.ranks->localRanks(); ++local)
    bytes += session_.ranks->executor(local).residentBytes();
  return bytes;
}

StatusOr<std::vector<double>> AutoPack::ratios(const Load &load) const {
  const PlannedGraph &home = session_.home();
  std::vector<double> ratios(session_.model->layers(), 1);
  if (steps_.empty() || steps_.back().layers.empty())
    return ratios;
  DYNA_ASSIGN_OR_RETURN(const LayerFacts facts,
                        layerFacts(home.planner->costs(),
                                   replicaOf(home.graph->strategy()),
                                   modeOf(home.options.recompute, 0), load));
  const std::vector<double> measured = medianSeconds(steps_);
  for (size_t layer = 0; layer < ratios.size(); ++layer)
    if (facts.seconds[layer] > 0)
      ratios[layer] = measured[layer] / facts.seconds[layer];
  return ratios;
}

StatusOr<PackProblem> AutoPack::problem() const {
  const PlannedGraph &home = session_.home();
  const Strategy now = home.graph->strategy(), one = replicaOf(now);
  const CostModel &costs = home.planner->costs();
  const MeanWork mean = meanOf(steps_, session_.options);
  const Load load = loadOfEqual(mean.length, mean.tokens);
  DYNA_ASSIGN_OR_RETURN(const std::vector<double> ratios, this->ratios(load));
  PackProblem problem;
  DYNA_ASSIGN_OR_RETURN(BytesOfLayers bytes,
                        bytesOfLayers(*session_.model, one));
  problem.own = std::move(bytes.tensors);
  DYNA_ASSIGN_OR_RETURN(problem.limit, rankLimit());
  problem.ranks = session_.ranks->worldRanks() / now.tp;
  problem.tokens = mean.stepTokens;
  problem.gradientBytes = gradientBytes(*session_.model, now.tp);
  const SwitchNetwork network =
      networkOf(costs.cluster(), session_.ranks->worldRanks());
  problem.secondsPerByte = network.secondsPerByte(network.nodes() == 1);
  const std::vector<double> waits = linkWaits(*home.graph, costs, load);
  problem.linkSeconds = *std::max_element(waits.begin(), waits.end());
  for (plan::Recompute mode : modes())
    for (int64_t divisor : divisors) {
      const int64_t tokens = mean.tokens / divisor;
      if (tokens == 0 || (divisor > 1 && !home.isSizeOpen))
        continue;
      DYNA_ASSIGN_OR_RETURN(
          LayerFacts facts,
          layerFacts(costs, one, mode,
                     loadOfEqual(std::min(mean.length, tokens), tokens)));
      for (size_t layer = 0; layer < ratios.size(); ++layer)
        facts.seconds[layer] *= ratios[layer];
      problem.ways.push_back(
          {describeRecompute({mode}), std::move(facts.seconds),
           std::move(facts.keptBytes), mean.microBatches * divisor});
    }
  return problem;
}

Strategy AutoPack::strategyOf(const PackProblem &problem,
                              const Packing &packing) const {
  Strategy next = session_.home().graph->strategy();
  next.name.clear();
  next.dp = packing.replicas;
  next.pp = packing.stages;
  next.layers = packing.cut;
  if (modes().size() == 1)
    return next;
  next.recompute.reset();
  const std::string &mode = problem.ways[static_cast<size_t>(packing.way)].name;
  for (plan::Recompute one : modes())
    if (one != plan::RECOMPUTE_NONE && describeRecompute({one}) == mode)
      next.recompute = one;
  return next;
}

StatusOr<std::optional<Strategy>>
AutoPack::tryStrategy(Strategy next, std::string &refusal) const {
  // What a plan takes beside its layers may be too much for the exact cut, and not for
  // the one that a run would start with.
  for (bool isOpen : {false, true}) {
    if (isOpen)
      next.layers.clear();
    const auto planned =
        planReplacement(session_, {describeStrategy(next), ""});
    const Status status =
        planned.isOk() ? checkGrowth(session_, *planned) : planned.status();
    if (status.isOk()) {
      next.layers = planned->graphs->home().graph->strategy().layers;
      return std::optional(next);
    }
    refusal = status.message();
  }
  return std::optional<Strategy>();
}

StatusOr<std::optional<Strategy>> AutoPack::chooseHere(PackGoal goal) {
  const Strategy now = session_.home().graph->strategy();
  DYNA_ASSIGN_OR_RETURN(const PackProblem problem, this->problem());
  const auto present = packInto(problem, now.pp, now.dp);
  std::string refusal;
  for (const Packing &packing : packingsFor(problem, goal)) {
    if (packing.stages == now.pp && packing.replicas == now.dp)
      break;
    if (present.isOk() && !isNearer(goal, packing, *present, leastShare))
      break;
    DYNA_ASSIGN_OR_RETURN(auto next,
                          tryStrategy(strategyOf(problem, packing), refusal));
    if (!next)
      continue;
    answer_ = formatText("%s: %s instead of %d", wordOf(goal),
                         countOf(next->ranks(), "rank"), now.ranks());
    if (present.isOk() && packing.tokensPerSecond > 0)
      answer_ += formatText(
          "; %.3g tokens/s, %.3g for each rank, instead of %.3g and %.3g",
          packing.tokensPerSecond, packing.perRank() / now.tp,
          present->tokensPerSecond, present->perRank() / now.tp);
    return next;
  }
  answer_ = formatText("%s: stays on %d ranks", wordOf(goal), now.ranks());
  const int fewer = now.pp * now.dp - 1;
  if (!refusal.empty())
    answer_ += "; " + refusal;
  else if (goal == PackGoal::Fewest && fewer > 0 &&
           fewer <= session_.model->layers())
    answer_ += formatText("; on %d, each lacks %s", fewer * now.tp,
                          formatBytes(lackingBytes(problem, fewer)));
  return std::optional<Strategy>();
}

StatusOr<std::optional<NextStrategy>> AutoPack::choose(PackGoal goal) {
  isAnswered_ = true;
  Strategy next = session_.home().graph->strategy();
  const auto layers = static_cast<size_t>(session_.model->layers());
  // Degrees, the mode and the layers of stages; all 0: the run stays.
  std::vector<double> numbers(3 + layers, 0);
  if (session_.ranks->hasRankZero()) {
    DYNA_ASSIGN_OR_RETURN(const std::optional<Strategy> chosen,
                          chooseHere(goal));
    if (chosen) {
      numbers[0] = chosen->dp;
      numbers[1] = chosen->pp;
      numbers[2] = chosen->recompute ? 1 + *chosen->recompute : 0;
      std::copy(chosen->layers.begin(), chosen->layers.end(),
                numbers.begin() + 3);
    }
  }
  DYNA_RETURN_IF_ERROR(session_.ranks->shareFromFirst(numbers));
  auto number = [&](size_t at) {
    return static_cast<int>(std::lround(numbers[at]));
  };
  if (number(0) == 0)
    return std::optional<NextStrategy>();
  next.name.clear();
  next.dp = number(0);
  next.pp = number(1);
  next.recompute.reset();
  if (number(2) > 0)
    next.recompute = static_cast<plan::Recompute>(number(2) - 1);
  next.layers.clear();
  for (int stage = 0; stage < next.pp; ++stage)
    next.layers.push_back(number(3 + static_cast<size_t>(stage)));
  return std::optional(NextStrategy{describeStrategy(next), ""});
}

} // namespace dyna
