//===- Policy.cpp - Derives the options of plans from a request -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/Policy.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/ChimeraSlots.h"
#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/planner/estimate/LackingCosts.h"

#include <algorithm>
#include <utility>

namespace dyna {
namespace {

/// Micro-batches per stage that keep a pipeline busy four fifths of the time.
constexpr int64_t fillsPipeline = 4;

/// Returns the recomputation to use: an explicit flag, or else the strategy's
/// own.
StatusOr<RecomputeModes> wishedRecompute(int layers, PlanRequest &request,
                                         std::vector<std::string> &notes) {
  Strategy &strategy = request.strategy;
  if (request.recompute.empty())
    return RecomputeModes{strategy.recompute.value_or(plan::RECOMPUTE_NONE)};
  const bool isChosen = request.recompute == chooseRecomputeWord;
  StatusOr<RecomputeModes> modes =
      isChosen ? RecomputeModes{plan::RECOMPUTE_NONE}
               : parseRecompute(request.recompute, layers);
  if (!modes.isOk() || !strategy.recompute)
    return modes;
  for (plan::Recompute mode : *modes)
    if (isChosen || mode != *strategy.recompute) {
      notes.push_back("--recompute " + request.recompute +
                      " is used, not that of the strategy '" +
                      describeStrategy(strategy) + "'");
      break;
    }
  strategy.recompute.reset();
  return modes;
}

/// Leaves a note that says how the layers of each stage were chosen, and one of what
/// costs lack for all the rest.
StatusOr<Strategy> cutStages(const CostModel &costs, const PlanRequest &request,
                             const RecomputeModes &modes, bool anyMode,
                             std::vector<std::string> &notes) {
  DYNA_ASSIGN_OR_RETURN(StageCut cut,
                        chooseLayers(costs, request.strategy, modes, anyMode));
  if (!cut.note.empty())
    notes.push_back(cut.note);
  const AskedCosts asked = {possibleModes(modes, anyMode),
                            request.splitBackward, /*update=*/true};
  std::string lacking =
      describeLacking(costs, cut.strategy, asked, cut.lacking);
  if (!request.isAgain && !lacking.empty())
    notes.push_back(std::move(lacking));
  return std::move(cut.strategy);
}

int64_t chooseMicroBatch(const PlanRequest &request, int64_t share,
                         int64_t positions) {
  if (request.tokensPerMicroBatch != 0)
    return request.tokensPerMicroBatch;
  int64_t size = std::min(request.tokensPerBatch, kUsualMicroBatch);
  const int stages = request.strategy.pp;
  // Two replicas fill the stages that they share.
  const int64_t fills = fillsPipeline / (request.strategy.mirror ? 2 : 1);
  if (stages > 1)
    size = std::min(size, std::max<int64_t>(1, share / (fills * stages)));
  return std::max({size, std::min(positions, kUsualMicroBatch),
                   std::min(request.longestSample, maxMicroBatchTokens)});
}

/// Chooses the schedule. Chimera runs two pipelines on the same devices, so that the
/// strategy gets a mirrored replica beside each of its own.
StatusOr<Schedule> chooseSchedule(PlanRequest &request) {
  Strategy &strategy = request.strategy;
  Schedule schedule =
      strategy.mirror ? Schedule::Chimera : defaultSchedule(strategy.pp);
  if (!request.pipeline.empty()) {
    DYNA_ASSIGN_OR_RETURN(schedule, findSchedule(request.pipeline));
  }
  if (schedule == Schedule::Chimera) {
    DYNA_ASSIGN_OR_RETURN(strategy, mirrorReplicas(strategy));
  } else if (strategy.mirror) {
    return Status::invalidArgument(formatText(
        "strategy '%s' has mirror=1, which is for --pipeline chimera, but "
        "--pipeline is %s: leave out one of the two",
        describeStrategy(strategy), request.pipeline));
  }
  return schedule;
}

/// Slices of a micro-batch above which a note says how many there are.
constexpr int64_t manySlices = 128;

void noteSlices(const Policy &policy, std::vector<std::string> &notes) {
  const SliceChoice &slices = policy.options.slices;
  if (!slices.any())
    return;
  if (policy.strategy.pp == 1)
    notes.push_back(formatText(
        "--slices %s gains nothing: slices fill a pipeline, and there is one "
        "stage",
        describeSlices(slices)));
  const int64_t tokens = policy.options.mostTokens();
  const int64_t count = slices.slicesOf(tokens);
  if (count <= manySlices)
    return;
  std::string help = "ask for fewer slices";
  if (slices.policy == SlicePolicy::Chunks)
    help = "use larger chunks";
  else if (!slices.lengths.empty())
    help = formatText("the last number, %d, repeats; end the list with a "
                      "larger one",
                      slices.lengths.back());
  notes.push_back(formatText(
      "--slices %s cuts a sample of %d tokens into %d micro-batches, each with "
      "the fixed time of all its calls: %s",
      describeSlices(slices), tokens, count, help));
}

/// There may be more of them: what divides by costs makes smaller ones than the
/// limit where these are faster.
void noteMicroBatches(const Policy &policy, int64_t positions,
                      std::vector<std::string> &notes) {
  const int64_t size = policy.options.maxTokensPerMicroBatch;
  const int64_t count = policy.microBatches;
  const int stages = policy.strategy.pp;
  if (policy.strategy.mirror) {
    if (count < chimeraUnit(stages))
      notes.push_back(formatText(
          "a step may have as few as %d micro-batch%s in each direction, but "
          "%d stages need %d: larger --tokens-per-batch or smaller "
          "--tokens-per-micro-batch (now %d) help",
          count, count == 1 ? "" : "es", stages, chimeraUnit(stages), size));
    return;
  }
  // Slices fill a pipeline too.
  if (stages > 1 && count < 2 * stages && !policy.options.slices.any())
    notes.push_back(formatText(
        "a step may have as few as %d micro-batch%s for %d stages: if all take "
        "the same, each stage then waits for %d %% of the time; larger "
        "--tokens-per-batch%s",
        count, count == 1 ? "" : "es", stages,
        100 * (stages - 1) / (count + stages - 1),
        // A micro-batch smaller than the longest sample would hold only that
        // sample.
        size > std::max<int64_t>(positions, 1)
            ? formatText(" or smaller --tokens-per-micro-batch (now %d) help",
                         size)
                  .c_str()
            : " helps"));
}

/// Returns true if costs are measured, or a device is described that is not the
/// built-in one. Slices are worth their fixed costs or not, which the built-in
/// device does not know of another machine.
bool knowsDevices(const CostModel &costs) {
  const CostTable &table = costs.table();
  return !table.curves().empty() || table.message().has_device() ||
         table.device().name() != CostTable::host().device().name();
}

/// Chooses slices if the request leaves them open: `auto` for plans that go by costs,
/// where slices can be and costs say what they gain.
SliceChoice defaultSlices(const CostModel &costs, const PlanOptions &options,
                          int stages) {
  SliceChoice slices;
  if (stages > 1 && ruleOf(options.schedule).adapts && knowsDevices(costs) &&
      checkSliceable(costs.model(), options.batching).isOk())
    slices.policy = SlicePolicy::Auto;
  return slices;
}

} // namespace

std::string knownWords() {
  std::string names;
  for (const auto &table : {batchingNames(), scheduleNames()})
    for (const std::string &name : table)
      names += (names.empty() ? "" : ", ") + name;
  return names +
         ", by --slices without its lists, or by several as uniform:4+" +
         batchingNames().back() + "+" + scheduleNames().front();
}

Status takeWords(const std::string &words, PlanRequest &request) {
  struct Table {
    const char *entries;
    std::string &value;
    bool isNamed = false;
  };
  Table schedules{"schedules", request.pipeline};
  Table batchings{"ways to make micro-batches", request.microBatches};
  Table slices{"ways to cut slices", request.slices};
  for (size_t begin = 0; begin <= words.size();) {
    const size_t end = std::min(words.find('+', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    begin = end + 1;
    Table *table = findSchedule(word).isOk()   ? &schedules
                   : findBatching(word).isOk() ? &batchings
                   : parseSlices(word).isOk()  ? &slices
                                               : nullptr;
    if (!table)
      return Status::invalidArgument("plans are named by " + knownWords() +
                                     ", but got '" + words + "'");
    if (std::exchange(table->isNamed, true))
      return Status::invalidArgument("'" + words + "' names two " +
                                     table->entries);
    table->value = word;
  }
  return Status::ok();
}

void setInFlight(PlanOptions &options, int64_t wished, int stages,
                 int64_t microBatches, std::vector<std::string> &notes) {
  options.inFlight = 1;
  if (wished > 0)
    options.inFlight = static_cast<int>(wished);
  else if (stages > 1 && ruleOf(options.schedule).readsInFlight)
    // One more than fill a step, because ragged micro-batches are seldom full.
    options.inFlight =
        static_cast<int>(std::min(microBatches + 1, maxInFlight));
  if (stages == 1)
    options.schedule = Schedule::GPipe;
  if (wished > 0 && !ruleOf(options.schedule).readsInFlight)
    notes.push_back("--in-flight is not used: how many micro-batches are "
                    "in flight is part of the schedule '" +
                    std::string(ruleOf(options.schedule).name) + "'");
}

bool isMirrored(const PlanRequest &request) {
  return request.strategy.mirror ||
         request.pipeline == ruleOf(Schedule::Chimera).name;
}

StatusOr<Policy> choosePolicy(const CostModel &costs, PlanRequest request) {
  const Model &model = costs.model();
  const int64_t positions = model.manifest().facts().positions();
  Policy policy;
  PlanOptions &options = policy.options;
  DYNA_ASSIGN_OR_RETURN(options.schedule, chooseSchedule(request));
  options.batching = allBatchings().front();
  if (!request.microBatches.empty()) {
    DYNA_ASSIGN_OR_RETURN(options.batching, findBatching(request.microBatches));
  }
  options.chooseRecompute = request.recompute == chooseRecomputeWord;
  DYNA_ASSIGN_OR_RETURN(auto modes,
                        wishedRecompute(model.layers(), request, policy.notes));
  options.recompute = modes;
  DYNA_ASSIGN_OR_RETURN(
      auto cut,
      cutStages(costs, request, modes, options.chooseRecompute, policy.notes));
  policy.strategy = std::move(cut);

  const int64_t share =
      std::max<int64_t>(1, request.tokensPerBatch / policy.strategy.dp);
  const int64_t size = chooseMicroBatch(request, share, positions);
  options.maxTokensPerMicroBatch = size;
  options.longestSample =
      std::min(request.longestSample > 0 ? request.longestSample : positions,
               maxMicroBatchTokens);
  policy.microBatches = share / size + (share % size != 0 ? 1 : 0);
  options.splitBackward = request.splitBackward;
  options.norms = request.norms;
  options.slices = defaultSlices(costs, options, policy.strategy.pp);
  if (!request.slices.empty()) {
    DYNA_ASSIGN_OR_RETURN(options.slices, parseSlices(request.slices));
  }
  setInFlight(options, request.inFlight, policy.strategy.pp,
              policy.microBatches, policy.notes);
  noteSlices(policy, policy.notes);
  noteMicroBatches(policy, positions, policy.notes);
  return policy;
}

} // namespace dyna
