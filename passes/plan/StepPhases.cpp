//===- StepPhases.cpp - Makes the step of a mini-batch in a module --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/StepPhases.h"

#include "dialects/exec/SwitchTranslation.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/step/GraphEstimates.h"
#include "runtime/planner/write/JoinPhases.h"

#include <numeric>

using namespace mlir;
using namespace mlir::dyna;

namespace plan = ::dyna::plan;
using ::dyna::Status;

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Returns the estimates that decide merges: the phases of each turn with the
/// options of its plans, and switches on the cluster of the costs.
static ::dyna::StatusOr<::dyna::GraphEstimates>
estimateTurns(const Orchestrated &orchestrated, const ::dyna::CostModel &costs,
              const MiniBatchRequest &request) {
  std::vector<::dyna::PhaseEstimate> phases;
  std::vector<int> order;
  for (int turn = 0; turn <= orchestrated.home(); ++turn) {
    int64_t longest = 1;
    for (int64_t length : request.lengths)
      if (length <= orchestrated.ranges.ranges()[turn].last)
        longest = std::max(longest, length);
    DYNA_ASSIGN_OR_RETURN(
        auto options,
        phaseOptions(orchestrated.switches, turn, costs, request, longest));
    phases.emplace_back(orchestrated.switches.graph(turn), costs, options);
    order.push_back(turn);
  }
  const auto network = ::dyna::networkOf(
      costs.cluster(), orchestrated.switches.graph(0).ranks());
  return ::dyna::GraphEstimates(
      std::move(phases), std::move(order),
      ::dyna::timeSwitches(orchestrated.switches,
                           ::dyna::switchMaker(network).seconds));
}

static ::dyna::StatusOr<::dyna::Assignment>
assign(const Orchestrated &orchestrated, const ::dyna::CostModel &costs,
       const MiniBatchRequest &request) {
  if (request.words.mergeRanges == "never" || request.evaluate)
    return ::dyna::assignByRange(request.lengths, orchestrated.ranges);
  DYNA_ASSIGN_OR_RETURN(auto estimates,
                        estimateTurns(orchestrated, costs, request));
  return ::dyna::assignSamples(request.lengths, orchestrated.ranges, estimates);
}

/// Describes samples that were moved from their range to another one.
static std::vector<std::string>
describeMerges(const Orchestrated &orchestrated,
               const ::dyna::Assignment &assigned,
               const std::vector<int64_t> &lengths) {
  const auto &ranges = orchestrated.ranges.ranges();
  std::vector<std::string> notes;
  for (size_t turn = 0; turn < ranges.size(); ++turn) {
    std::vector<int> from(ranges.size());
    for (int sample : assigned.samples[turn])
      ++from[orchestrated.ranges.rangeOf(lengths[sample])];
    for (size_t range = 0; range < ranges.size(); ++range)
      if (range != turn && from[range] > 0)
        notes.push_back(::dyna::formatText(
            "%d sample%s of '%s' join those of '%s': alone they are not worth "
            "their switch",
            from[range], from[range] == 1 ? "" : "s", ranges[range].name,
            ranges[turn].name));
  }
  return notes;
}

