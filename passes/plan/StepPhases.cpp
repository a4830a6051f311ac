//===- StepPhases.cpp - Steps of several graphs in a module ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/StepPhases.h"

#include "dialects/exec/SwitchTranslation.h"
#include "runtime/plan/InstructionTable.h"
#include "runtime/plan/StepVerifier.h"
#include "runtime/planner/AssignStrategies.h"
#include "runtime/planner/JoinPhases.h"

#include <numeric>

using namespace mlir;
using namespace mlir::dyna;

namespace plan = ::dyna::plan;
using ::dyna::Status;
using ::dyna::SwitchTable;

//===----------------------------------------------------------------------===//
// What a module says
//===----------------------------------------------------------------------===//

static LogicalResult readTurns(exec::OrchestrationOp op,
                               const ::dyna::Model &model,
                               Orchestrated &orchestrated) {
  std::vector<::dyna::LengthRange> ranges;
  for (auto turn : op.getOps<exec::TurnOp>()) {
    auto graphOp = SymbolTable::lookupNearestSymbolFrom<exec::GraphOp>(
        op, turn.getGraphAttr());
    if (failed(verifyExecutable(graphOp, model)))
      return failure();
    auto graph = placeStrategy(model, exec::strategyOf(graphOp));
    if (!graph.isOk())
      return graphOp.emitOpError() << graph.status().message();
    ::dyna::LengthRange &range = ranges.emplace_back();
    range.name = turn.getGraph().str();
    range.strategy = static_cast<int>(ranges.size()) - 1;
    range.first = static_cast<int64_t>(turn.getFirst());
    if (turn.getLast())
      range.last = static_cast<int64_t>(*turn.getLast());
    orchestrated.turns.push_back(
        {graphOp,
         std::make_unique<::dyna::ExecutableGraph>(std::move(*graph))});
  }
  auto made = ::dyna::LengthRanges::create(std::move(ranges));
  if (!made.isOk())
    return op.emitOpError() << made.status().message();
  orchestrated.ranges = std::move(*made);
  return success();
}

static bool isSame(const std::vector<::dyna::RankBox> &a,
                   const std::vector<::dyna::RankBox> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ::dyna::RankBox &x, const ::dyna::RankBox &y) {
                      return x.rank == y.rank && x.box == y.box;
                    });
}

namespace {
/// The `exec.switch_plan`s of a module, by what they are of.
class SwitchPlans {
public:
  SwitchPlans(exec::OrchestrationOp op, const ::dyna::Model &model,
              const Orchestrated &orchestrated)
      : op_(op), model_(model), orchestrated_(orchestrated) {
    for (auto plan :
         op->getParentOfType<ModuleOp>().getOps<exec::SwitchPlanOp>())
      if (plan.getHome() == op.getHome())
        all_.push_back(plan);
  }

  /// Fails after a diagnostic, with which the status has to do nothing.
  ::dyna::StatusOr<::dyna::SwitchPlan>
  find(const SwitchTable::Way &way,
       const std::vector<::dyna::SwitchTensor> &needed) {
    const StringRef graph = nameOf(way.graph), behind = nameOf(way.before);
    const exec::Moved moved =
        way.ofGradients ? exec::Moved::Gradients : exec::Moved::Values;
    for (exec::SwitchPlanOp plan : all_)
      if (plan.getMoved() == moved && plan.getGraph() == graph &&
          plan.getBehind().value_or("") == behind) {
        if (failed(checkTensors(plan, needed)))
          return Status::invalidArgument("another switch");
        return exec::exportSwitch(plan);
      }
    InFlightDiagnostic error = op_.emitOpError() << "has no exec.switch_plan "
                                                 << exec::stringifyMoved(moved)
                                                 << " of @" << graph;
    if (!behind.empty())
      error << " behind @" << behind;
    error << " home @" << op_.getHome() << "; --dyna-orchestrate makes them";
    return Status::invalidArgument("no such switch");
  }

private:
  StringRef nameOf(int turn) {
    return turn < 0 ? StringRef()
                    : exec::GraphOp(orchestrated_.turns[turn].op).getSymName();
  }

