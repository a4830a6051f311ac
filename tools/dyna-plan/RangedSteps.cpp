//===- RangedSteps.cpp - Plans and simulates steps that switch ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/RangedSteps.h"

#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/planner/cut/batching/Batchings.h"
#include "tools/dyna-plan/PlanModel.h"
#include "tools/dyna-plan/PlayedSteps.h"
#include "tools/dyna-plan/SimulationFlag.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

namespace dyna {
namespace {

/// Settings that all plans of one command share.
struct Setting {
  const PlanFlags &flags;
  const CostModel &costs;
  StepLengths steps;
  SimulationOptions conditions;

  int64_t memory() const { return costs.table().device().memory_bytes(); }
};

/// Strategies with the lengths that each has, and what plans their steps.
class RangedSteps {
public:
  /// Makes steps as a run with --ranges does, with a device's memory as
  /// --rank-memory. Plans that do not fit are made too, to report their need.
  static StatusOr<std::unique_ptr<RangedSteps>>
  create(const Setting &setting, const std::vector<Strategy> &strategies,
         LengthRanges ranges, PlanRequest request);

  StatusOr<RunReport> play(const Setting &setting, const std::string &name,
                           StepOutputs &outputs);
  const std::vector<std::string> &notes() const { return notes_; }
  /// Tokens of the longest sample that the steps may have.
  int64_t longest() const { return steps_->longest(); }
  /// Describes home for people: "home is 'b'".
  std::string describeHome() const {
    return formatText("'%s' is home: it has the masters and makes the update",
                      planner().home().name);
  }

  /// Describes for all simulated steps which ranges gave samples to others.
  /// `name` is that of the plan.
  std::vector<std::string> describeMerged(const std::string &name) const;

private:
  const StepPlanner &planner() const { return steps_->planner(); }
  void countMerged(const VerifiedStep &step);