/// Begins the plans of the turns of an orchestration.
static ::dyna::StatusOr<StepDraft> beginTurns(const Orchestrated &orchestrated,
                                              const ::dyna::CostModel &costs,
                                              const MiniBatchRequest &request) {
  DYNA_RETURN_IF_ERROR(checkRequest(request));
  if (!request.words.strategy.empty())
    return Status::invalidArgument(
        "strategy is given, but the module has strategies of its own "
        "(exec.orchestration): leave it out");
  DYNA_ASSIGN_OR_RETURN(auto assigned, assign(orchestrated, costs, request));
  MiniBatchRequest own = request;
  if (own.targetTokens < 0)
    own.targetTokens = std::accumulate(request.lengths.begin(),
                                       request.lengths.end(), int64_t(0));
  StepDraft step;
  step.notes = describeMerges(orchestrated, assigned, request.lengths);
  if (std::string note = costs.describeOtherType(); !note.empty())
    step.notes.push_back(std::move(note));
  bool areJoined = false;
  for (int turn = 0; turn <= orchestrated.home(); ++turn) {
    const bool isHome = turn == orchestrated.home();
    const std::vector<int> &dealt = assigned.samples[turn];
    if (dealt.empty() && !isHome)
      continue;
    own.lengths.clear();
    for (int sample : dealt)
      own.lengths.push_back(request.lengths[sample]);
    DYNA_ASSIGN_OR_RETURN(PlanDraft draft,
                          beginPhase(orchestrated.switches, turn, costs, own));
    areJoined |= draft.plan.lengths != own.lengths;
    step.phases.push_back(
        {turn, std::move(draft), {dealt.begin(), dealt.end()}});
  }
  // Number the samples of the joined phase anew.
  int64_t samples = 0;
  for (StepDraft::Phase &phase : step.phases)
    if (areJoined) {
      phase.samples.resize(phase.draft.plan.lengths.size());
      for (int64_t &sample : phase.samples)
        sample = samples++;
    }
  return step;
}

FailureOr<std::optional<Orchestrated>>
mlir::dyna::findOrchestrated(ModuleOp module, const ::dyna::Model &model) {
  exec::OrchestrationOp op = findOrchestration(module);
  if (!op)
    return std::optional<Orchestrated>();
  FailureOr<Orchestrated> read = readOrchestration(op, model);
  if (failed(read))
    return failure();
  return std::optional<Orchestrated>(std::move(*read));
}

/// Begins the plans of a mini-batch.
static ::dyna::StatusOr<StepDraft>
beginStep(const std::optional<Orchestrated> &orchestrated,
          const ::dyna::Model &model, const ::dyna::CostModel &costs,
          const MiniBatchRequest &request) {
  if (orchestrated)
    return beginTurns(*orchestrated, costs, request);
  DYNA_ASSIGN_OR_RETURN(PlanDraft draft, beginPlan(model, costs, request));
  StepDraft step;
  step.phases.push_back({/*turn=*/0, std::move(draft), {}});
  return step;
}

/// Adds the only plan of a module without an orchestration, and its graph.
static LogicalResult addAlone(ModuleOp module, const ::dyna::Model &model,
                              PlanDraft draft, bool isComplete) {
  FailureOr<exec::PlanOp> plan =
      addPlan(module, model, std::move(draft), isComplete);
  if (failed(plan) || !isComplete)
    return plan;
  return verifyPlan(*plan, model);
}

/// Adds the plans of a step and the op that names them.
static LogicalResult
addStep(ModuleOp module, const ::dyna::Model &model,
        const std::optional<Orchestrated> &orchestratedOrNone, StepDraft step,
        bool isComplete) {
  sayNotes(module, step.notes);
  for (const StepDraft::Phase &phase : step.phases)
    sayNotes(module, phase.draft.notes);
  if (!orchestratedOrNone)
    return addAlone(module, model, std::move(step.phases.front().draft),
                    isComplete);
  const Orchestrated &orchestrated = *orchestratedOrNone;
  SymbolTable symbols(module);
  SmallVector<exec::PlanOp> plans;
  for (StepDraft::Phase &phase : step.phases) {
    FailureOr<exec::PlanOp> plan = addPlanOf(
        orchestrated.turns[phase.turn].op, std::move(phase.draft), isComplete);
    if (failed(plan))
      return failure();
    plans.push_back(*plan);
  }
  if (plans.size() == 1)
    return isComplete ? verifyPlan(plans.front(), model) : success();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto op = exec::StepOp::create(builder, module.getLoc(),
                                 builder.getStringAttr("step"));
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  for (auto [plan, phase] : llvm::zip_equal(plans, step.phases))
    exec::PhaseOp::create(builder, module.getLoc(), plan.getSymName(),
                          phase.samples);
  symbols.insert(op);
  if (!isComplete)
    return success();
  if (failed(joinStep(op, orchestrated)))
    return failure();
  return verifyStep(op, orchestrated);
}