  LogicalResult checkTensors(exec::SwitchPlanOp plan,
                             const std::vector<::dyna::SwitchTensor> &needed) {
    const auto stated = exec::exportTensors(plan, &model_);
    auto ops = llvm::to_vector(plan.getOps<exec::TensorOp>());
    for (size_t t = 0; t < std::min(stated.size(), needed.size()); ++t) {
      const ::dyna::SwitchTensor &is = stated[t], &must = needed[t];
      if (is.parameter != must.parameter || is.part != must.part ||
          is.elementBytes != must.elementBytes || !isSame(is.from, must.from) ||
          !isSame(is.to, must.to))
        return ops[t].emitOpError()
               << "is not what its graphs need here, which is tensor " << t
               << " of @" << model_.parameter(must.parameter).name()
               << ", where they have it; --dyna-orchestrate says it";
    }
    if (stated.size() != needed.size())
      return plan.emitOpError()
             << "moves " << stated.size() << " tensors, but its graphs need "
             << needed.size();
    return success();
  }

  exec::OrchestrationOp op_;
  const ::dyna::Model &model_;
  const Orchestrated &orchestrated_;
  SmallVector<exec::SwitchPlanOp> all_;
};
} // namespace

FailureOr<Orchestrated>
mlir::dyna::readOrchestration(exec::OrchestrationOp op,
                              const ::dyna::Model &model) {
  Orchestrated orchestrated;
  if (failed(readTurns(op, model, orchestrated)))
    return failure();
  const auto graphs = orchestrated.graphs();
  if (Status status = ::dyna::checkSwitched(graphs); !status.isOk())
    return op.emitOpError() << status.message();
  SwitchPlans plans(op, model, orchestrated);
  auto table = SwitchTable::createWays(
      graphs, orchestrated.home(),
      [&](const SwitchTable::Way &way, const auto &tensors) {
        return plans.find(way, tensors);
      });
  // What went wrong has been said: tensors are compared, and a switch is proven
  // by its own verifier.
  if (!table.isOk())
    return failure();
  orchestrated.switches = std::move(*table);
  return orchestrated;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

::dyna::StatusOr<StepDraft>
mlir::dyna::beginStep(const Orchestrated &orchestrated,
                      const ::dyna::CostModel &costs,
                      const MiniBatchRequest &request) {
  DYNA_RETURN_IF_ERROR(checkRequest(request));
  if (request.strategy != defaultStrategy)
    return Status::invalidArgument(
        "strategy is given, but the module has strategies of its own "
        "(exec.orchestration): leave it out");
  DYNA_ASSIGN_OR_RETURN(
      auto assigned,
      ::dyna::assignByRange(request.lengths, orchestrated.ranges));
  MiniBatchRequest own = request;
  if (own.targetTokens < 0)
    own.targetTokens = std::accumulate(request.lengths.begin(),
                                       request.lengths.end(), int64_t(0));
  StepDraft step;
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
                          beginPhase(orchestrated.graphs(), turn, costs, own));
    areJoined |= draft.plan.lengths != own.lengths;
    step.phases.push_back(
        {turn, std::move(draft), {dealt.begin(), dealt.end()}});
  }
  // The samples that are joined to one are numbered anew.
  int64_t samples = 0;
  for (StepDraft::Phase &phase : step.phases)
    if (areJoined) {
      phase.samples.resize(phase.draft.plan.lengths.size());
      for (int64_t &sample : phase.samples)
        sample = samples++;
    }
  return step;
}

LogicalResult mlir::dyna::addStep(ModuleOp module,
                                  const Orchestrated &orchestrated,
                                  StepDraft step, bool isComplete) {
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
    return isComplete
               ? verifyPlan(plans.front(), orchestrated.turns[0].graph->model())
               : success();
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

/// A mini-batch that nobody evaluates, nor parts of it.
static bool trains(const plan::StepPlan &step) {
  for (const plan::Phase &phase : step.phases)
    for (const plan::RankProgram &program : phase.plan.ranks)
      for (const plan::Instruction &i : program.instructions)
        if (i.op == plan::Instruction::EVALUATE)
          return false;
  return true;
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
          ::dyna::joinPhases(orchestrated.switches, trains(step), step);
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
// Proof
//===----------------------------------------------------------------------===//

/// Of the mini-batch: what is in no phase is there, with no tokens.
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
                                     int64_t limit) {
  auto plans = exec::plansOf(op);
  for (exec::PlanOp plan : plans)
    if (failed(exec::requireComplete(plan)))
      return failure();
  std::vector<int64_t> limits;
  if (limit >= 0)
    limits.assign(orchestrated.turns[0].graph->ranks(), limit);
  ::dyna::StepPosition position;
  auto proven = ::dyna::VerifiedStep::prove(
      orchestrated.switches, exec::exportStep(op), miniBatchOf(op),
      static_cast<int64_t>(plans.back().getTargetTokens()), limits, &position);
  if (proven.isOk())
    return success();
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
