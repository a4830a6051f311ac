//===- SearchStrategies.cpp - Searches the best strategies of a cluster ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/SearchStrategies.h"

#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/base/thread/SayEvery.h"
#include "runtime/planner/estimate/LackingCosts.h"
#include "runtime/planner/search/ChooseStrategies.h"
#include "runtime/planner/search/SearchSingles.h"
#include "runtime/planner/search/SizedSteps.h"
#include "tools/dyna-plan/PlanModel.h"
#include "tools/dyna-plan/PlayedSteps.h"
#include "tools/dyna-plan/SimulationFlag.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>

namespace dyna {
namespace {

/// Model and costs that both searches begin with.
struct Opened {
  std::unique_ptr<Model> model;
  std::unique_ptr<CostModel> costs;
  StrategySpace space;
};

/// Fails with an empty message if the failure has been printed.
StatusOr<Opened> open(const PlanFlags &flags, const char *flag) {
  DYNA_ASSIGN_OR_RETURN(CostTable table, openTable(flags));
  Opened opened;
  DYNA_ASSIGN_OR_RETURN(opened.space.ranks,
                        ranksToSearch(table.cluster(), 0, flag));
  const Status printed = Status::invalidArgument("");
  auto logical = compileModel(flags, Strategy(), table);
  if (mlir::failed(logical))
    return printed;
  const auto &facts = logical->manifest().facts();
  const DividedSizes sizes = {facts.heads(), facts.kv_heads(),
                              facts.feed_forward()};
  for (int64_t tp : degreesThatDoNotDivide(opened.space.ranks, sizes))
    llvm::errs() << formatText("note: tp=%d does not divide the model's sizes: "
                               "it is not tried\n",
                               tp);
  if (logical->manifest().degrees_size() == 0)
    logical = compileDegrees(flags, degreesToSearch(opened.space.ranks, sizes),
                             table);
  if (mlir::failed(logical))
    return printed;
  opened.model = std::make_unique<Model>(std::move(*logical));
  opened.space.memoryBytes = table.device().memory_bytes();
  opened.space.tokensPerStep = flags.values.tokensPerBatch;
  DYNA_ASSIGN_OR_RETURN(CostModel costs,
                        openCosts(*opened.model, std::move(table), flags));
  opened.costs = std::make_unique<CostModel>(std::move(costs));
  return opened;
}

int failOpening(const Status &status) {
  return status.message().empty() ? 2 : fail(status);
}

/// Simulates strategies, and keeps the reports.
class Simulated {
public:
  Simulated(const CostModel &costs, const StepLengths &steps,
            const SimulationOptions &conditions, const PlanFlags &flags)
      : costs_(costs), steps_(steps), conditions_(conditions), flags_(flags) {}

  StatusOr<double> simulate(const PlanRequest &request, int64_t count) {
    StepLengths steps = steps_;
    steps.samples.resize(std::min<size_t>(steps.samples.size(), count));
    StepOutputs outputs;
    outputs.hasPlanTimes = flags_.planTimes;
    outputs.endsWithoutRoom = true;
    outputs.isScreening = steps.samples.size() < steps_.samples.size();
    std::vector<std::string> notes;
    SingleStrategy single;
    single.request = request;
    const std::string name = single.name();
    DYNA_ASSIGN_OR_RETURN(auto report,
                          planSteps(costs_, request, std::move(steps),
                                    conditions_, name, outputs, notes));
    const int64_t memory = costs_.table().device().memory_bytes();
    if (!fits(report, memory))
      return Status::resourceExhausted(describeLack(report, memory));
    const double seconds =
        report.seconds /
        static_cast<double>(std::max<int64_t>(report.steps, 1));
    reports_[name] = std::move(report);
    return seconds;
  }

  StatusOr<double> estimate(const PlanRequest &request, int64_t count) const {
    SizedSteps::Asked asked = SizedSteps::Asked::alone(request);
    asked.memoryBytes = costs_.table().device().memory_bytes();
    asked.longest = steps_.longest;
    asked.isScreening = true;
    std::vector<std::string> notes;
    DYNA_ASSIGN_OR_RETURN(auto sized,
                          SizedSteps::create(costs_, std::move(asked), notes));
    return sized->estimate(
        {steps_.samples.begin(), steps_.samples.begin() + count});
  }

