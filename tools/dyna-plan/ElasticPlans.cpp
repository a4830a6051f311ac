//===- ElasticPlans.cpp - Compares other cuts and fewer ranks for a model -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/ElasticPlans.h"

#include "runtime/base/text/Text.h"
#include "runtime/elastic/balance/BalancePolicies.h"
#include "runtime/elastic/balance/LayerFacts.h"
#include "runtime/elastic/decide/BestMove.h"
#include "runtime/elastic/pack/PackPolicies.h"
#include "runtime/elastic/pack/PackStrategy.h"
#include "runtime/elastic/pack/RepackLayers.h"
#include "runtime/plan/graph/MovedState.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/switch/SwitchTimes.h"
#include "tools/dyna-plan/SimulationFlag.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dyna {
namespace {

/// More than any memory, and still a number that can be added to.
constexpr int64_t anyBytes = std::numeric_limits<int64_t>::max() / 4;

StatusOr<std::vector<int>> parseRanks(const std::string &text) {
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(text).split(parts, ",");
  std::vector<int> ranks;
  for (llvm::StringRef part : parts) {
    int number = 0;
    if (part.trim().getAsInteger(10, number) || number < 1)
      return Status::invalidArgument(
          formatText("--repack expects numbers of ranks from 1 on, such as "
                     "6,4,2, but got '%s'",
                     text));
    if (std::find(ranks.begin(), ranks.end(), number) != ranks.end())
      return Status::invalidArgument(
          formatText("--repack names %d ranks twice: keep one", number));
    ranks.push_back(number);
  }
  return ranks;
}

StatusOr<std::vector<BalancePolicy>> policiesOf(const PlanFlags &flags) {
  if (flags.rebalance.getNumOccurrences() == 0)
    return std::vector<BalancePolicy>();
  auto policies = parseBalancePolicies(flags.rebalance);
  if (!policies.isOk())
    return Status(policies.status().code(),
                  "--rebalance: " + policies.status().message());
  return policies;
}

double sumOf(const std::vector<double> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Costs of the same model and states on links that take no time.
StatusOr<CostModel> withoutLinks(const CostModel &costs) {
  CostTable table = costs.table();
  table.dropLinks();
  DYNA_ASSIGN_OR_RETURN(CostModel free,
                        CostModel::create(costs.model(), std::move(table)));
  if (!costs.layerStates().empty())
    DYNA_RETURN_IF_ERROR(free.setStates(costs.layerStates()));
  return free;
}

/// Plans of one model in its states, for cuts and numbers of ranks.
class ElasticPlans {
public:
  ElasticPlans(const CostModel &costs, const CostModel &free,
               const StepLengths &steps, PlanRequest request,
               SimulationOptions conditions, StepOutputs &outputs,
               std::vector<std::string> &notes)
      : costs_(costs), free_(free), steps_(steps), request_(std::move(request)),
        conditions_(conditions), outputs_(outputs), notes_(notes) {}

  /// Simulates the present cut, from which all others start.
  StatusOr<ElasticRow> start(const Strategy &present) {
    present_ = present;
    DYNA_ASSIGN_OR_RETURN(ElasticRow row,
                          simulate("present", present_, request_.recompute));
    DYNA_ASSIGN_OR_RETURN(const ExecutableGraph graph,
                          ExecutableGraph::create(costs_.model(), present_));
    const double perReplica =
        static_cast<double>(last_.microBatches) / steps() / present_.dp;
    microBatches_ = std::max<int64_t>(1, std::llround(perReplica));
    const int64_t tokens = std::max<int64_t>(1, last_.largestMicroBatch);
    const int64_t length = last_.tokens / std::max<int64_t>(1, last_.samples);
    load_ = loadOfEqual(std::clamp<int64_t>(length, 1, tokens), tokens);
    waits_ = linkWaits(graph, costs_, load_);
    mode_ = present_.recompute.value_or(plan::RECOMPUTE_NONE);
    DYNA_ASSIGN_OR_RETURN(facts_, layerFacts(costs_, present_, mode_, load_));
    setOverhead();
    now_ = row;
    return row;
  }

  StatusOr<ElasticRow> balance(BalancePolicy policy,
                               const std::string &pattern);
  StatusOr<ElasticRow> pack(int ranks, bool isModeOpen);
  EmptiedRanks empty(PackPolicy policy, int ranks) const;

private:
  double steps() const {
    return static_cast<double>(std::max<int64_t>(1, last_.steps));
  }
  int64_t memory() const { return costs_.table().device().memory_bytes(); }
  int64_t limit() const {
    return memory() > 0 ? std::max<int64_t>(0, memory() - overhead_) : anyBytes;
  }

  /// Plans and simulates steps under a strategy that has its cut.
  StatusOr<ElasticRow> simulate(const std::string &name,
                                const Strategy &strategy,
                                const std::string &recompute);
  Status setMove(ElasticRow &row, const Strategy &strategy) const;
  void setOverhead();
  ElasticRow byLoads(BalancePolicy policy, const Balance &balance) const;
  LayerBytes memoryOf(int stages) const;

  const CostModel &costs_, &free_;
  const StepLengths &steps_;
  const PlanRequest request_;
  const SimulationOptions conditions_;
  StepOutputs &outputs_;
  std::vector<std::string> &notes_;

  Strategy present_;
  ElasticRow now_;
  RunReport last_;           ///< report of the last simulation
  Load load_;                ///< of a micro-batch
  int64_t microBatches_ = 1; ///< of a replica in one step
  std::vector<double> waits_;
  plan::Recompute mode_ = plan::RECOMPUTE_NONE;
  LayerFacts facts_;
  int64_t overhead_ = 0; ///< bytes of a rank beside parameters and kept blocks
};

StatusOr<ElasticRow> ElasticPlans::simulate(const std::string &name,
                                            const Strategy &strategy,
                                            const std::string &recompute) {
  PlanRequest request = request_;
  request.strategy = strategy;
  request.recompute = recompute;
  DYNA_ASSIGN_OR_RETURN(last_, planSteps(costs_, request, steps_, conditions_,
                                         name, outputs_, notes_));
  StepOutputs quiet;
  quiet.endsWithoutRoom = true;
  std::vector<std::string> same;
  DYNA_ASSIGN_OR_RETURN(
      const RunReport alone,
      planSteps(free_, request, steps_, conditions_, name, quiet, same));
  ElasticRow row;
  row.name = name;
  row.strategy = describeStrategy(strategy);
  row.cut = strategy.layers;
  row.ranks = strategy.ranks();
  row.stepSeconds = last_.seconds / steps();
  row.tokensPerSecond = last_.tokensPerSecond();
  row.peakBytes = last_.peakBytes();
  row.fits = fits(last_, memory());
  for (const PlanReport::Stage &stage : last_.stages)
    row.loads.push_back(stage.busy / steps());
  const double mean = sumOf(row.loads) / static_cast<double>(row.loads.size());
  const double without = std::min(row.stepSeconds, alone.seconds / steps());
  const double perReplica =
      static_cast<double>(last_.microBatches) / steps() / strategy.dp;
  const double inherent = std::clamp(mean * (strategy.pp - 1) / perReplica, 0.0,
                                     std::max(0.0, without - mean));
  row.idle.inherent = inherent / row.stepSeconds;
  row.idle.imbalance =
      std::max(0.0, without - mean - inherent) / row.stepSeconds;
  row.idle.network = (row.stepSeconds - without) / row.stepSeconds;
  return row;
}

/// Sets the planned switch of the state, on the links of the cluster.
Status ElasticPlans::setMove(ElasticRow &row, const Strategy &strategy) const {
  DYNA_ASSIGN_OR_RETURN(const ExecutableGraph from,
                        ExecutableGraph::create(costs_.model(), present_));
  DYNA_ASSIGN_OR_RETURN(const ExecutableGraph to,
                        ExecutableGraph::create(costs_.model(), strategy));
  const auto tensors = movedState(from, to, costs_.layerStates());
  const SwitchNetwork network =
      networkOf(costs_.cluster(), std::max(from.ranks(), to.ranks()));
  DYNA_ASSIGN_OR_RETURN(const SwitchPlan plan, planSwitch(tensors, network));
  DYNA_RETURN_IF_ERROR(checkSwitch(tensors, network.ranks, plan));
  const SwitchTimes times = timesOf(tensors, plan, network);
  row.movedBytes = times.insideBytes + times.betweenBytes;
  row.moveSeconds = times.seconds;
  WeighedMove move;
  weighAgain(MoveProblem(), now_.stepSeconds, row.stepSeconds, row.moveSeconds,
             move);
  row.stepsToEarn = move.stepsToEarn;
  return Status::ok();
}

/// Finds the bytes of a stage that belong to no layer: the most of the present stages.
void ElasticPlans::setOverhead() {
  const LayerBytes bytes = memoryOf(present_.pp);
  int layer = 0;
  for (int s = 0; s < present_.pp; ++s) {
    int64_t beside = last_.stages[s].peakBytes;
    for (int i = 0; i < present_.layers[s]; ++i)
      beside -= bytes.at(s, layer++);
    overhead_ = std::max(overhead_, beside);
  }
}

LayerBytes ElasticPlans::memoryOf(int stages) const {
  LayerBytes bytes;
  bytes.own = facts_.ownBytes;
  bytes.kept = facts_.keptBytes;
  bytes.inFlight = inFlightOf(stages, microBatches_);
  bytes.limits.assign(stages, limit());
  return bytes;
}

StatusOr<ElasticRow> ElasticPlans::balance(BalancePolicy policy,
                                           const std::string &pattern) {
  const LayerBytes memory = memoryOf(present_.pp);
  BalanceProblem problem;
  problem.seconds = facts_.seconds;
  problem.parameters = facts_.parameters;
  problem.names = facts_.names;
  problem.pattern = pattern;
  problem.waits = waits_;
  problem.cut = present_.layers;
  problem.memory = this->memory() > 0 ? &memory : nullptr;
  auto balance = balanceLayers(policy, problem);
  ElasticRow row;
  row.name = rowOf(policy).word;
  if (!balance.isOk()) {
    if (balance.status().code() == StatusCode::InvalidArgument)
      return balance.status();
    row.refusal = balance.status().message();
    return row;
  }
  if (!rowOf(policy).isExecuted)
    return byLoads(policy, *balance);
  Strategy strategy = present_;
  strategy.layers = balance->layers.cut();
  DYNA_ASSIGN_OR_RETURN(
      row, simulate(rowOf(policy).word, strategy, request_.recompute));
  row.rounds = balance->rounds;
  DYNA_RETURN_IF_ERROR(setMove(row, strategy));
  return row;
}

/// Estimates a policy that changes the order of layers, which cannot be planned. Loads are
/// sums of layers. The step is scaled from the present one by the largest loads.
ElasticRow ElasticPlans::byLoads(BalancePolicy policy,
                                 const Balance &balance) const {
  ElasticRow row;
  row.name = rowOf(policy).word;
  row.isSimulated = false;
  row.note = balance.layers.keepsOrder()
                 ? "in the order of the model"
                 : "in another order, which no run executes";
  row.ranks = now_.ranks;
  row.rounds = balance.rounds;
  const double now =
      stepSeconds(stageLoads(facts_.seconds, present_.layers), microBatches_);
  const std::vector<double> loads = balance.layers.sums(facts_.seconds);
  for (double load : loads)
    row.loads.push_back(load * static_cast<double>(microBatches_));
  row.stepSeconds = now_.stepSeconds * stepSeconds(loads, microBatches_) / now;
  row.tokensPerSecond =
      now_.tokensPerSecond * now_.stepSeconds / row.stepSeconds;
  row.peakBytes = now_.peakBytes;
  const RankLayers before = RankLayers::ofCut(present_.layers);
  std::vector<int64_t> sent(before.ranks.size()), got(before.ranks.size());
  for (size_t s = 0; s < before.ranks.size(); ++s)
    for (int layer : before.ranks[s])
      for (size_t to = 0; to < before.ranks.size(); ++to) {
        const std::vector<int> &list = balance.layers.ranks[to];
        if (to == s || std::find(list.begin(), list.end(), layer) == list.end())
          continue;
        sent[s] += facts_.stateBytes[layer];
        got[to] += facts_.stateBytes[layer];
        row.movedBytes += facts_.stateBytes[layer];
      }
  const int64_t port = std::max(*std::max_element(sent.begin(), sent.end()),
                                *std::max_element(got.begin(), got.end()));
  const SwitchNetwork network = networkOf(costs_.cluster(), now_.ranks);
  row.moveSeconds = network.secondsPerByte(network.nodes() == 1) *
                    static_cast<double>(port) /
                    static_cast<double>(present_.dp * present_.tp);
  WeighedMove move;
  weighAgain(MoveProblem(), now_.stepSeconds, row.stepSeconds, row.moveSeconds,
             move);
  row.stepsToEarn = move.stepsToEarn;
  return row;
}

StatusOr<ElasticRow> ElasticPlans::pack(int ranks, bool isModeOpen) {
  ElasticRow row;
  row.name = std::to_string(ranks);
  row.ranks = ranks;
  DYNA_ASSIGN_OR_RETURN(Strategy strategy,
                        packStrategy(present_, ranks, costs_.model().layers()));
  PackProblem problem;
  problem.ranks = ranks;
  problem.limit = limit();
  problem.tokens = last_.tokens;
  problem.linkSeconds = *std::max_element(waits_.begin(), waits_.end());
  std::vector<plan::Recompute> modes = {mode_};
  if (isModeOpen)
    modes = {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
             plan::RECOMPUTE_FULL};
  for (plan::Recompute mode : modes) {
    DYNA_ASSIGN_OR_RETURN(LayerFacts facts,
                          layerFacts(costs_, strategy, mode, load_));
    problem.own = facts.ownBytes;
    problem.ways.push_back({describeRecompute({mode}), facts.seconds,
                            facts.keptBytes, microBatches_ * present_.dp});
  }
  auto packing = packInto(problem, strategy.pp, strategy.dp);
  if (!packing.isOk()) {
    row.refusal = packing.status().message();
    return row;
  }
  strategy.layers = packing->cut;
  const std::string mode = problem.ways[packing->way].name;
  auto simulated = simulate(countOf(ranks, "rank"), strategy,
                            isModeOpen ? mode : request_.recompute);
  if (!simulated.isOk()) {
    row.refusal = simulated.status().message();
    return row;
  }
  simulated->name = row.name;
  if (isModeOpen)
    simulated->note = "recompute " + mode;
  DYNA_RETURN_IF_ERROR(setMove(*simulated, strategy));
  return simulated;
}

EmptiedRanks ElasticPlans::empty(PackPolicy policy, int ranks) const {
  const LayerBytes memory = memoryOf(present_.pp);
  std::vector<int64_t> bytes;
  int layer = 0;
  for (int s = 0; s < present_.pp; ++s)
    for (int i = 0; i < present_.layers[s]; ++i)
      bytes.push_back(memory.at(s, layer++));
  const PackedRanks packed = packByPolicy(
      policy, RankLayers::ofCut(present_.layers), bytes, limit(), ranks);
  return {packPolicies[static_cast<size_t>(policy)].word, ranks,
          packed.layers.active(), packed.moves, packed.layers.keepsOrder()};
}

} // namespace

Status checkElastic(const PlanFlags &flags) {
  DYNA_RETURN_IF_ERROR(policiesOf(flags).status());
  if (flags.repack.getNumOccurrences() > 0)
    DYNA_RETURN_IF_ERROR(parseRanks(flags.repack).status());
  return Status::ok();
}

StatusOr<ElasticReport>
planElastic(const PlanFlags &flags, const CostModel &costs,
            const Strategy &strategy, const StepLengths &steps,
            StepOutputs &outputs, std::vector<std::string> &notes) {
  DYNA_ASSIGN_OR_RETURN(const auto policies, policiesOf(flags));
  std::vector<int> packs;
  if (flags.repack.getNumOccurrences() > 0) {
    DYNA_ASSIGN_OR_RETURN(packs, parseRanks(flags.repack));
  }
  if (!policies.empty() && strategy.pp == 1)
    return Status::invalidArgument(
        "--rebalance moves layers between stages, but the strategy has one: "
        "give one with pp=2 or more");
  DYNA_ASSIGN_OR_RETURN(const auto conditions, parseSimulation(flags.simulate));
  DYNA_ASSIGN_OR_RETURN(auto requests, requestsOf(flags));
  // The cut was made for the layers before they changed.
  DYNA_ASSIGN_OR_RETURN(const CostModel before,
                        CostModel::create(costs.model(), costs.table()));
  DYNA_ASSIGN_OR_RETURN(StageCut cut, chooseLayers(before, strategy));
  if (cut.strategy.pp == 1)
    cut.strategy.layers = {costs.model().layers()};
  DYNA_ASSIGN_OR_RETURN(const CostModel free, withoutLinks(costs));
  ElasticPlans plans(costs, free, steps, requests.front().request, conditions,
                     outputs, notes);
  ElasticReport report;
  DYNA_ASSIGN_OR_RETURN(report.present, plans.start(cut.strategy));
  for (BalancePolicy policy : policies) {
    DYNA_ASSIGN_OR_RETURN(ElasticRow row,
                          plans.balance(policy, flags.layerPattern));
    report.balanced.push_back(std::move(row));
  }
  for (int ranks : packs) {
    DYNA_ASSIGN_OR_RETURN(ElasticRow row,
                          plans.pack(ranks, flags.recompute.empty()));
    report.packed.push_back(std::move(row));
    if (strategy.dp * strategy.tp == 1)
      for (const PackPolicyRow &policy : packPolicies)
        report.emptied.push_back(plans.empty(policy.policy, ranks));
  }
  return report;
}

} // namespace dyna