LogicalResult
mlir::dyna::planMiniBatch(ModuleOp module,
                          const ::dyna::StatusOr<MiniBatchRequest> &request,
                          CompleteStep complete) {
  if (!request.isOk())
    return refuse(module, request.status());
  FailureOr<::dyna::Model> model = modelOf(module);
  if (failed(model))
    return failure();
  auto orchestrated = findOrchestrated(module, *model);
  if (failed(orchestrated))
    return failure();
  auto costs = openCosts(*model, request->words.costs, request->words.cluster);
  if (!costs.isOk())
    return refuse(module, costs.status());
  auto step = beginStep(*orchestrated, *model, *costs, *request);
  if (!step.isOk())
    return refuse(module, step.status());
  if (complete)
    if (::dyna::Status status = complete(*step, *costs); !status.isOk())
      return refuse(module, status);
  return addStep(module, *model, *orchestrated, std::move(*step),
                 /*isComplete=*/bool(complete));
}

LogicalResult mlir::dyna::joinStep(exec::StepOp op,
                                   const Orchestrated &orchestrated) {
  plan::StepPlan step = exec::exportStep(op);
  for (plan::Phase &phase : step.phases)
    for (plan::RankProgram &program : phase.plan.ranks)
      llvm::erase_if(program.instructions, [](const plan::Instruction &i) {
        return ::dyna::exchangeOf(i.op).isSwitch();
      });
  if (Status status =
          ::dyna::joinPhases(orchestrated.switches, ::dyna::trains(step), step);
      !status.isOk())
    return refuse(op, status);
  // Phases were planned for the memory that the others leave.
  if (Status status =
          ::dyna::placePhases(orchestrated.switches, /*regionBytes=*/{}, step);
      !status.isOk())
    return refuse(op, status);
  for (auto [plan, phase] : llvm::zip_equal(exec::plansOf(op), step.phases)) {
    const int turn = orchestrated.switches.find(phase.plan.graph);
    PlanDraft draft = {*orchestrated.turns[turn].graph};
    draft.plan = std::move(phase.plan);
    if (failed(replacePlan(plan, std::move(draft), /*isComplete=*/true)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Returns the lengths of the mini-batch. A sample in no phase has length 0.
static std::vector<int64_t> miniBatchOf(exec::StepOp op) {
  size_t samples = 0;
  for (auto phase : op.getOps<exec::PhaseOp>())
    samples += phase.getSamples().size();
  std::vector<int64_t> lengths(samples, 0);
  for (auto [phase, plan] :
       llvm::zip_equal(op.getOps<exec::PhaseOp>(), exec::plansOf(op)))
    for (auto [sample, length] : llvm::zip(phase.getSamples(), lengthsOf(plan)))
      if (static_cast<size_t>(sample) < samples)
        lengths[sample] = length;
  return lengths;
}

LogicalResult mlir::dyna::verifyStep(exec::StepOp op,
                                     const Orchestrated &orchestrated,
                                     int64_t limit,
                                     const ::dyna::UpdateRules &updates) {
  auto plans = exec::plansOf(op);
  for (exec::PlanOp plan : plans)
    if (failed(exec::requireComplete(plan)))
      return failure();
  std::vector<int64_t> limits;
  if (limit >= 0)
    limits.assign(orchestrated.turns[0].graph->ranks(), limit);
  ::dyna::StepPosition position;
  const plan::StepPlan step = exec::exportStep(op);
  auto proven = ::dyna::VerifiedStep::prove(
      orchestrated.switches, step, miniBatchOf(op),
      static_cast<int64_t>(plans.back().getTargetTokens()), limits, &position,
      updates);
  if (proven.isOk()) {
    // Only runs may read gradients between steps, so a step in a module must
    // update.
    if (Status status = ::dyna::checkUpdated(step); !status.isOk())
      return refuse(op, status);
    return success();
  }
  Operation *place =
      position.phase < 0
          ? op
          : exec::findInstruction(plans[position.phase], position.at.rank,
                                  position.at.instruction);
  InFlightDiagnostic error = emitError(place->getLoc())
                             << proven.status().message();
  error.attachNote(op.getLoc()) << "in the step " << op.getSymNameAttr();
  return error;
}