  struct Merged {
    int64_t samples = 0, steps = 0;
  };
  std::vector<std::string> notes_;
  std::map<std::pair<int, int>, Merged> merged_; ///< from one range to another
  std::unique_ptr<SizedSteps> steps_;
};

StatusOr<std::unique_ptr<RangedSteps>>
RangedSteps::create(const Setting &setting,
                    const std::vector<Strategy> &strategies,
                    LengthRanges ranges, PlanRequest request) {
  auto made = std::make_unique<RangedSteps>();
  SizedSteps::Asked asked;
  asked.strategies = strategies;
  asked.ranges = std::move(ranges);
  asked.request = std::move(request);
  asked.memoryBytes = setting.memory();
  asked.longest = setting.steps.longest;
  asked.shortens = setting.steps.shortens;
  asked.merges = setting.flags.values.mergeRanges == "auto";
  DYNA_ASSIGN_OR_RETURN(
      made->steps_,
      SizedSteps::create(setting.costs, std::move(asked), made->notes_));
  return made;
}

void RangedSteps::countMerged(const VerifiedStep &step) {
  for (const VerifiedStep::Phase &phase : step.phases()) {
    std::map<int, int64_t> samples; // by their own range
    for (int64_t length : phase.lengths)
      ++samples[planner().graphs().ranges().rangeOf(length)];
    samples.erase(phase.switches.graph);
    for (const auto &[range, count] : samples) {
      Merged &merged = merged_[{range, phase.switches.graph}];
      merged.samples += count;
      ++merged.steps;
    }
  }
}

std::vector<std::string>
RangedSteps::describeMerged(const std::string &name) const {
  std::vector<std::string> lines;
  for (const auto &[ranges, merged] : merged_)
    lines.push_back(formatText(
        "%s: '%s' has %s of '%s', in %s: too few there to be worth a switch "
        "(--merge-ranges never keeps them apart)",
        name, planner().graph(ranges.second).name,
        countOf(merged.samples, "sample"), planner().graph(ranges.first).name,
        countOf(merged.steps, "step")));
  return lines;
}

StatusOr<RunReport> RangedSteps::play(const Setting &setting,
                                      const std::string &name,
                                      StepOutputs &outputs) {
  DYNA_ASSIGN_OR_RETURN(
      RunReport all,
      simulateSteps(*steps_, setting.steps, setting.conditions, name, outputs,
                    [this](const VerifiedStep &step) { countMerged(step); }));
  std::vector<std::string> names;
  for (int range : planner().graphs().orchestration().order)
    names.push_back(planner().graph(range).name);
  all.orderPhases(names);
  return all;
}

/// One of the strategies for all samples; `report` is of the same steps.
struct Alone {
  std::string strategy;
  RunReport report;
};

/// Describes the best plan, unless it is the one with ranges, which the table
/// already shows.
std::string describeBest(const std::string &name, const RunReport &report,
                         const Alone &best, int64_t memory) {
  if (!fits(report, memory))
    return formatText("'%s' alone fits, which %s does not: one strategy, "
                      "without ranges, is better here\n",
                      best.strategy, name);
  // Do not report differences that print as 1.000 times as long.
  if (best.report.seconds < 0.9995 * report.seconds)
    return formatText("'%s' alone is faster for these lengths than %s: one "
                      "strategy, without ranges, is better here\n",
                      best.strategy, name);
  return "";
}

std::string describeGains(const std::string &name, const RunReport &report,
                          const std::vector<Alone> &alone, int64_t memory) {
  std::string text;
  const Alone *best = nullptr;
  for (const Alone &one : alone) {
    text += formatText("%s takes %.6g s a step, and '%s' alone %.3f times as "
                       "long%s\n",
                       name, report.seconds / static_cast<double>(report.steps),
                       one.strategy, one.report.seconds / report.seconds,
                       fits(one.report, memory) ? "" : ", but does not fit");
    if (fits(one.report, memory) &&
        (!best || one.report.seconds < best->report.seconds))
      best = &one;
  }
  return best ? text + describeBest(name, report, *best, memory) : text;
}

/// Returns the report's JSON object, followed by the strategies alone.
std::string jsonOf(const std::string &name, const RunReport &report,
                   const std::vector<Alone> &alone, int64_t memory,
                   const std::vector<ContextErrors> &slices) {
  JsonArray ofAlone;
  for (const Alone &one : alone)
    ofAlone.add(
        JsonObject()
            .add("strategy", one.strategy)
            .add("seconds", jsonRounded(one.report.seconds, 9))
            .add("gain", jsonRounded(one.report.seconds / report.seconds, 9))
            .add("fits", fits(one.report, memory)));
  JsonObject object = report.json(name);
  object.add("fits", fits(report, memory)).add("alone", ofAlone);
  if (!slices.empty())
    object.add("slice_errors", contextJson(slices));
  return object.text();
}

void sayNotes(const std::vector<std::string> &notes,
              std::set<std::string> &said) {
  for (const std::string &note : notes)
    if (said.insert(note).second)
      llvm::errs() << "note: " << printable(note) << '\n';
}

/// Simulates each strategy of a range alone, if it can hold all samples.
StatusOr<std::vector<Alone>> playAlone(const Setting &setting,
                                       const std::vector<Strategy> &strategies,
                                       const LengthRanges &ranges,
                                       const PlanRequest &request,
                                       std::set<std::string> &said) {
  std::vector<Alone> all;
  for (const LengthRange &range : ranges.ranges()) {
    DYNA_ASSIGN_OR_RETURN(LengthRanges own,
                          parseLengthRanges(range.name + ": 0-", {range.name}));
    StepOutputs none;
    auto steps = RangedSteps::create(setting, {strategies[range.strategy]},
                                     std::move(own), request);
    auto report = steps.isOk() ? (*steps)->play(setting, range.name, none)
                               : StatusOr<RunReport>(steps.status());
    if (report.isOk())
      all.push_back({range.name, *std::move(report)});
    else
      sayNotes({formatText("strategy '%s' alone: %s", range.name,
                           report.status().message())},
               said);
  }
  return all;
}

/// Returns the strategies of --strategies, or those that a binary was compiled
/// with.
StatusOr<std::vector<Strategy>> namedStrategies(const PlanFlags &flags,
                                                const Model &model) {
  if (!flags.strategies.empty())
    return parseStrategies(flags.strategies);
  DYNA_ASSIGN_OR_RETURN(auto strategies, compiledStrategies(model));
  if (strategies.empty())
    return Status::invalidArgument(
        "--ranges names strategies: --strategies says which they are, such as "
        "\"a: dp=4; b: tp=4\"");
  return strategies;
}

Status checkDevices(const std::vector<Strategy> &strategies,
                    const LengthRanges &ranges, int64_t devices) {
  const Strategy &first = strategies[ranges.ranges().front().strategy];
  if (devices > 0 && first.ranks() > devices)
    return Status::invalidArgument(
        formatText("the strategies have %d ranks, but the cluster %d devices",
                   first.ranks(), devices));
  return Status::ok();
}

Status checkBatchings(const std::vector<NamedRequest> &requests) {
  for (const auto &[name, request] : requests) {
    if (request.microBatches.empty())
      continue;
    DYNA_ASSIGN_OR_RETURN(Batching batching,
                          findBatching(request.microBatches));
    DYNA_RETURN_IF_ERROR(checkRanged(batching));
  }
  return Status::ok();
}

Status writeOutputs(const PlanFlags &flags, const StepOutputs &outputs) {
  if (outputs.hasTrace)
    DYNA_RETURN_IF_ERROR(replaceFile(flags.trace, outputs.trace.finish()));
  return outputs.hasSvg ? replaceFile(flags.svg, outputs.svg.finish())
                        : Status::ok();
}

Status planAll(const PlanFlags &flags, const CostModel &costs,
               const std::vector<int64_t> &lengths) {
  DYNA_ASSIGN_OR_RETURN(auto strategies, namedStrategies(flags, costs.model()));
  std::vector<std::string> names;
  for (const Strategy &strategy : strategies)
    names.push_back(strategy.name);
  DYNA_ASSIGN_OR_RETURN(LengthRanges ranges,
                        parseLengthRanges(flags.ranges, names));
  DYNA_RETURN_IF_ERROR(checkEqualRanks(ranges, strategies));
  DYNA_RETURN_IF_ERROR(
      checkDevices(strategies, ranges, costs.cluster().devices()));
  Setting setting{flags, costs, {}, {}};
  setting.steps =
      dealSteps(lengths, costs.model().manifest().facts().positions(), flags);
  DYNA_ASSIGN_OR_RETURN(setting.conditions, parseSimulation(flags.simulate));
  DYNA_ASSIGN_OR_RETURN(auto requests, requestsOf(flags));
  DYNA_RETURN_IF_ERROR(checkBatchings(requests));
  StepOutputs outputs;
  outputs.hasTrace = !flags.trace.empty();
  outputs.hasSvg = !flags.svg.empty();
  outputs.hasPlanTimes = flags.planTimes;
  std::set<std::string> said;
  Reports reports;
  const std::vector<ContextErrors> slices = sliceErrors(costs.table(), flags);
  std::string gains;
  for (auto &[name, request] : requests) {
    // A run chooses schedules itself.
    if (!flags.namesPlans()) {
      request.pipeline.clear();
      name = "ranges" + name.substr(PlanFlags::defaultWord().size());
    }
    DYNA_ASSIGN_OR_RETURN(
        auto steps, RangedSteps::create(setting, strategies, ranges, request));
    sayNotes(steps->notes(), said);
    if (ranges.size() > 1)
      sayNotes({steps->describeHome()}, said);
    // Compare each strategy alone for the same samples.
    Setting same = setting;
    if (std::string note = same.steps.shorten(steps->longest()); !note.empty())
      sayNotes({note}, said);
    same.steps.shortens = false;
    DYNA_ASSIGN_OR_RETURN(RunReport report, steps->play(same, name, outputs));
    sayNotes(steps->describeMerged(name), said);
    DYNA_ASSIGN_OR_RETURN(auto alone,
                          playAlone(same, strategies, ranges, request, said));
    gains += flags.json
                 ? jsonOf(name, report, alone, setting.memory(), slices) + "\n"
                 : describeGains(name, report, alone, setting.memory());
    reports.emplace_back(name, std::move(report));
  }
  DYNA_RETURN_IF_ERROR(writeOutputs(flags, outputs));
  if (!flags.json)
    print(reports, setting.memory(), flags, slices);
  llvm::outs() << gains;
  return Status::ok();
}

} // namespace

int planRanges(const PlanFlags &flags, const std::vector<int64_t> &lengths) {
  auto table = openTable(flags);
  if (!table.isOk())
    return fail(table.status());
  std::string degrees;
  if (!flags.strategies.empty()) {
    auto strategies = parseStrategies(flags.strategies);
    if (!strategies.isOk())
      return fail(strategies.status());
    degrees = splittingStrategies(*strategies);
  }
  auto model = compileDegrees(flags, degrees, *table);
  if (mlir::failed(model))
    return 2;
  auto costs = openCosts(*model, std::move(*table), flags);
  if (!costs.isOk())
    return fail(costs.status());
  const Status status = planAll(flags, *costs, lengths);
  return status.isOk() ? 0 : fail(status);
}

} // namespace dyna
