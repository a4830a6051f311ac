//===- Orchestrated.cpp - Reads the orchestration of a module -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/Orchestrated.h"

#include "dialects/exec/SwitchTranslation.h"

using namespace mlir;
using namespace mlir::dyna;

using ::dyna::Status;
using ::dyna::SwitchTable;

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
  // Errors were reported above: tensors are compared, and each switch has its
  // own verifier.
  if (!table.isOk())
    return failure();
  orchestrated.switches = std::move(*table);
  return orchestrated;
}
