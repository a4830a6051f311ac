//===- VerifyPlan.cpp - Verifies plans at the op that fails ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Requirements.h"
#include "dialects/exec/SwitchTranslation.h"
#include "passes/plan/ManifestBuilder.h"
#include "passes/plan/PlanSteps.h"
#include "passes/plan/StepPhases.h"
#include "runtime/base/text/ParseBytes.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/StepVerifier.h"

#include <map>

namespace mlir::dyna {
#define GEN_PASS_DEF_VERIFYPLAN
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

FailureOr<::dyna::Model> mlir::dyna::modelOf(ModuleOp module) {
  FailureOr<::dyna::plan::Manifest> manifest = buildManifest(module);
  if (failed(manifest))
    return failure();
  auto model = ::dyna::Model::create(std::move(*manifest));
  if (!model.isOk())
    return module.emitError(model.status().message());
  return std::move(*model);
}

/// Returns the end of a range. Neither number is negative, but both may be as
/// large as the type permits.
static int64_t endOf(int64_t begin, int64_t length) {
  return begin + std::min(length, std::numeric_limits<int64_t>::max() - begin);
}

std::vector<int64_t> mlir::dyna::lengthsOf(exec::PlanOp op) {
  if (op.getLengths())
    return op.getLengths()->vec();
  std::map<int64_t, int64_t> ends;
  for (auto microBatch : op.getOps<exec::MicroBatchOp>())
    for (auto [sample, begin, length] :
         llvm::zip_equal(microBatch.getSamples(), microBatch.getBegins(),
                         microBatch.getLengths()))
      ends[sample] = std::max(ends[sample], endOf(begin, length));
  // Samples must be numbered from 0 without gaps; the verifier reports a gap.
  std::vector<int64_t> lengths;
  for (auto [sample, end] : ends)
    lengths.push_back(end);
  return lengths;
}

LogicalResult mlir::dyna::verifyPlan(exec::PlanOp op,
                                     const ::dyna::Model &model, int64_t limit,
                                     const ::dyna::UpdateRules &updates) {
  if (failed(exec::requireComplete(op)))
    return failure();
  if (!op.getGraphAttr())
    return op.emitOpError("names no graph: write `of @graph` behind its name");
  auto graphOp = SymbolTable::lookupNearestSymbolFrom<exec::GraphOp>(
      op, op.getGraphAttr());
  auto graph =
      ::dyna::ExecutableGraph::create(model, exec::strategyOf(graphOp));
  if (!graph.isOk())
    return graphOp.emitOpError() << graph.status().message();
  std::vector<int64_t> limits;
  if (limit >= 0)
    limits.assign(graph->ranks(), limit);
  ::dyna::StepPosition position;
  ::dyna::Status status =
      ::dyna::VerifiedStep::prove(::dyna::SwitchTable::ofOne(*graph),
                                  ::dyna::stepOf(exec::exportPlan(op)),
                                  lengthsOf(op),
                                  /*targets=*/-1, limits, &position, updates)
          .status();
  if (status.isOk())
    return success();
  Operation *place =
      exec::findInstruction(op, position.at.rank, position.at.instruction);
  InFlightDiagnostic error = emitError(place->getLoc()) << status.message();
  error.attachNote(op.getLoc()) << "in the plan " << op.getSymNameAttr();
  return error;
}

namespace {

struct VerifyPlan : mlir::dyna::impl::VerifyPlanBase<VerifyPlan> {
  using VerifyPlanBase::VerifyPlanBase;

  void runOnOperation() override {
    FailureOr<::dyna::Model> model = modelOf(getOperation());
    if (failed(model))
      return signalPassFailure();
    if (getOperation().getOps<exec::PlanOp>().empty())
      warnOfNothing(getOperation(), getArgument(),
                    "exec.plan; --dyna-plan makes one");
    for (auto graph : getOperation().getOps<exec::GraphOp>())
      if (failed(verifyExecutable(graph, *model)))
        return signalPassFailure();
    int64_t most = -1;
    if (!limit.empty()) {
      auto bytes = ::dyna::parseBytes(limit);
      if (!bytes.isOk()) {
        getOperation().emitError("limit " + bytes.status().message());
        return signalPassFailure();
      }
      most = *bytes;
    }
    for (auto plan : getOperation().getOps<exec::PlanOp>())
      if (!exec::findPhase(plan) &&
          failed(verifyPlan(plan, *model, most, updates())))
        signalPassFailure();
    if (failed(verifySteps(*model, most)))
      signalPassFailure();
  }

  ::dyna::UpdateRules updates() const {
    ::dyna::UpdateRules rules;
    rules.needsNorms = !withoutNorms;
    return rules;
  }

  /// Verifies all steps. Without steps, verifies the switches of the
  /// orchestration.
  LogicalResult verifySteps(const ::dyna::Model &model, int64_t most) {
    auto steps = getOperation().getOps<exec::StepOp>();
    exec::OrchestrationOp orchestration = findOrchestration(getOperation());
    if (!orchestration && steps.empty())
      return success();
    if (!orchestration)
      return (*steps.begin())
          .emitOpError("is of several graphs, but the module has no "
                       "exec.orchestration, which says what is home");
    FailureOr<Orchestrated> orchestrated =
        readOrchestration(orchestration, model);
    if (failed(orchestrated))
      return failure();
    LogicalResult result = success();
    for (exec::StepOp step : steps)
      if (failed(verifyStep(step, *orchestrated, most, updates())))
        result = failure();
    return result;
  }
};

} // namespace