  RunReport reportOf(const SingleStrategy &single) const {
    return reports_.at(single.name());
  }
  /// Returns the report's JSON object, with the estimate and the flags of a
  /// run.
  std::string jsonOf(const SingleStrategy &single) const {
    return reportOf(single)
               .json(single.name())
               .add("fits", true) // strategies that do not fit have other rows
               .add("of_steps", steps_.samples.size())
               .add("estimated_seconds", jsonRounded(single.expected, 6))
               .add("flags", single.flags())
               .text() +
           "\n";
  }

private:
  const CostModel &costs_;
  const StepLengths &steps_;
  const SimulationOptions &conditions_;
  const PlanFlags &flags_;
  std::map<std::string, RunReport> reports_;
};

/// Returns the strategy's degrees alone, as text.
std::string degreesOf(Strategy strategy) {
  strategy.recompute.reset();
  strategy.layers.clear();
  strategy.order = Strategy().order;
  return describeStrategy(strategy);
}

/// Prints a line for degrees under which nothing fits, with the reason of the
/// mode that needs the least memory.
void printLacking(const FoundSingles &found, const PlanFlags &flags) {
  std::map<std::string, std::string> lines;
  for (const SingleStrategy &single : found.lacking) {
    if (flags.json)
      llvm::outs() << JsonObject()
                          .add("plan", single.name())
                          .add("fits", false)
                          .add("reason", single.reason)
                          .text()
                   << '\n';
    const Strategy &strategy = single.request.strategy;
    const bool isLeast = strategy.recompute == plan::RECOMPUTE_FULL;
    std::string &line = lines[degreesOf(strategy)];
    if (line.empty() || isLeast)
      line = single.reason;
  }
  for (const SingleStrategy &single : found.fitting)
    lines.erase(degreesOf(single.request.strategy));
  for (const auto &[degrees, reason] : lines)
    if (!flags.json)
      llvm::outs() << degrees << " does not fit: " << reason << '\n';
}

/// Prints why each strategy does not fit, and fails.
Status refuseAll(const FoundSingles &found, const PlanFlags &flags) {
  if (found.lacking.empty())
    return Status::invalidArgument("no strategy can be planned");
  printLacking(found, flags);
  llvm::outs().flush(); // before the message of the failure
  return Status::resourceExhausted(formatText(
      "no strategy fits these devices: the reasons of all %d plans that were "
      "tried stand above; try more devices, or fewer --tokens-per-batch",
      found.lacking.size()));
}

void printFound(const FoundSingles &found, const Simulated &simulated,
                int64_t devices, int64_t memory, const PlanFlags &flags) {
  llvm::errs() << formatText(
      "note: %d plans of %d devices simulated, %d did not fit, %d were left "
      "out by their estimates; the best first\n",
      found.fitting.size(), devices, found.lacking.size(), found.skipped);
  constexpr size_t mostShown = 10;
  Reports reports;
  for (const SingleStrategy &single : found.fitting)
    if (flags.json)
      llvm::outs() << simulated.jsonOf(single);
    else if (reports.size() < mostShown)
      reports.emplace_back(single.name(), simulated.reportOf(single));
  if (!flags.json && reports.size() < found.fitting.size())
    llvm::errs() << formatText("note: %d of them are shown; --json has all\n",
                               mostShown);
  if (!flags.json)
    print(reports, memory, flags);
  printLacking(found, flags);
  if (!flags.json)
    llvm::outs() << "\nthe fastest is " << found.fitting.front().flags()
                 << '\n';
}

bool anySlices(const std::vector<PlanRequest> &requests) {
  return std::any_of(
      requests.begin(), requests.end(),
      [](const PlanRequest &request) { return request.slices != noSlices; });
}

/// Estimates every strategy once for each word of --slices that a request has.
StatusOr<std::vector<AloneEstimate>>
estimateRequests(const Opened &opened, const std::vector<PlanRequest> &requests,
                 const std::vector<int64_t> &lengths) {
  std::vector<AloneEstimate> all;
  std::set<std::string> known;
  for (const PlanRequest &request : requests) {
    if (!known.insert(request.slices).second)
      continue;
    StrategySpace space = opened.space;
    space.request.slices = request.slices;
    DYNA_ASSIGN_OR_RETURN(auto own,
                          estimateSingles(*opened.costs, space, lengths));
    std::move(own.begin(), own.end(), std::back_inserter(all));
  }
  return all;
}

/// Returns the choices that the flags leave to a search of one strategy. Each
/// candidate is simulated for `steps` steps.
StatusOr<SingleSpace> singlesOf(const PlanFlags &flags, const Opened &opened,
                                int64_t steps) {
  DYNA_ASSIGN_OR_RETURN(auto requests, requestsOf(flags));
  SingleSpace space;
  space.requests.clear();
  for (NamedRequest &named : requests) {
    if (!flags.namesPlans())
      named.request.pipeline.clear(); // a run chooses these itself
    named.request.slices = slicesOfSearch(named.request.slices);
    space.requests.push_back(std::move(named.request));
  }
  space.searchesRecompute = flags.recompute.empty();
  space.searchesKinds =
      flags.compare.getNumOccurrences() == 0 && !flags.microBatches.isGiven();
  space.searchesSizes = flags.tokensPerMicroBatch.empty();
  space.steps = steps;
  const bool slices = anySlices(space.requests);
  space.screenedSteps =
      screenedSteps(space.steps, opened.space.tokensPerStep, slices);
  if (slices)
    space.mostFinal = 3; // plans take long
  space.isExhaustive = flags.exhaustive;
  if (flags.exhaustivePercent >= 0)
    space.exhaustiveLimit =
        1 + 0.01 * static_cast<double>(flags.exhaustivePercent);
  return space;
}

Status searchOne(const PlanFlags &flags, const Opened &opened,
                 const std::vector<int64_t> &lengths) {
  DYNA_ASSIGN_OR_RETURN(auto conditions, parseSimulation(flags.simulate));
  const int64_t positions = opened.model->manifest().facts().positions();
  StepLengths steps = dealSteps(lengths, positions, flags);
  steps.shortens = false; // all strategies have the same samples
  DYNA_ASSIGN_OR_RETURN(
      const SingleSpace space,
      singlesOf(flags, opened, static_cast<int64_t>(steps.samples.size())));
  std::vector<int64_t> counted = lengths;
  cutLengths(counted, positions);
  DYNA_ASSIGN_OR_RETURN(auto estimates,
                        estimateRequests(opened, space.requests, counted));
  Simulated simulated(*opened.costs, steps, conditions, flags);
  SayEvery pause;
  DYNA_ASSIGN_OR_RETURN(
      auto found,
      searchSingles(estimates, space,
                    {[&](const PlanRequest &request, int64_t count) {
                       return simulated.simulate(request, count);
                     },
                     [&](const PlanRequest &request, int64_t count) {
                       return simulated.estimate(request, count);
                     }},
                    [&](const std::string &next) {
                      if (pause.isDue())
                        llvm::errs() << "search: " << next << '\n';
                    }));
  if (found.fitting.empty())
    return refuseAll(found, flags);
  // Any compared strategy that lacks costs may change which is best.
  std::vector<Strategy> compared;
  for (const auto &single : found.fitting)
    compared.push_back(single.request.strategy);
  std::stable_sort(compared.begin(), compared.end(),
                   [](const Strategy &a, const Strategy &b) {
                     return std::pair(a.tp, a.sp) < std::pair(b.tp, b.sp);
                   });
  noteLacking(*opened.costs, compared);
  printFound(found, simulated, opened.space.ranks, opened.space.memoryBytes,
             flags);
  return Status::ok();
}

} // namespace

int searchStrategy(const PlanFlags &flags,
                   const std::vector<int64_t> &lengths) {
  auto opened = open(flags, "--strategy search");
  if (!opened.isOk())
    return failOpening(opened.status());
  const Status status = searchOne(flags, *opened, lengths);
  return status.isOk() ? 0 : fail(status);
}

int searchSets(const PlanFlags &flags, std::vector<int64_t> lengths) {
  auto opened = open(flags, "--strategies search");
  if (!opened.isOk())
    return failOpening(opened.status());
  const int64_t positions = opened->model->manifest().facts().positions();
  if (int64_t cut = cutLengths(lengths, positions))
    llvm::errs() << formatText(
        "note: %d of %d samples are cut at the model's %d positions\n", cut,
        lengths.size(), positions);
  opened->space.searchesFlags = true;
  opened->space.request.recompute = flags.values.recompute;
  opened->space.request.tokensPerMicroBatch = flags.values.tokensPerMicroBatch;
  opened->space.request.slices = slicesOfSearch(flags.values.slices);
  opened->space.tell = [](const std::string &next) {
    llvm::errs() << "search: " << next << '\n';
  };
  auto chosen =
      chooseStrategies(*opened->costs, opened->space, std::move(lengths));
  if (!chosen.isOk())
    return fail(chosen.status());
  if (std::string note = describeLackingMemory(*opened->costs); !note.empty())
    llvm::errs() << "note: " << printable(note) << '\n';
  noteLacking(*opened->costs, chosen->chosen());
  llvm::outs() << (flags.json ? chosen->json() : chosen->table());
  return 0;
}

} // namespace dyna
