//===- SwitchTranslation.h - Translates switches to exec and back ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Switch plans and steps of several graphs go to exec and back without loss.
// Parameters are numbers in `runtime/plan` and names in exec; the model maps
// one to the other.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_SWITCHTRANSLATION_H
#define DYNA_DIALECTS_EXEC_SWITCHTRANSLATION_H

#include "dialects/exec/PlanTranslation.h"
#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/plan/program/StepPlan.h"

namespace mlir::exec {

/// Names a switch by the graphs that it belongs to.
struct SwitchName {
  Moved moved = Moved::Values;
  StringRef graph, behind, home; ///< `behind` may be empty
};

/// Makes an `exec.switch_plan`.
SwitchPlanOp importSwitch(OpBuilder &builder, Location location,
                          const SwitchName &name, const ::dyna::Model &model,
                          const std::vector<::dyna::SwitchTensor> &tensors,
                          const ::dyna::SwitchPlan &plan);

/// Returns the tensors of a switch. Parameters of the model get their numbers
/// in it. A tensor whose name the model does not have gets -1, and so do all
/// tensors without a model.
std::vector<::dyna::SwitchTensor>
exportTensors(SwitchPlanOp op, const ::dyna::Model *model = nullptr);
::dyna::SwitchPlan exportSwitch(SwitchPlanOp op);

/// Makes an `exec.step` and the plans of its phases, without graphs. No other
/// plan in the module may have the name of one of these plans; plans without a
/// name are called after the step. An error names the constraint of exec that
/// is violated.
FailureOr<StepOp> importStep(ModuleOp module, Location location, StringRef name,
                             const ::dyna::plan::StepPlan &step);

/// Returns the plans of the phases, in order.
SmallVector<PlanOp> plansOf(StepOp op);
/// Returns the equivalent step; the op's constraints must hold.
::dyna::plan::StepPlan exportStep(StepOp op);
/// Returns the phase that contains a plan; null if the plan stands alone.
PhaseOp findPhase(PlanOp op);

} // namespace mlir::exec

#endif // DYNA_DIALECTS_EXEC_SWITCHTRANSLATION_H
