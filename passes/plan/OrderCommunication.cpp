//===- OrderCommunication.cpp - Adds exchanges to plans -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/StepPhases.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_ORDERCOMMUNICATION
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

struct OrderCommunication
    : mlir::dyna::impl::OrderCommunicationBase<OrderCommunication> {
  using OrderCommunicationBase::OrderCommunicationBase;
  OrderCommunication() = default;
  OrderCommunication(const OrderCommunication &other)
      : OrderCommunicationBase(other) {}

  void runOnOperation() override {
    if (failed(orderAll()))
      signalPassFailure();
  }

private:
  LogicalResult orderAll() {
    ModuleOp module = getOperation();
    FailureOr<PlanInputs> inputs = openInputs(module, words);
    if (failed(inputs))
      return failure();
    auto plans = llvm::to_vector(module.getOps<exec::PlanOp>());
    if (plans.empty())
      return module.emitError(
          "has no exec.plan; run --dyna-build-micro-batches "
          "and --dyna-schedule first");
    bool hasDrafts =
        llvm::any_of(plans, [](exec::PlanOp plan) { return plan.isDraft(); });
    for (exec::PlanOp plan : plans)
      if (plan.isDraft() == hasDrafts && failed(order(plan, *inputs)))
        return failure();
    return joinAll(*inputs->model);
  }

  /// Adds switches to the programs of phases, and verifies them together.
  LogicalResult joinAll(const ::dyna::Model &model) {
    auto steps = llvm::to_vector(getOperation().getOps<exec::StepOp>());
    if (steps.empty())
      return success();
    // A step has phases, and phases need an orchestration.
    FailureOr<Orchestrated> orchestrated =
        readOrchestration(findOrchestration(getOperation()), model);
    if (failed(orchestrated))
      return failure();
    for (exec::StepOp step : steps)
      if (failed(joinStep(step, *orchestrated)) ||
          (!naive && failed(verifyStep(step, *orchestrated))))
        return failure();
    return success();
  }

  LogicalResult order(exec::PlanOp op, const PlanInputs &inputs) {
    const std::string &pipeline = inputs.words.pipeline;
    // The phase of home may have no samples, and then has nothing to schedule.
    if (!op.hasPrograms() && !op.getOps<exec::MicroBatchOp>().empty())
      return op.emitOpError(
          "has no programs yet; run --dyna-schedule on it first");
    FailureOr<PlanDraft> draft = readDraft(op, *inputs.model);
    if (failed(draft))
      return failure();
    draft->options.naiveMessages = naive;
    const bool isPhase = draft->isPhase;
    if (!op.isDraft() && !pipeline.empty()) {
      auto chosen = ::dyna::findSchedule(pipeline);
      if (!chosen.isOk())
        return refuse(op, chosen.status());
      draft->options.schedule = *chosen;
    } else if (!pipeline.empty()) {
      return op.emitOpError("is a draft, which says its schedule itself: "
                            "'pipeline' is for complete plans");
    }
    if (auto status = orderPlan(*draft, inputs.costs); !status.isOk())
      return refuse(op, status);
    FailureOr<exec::PlanOp> made =
        replacePlan(op, std::move(*draft), /*isComplete=*/true);
    if (failed(made) || naive || isPhase)
      return made;
    return verifyPlan(*made, *inputs.model);
  }

  WordOptions words{
      *this,
      {::dyna::Word::Costs, ::dyna::Word::Cluster, ::dyna::Word::Pipeline}};
};

} // namespace
