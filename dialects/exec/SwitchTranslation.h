//===- SwitchTranslation.h - exec and the switches of runtime/plan -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Switch plans and steps of several graphs go to exec and back without loss.
// Parameters are numbers in `runtime/plan` and names in exec: whoever knows the
// model gives it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_SWITCHTRANSLATION_H
#define DYNA_DIALECTS_EXEC_SWITCHTRANSLATION_H

#include "dialects/exec/PlanTranslation.h"
#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/plan/program/StepPlan.h"

namespace mlir::exec {

/// Which switch it is, by the names of graphs.
struct SwitchName {
  Moved moved = Moved::Values;
  StringRef graph, behind, home; ///< `behind` may be empty
};

/// Makes an `exec.switch_plan`.
SwitchPlanOp importSwitch(OpBuilder &builder, Location location,
                          const SwitchName &name, const ::dyna::Model &model,
                          const std::vector<::dyna::SwitchTensor> &tensors,
                          const ::dyna::SwitchPlan &plan);

/// Its tensors; of a model's parameters have their numbers in it, -1 where there
/// is none of that name. Without a model all have -1.
std::vector<::dyna::SwitchTensor>
exportTensors(SwitchPlanOp op, const ::dyna::Model *model = nullptr);
::dyna::SwitchPlan exportSwitch(SwitchPlanOp op);

/// Makes an `exec.step` and the plans of its phases, without graphs. A plan's
/// name must be that of no other in the module; plans without one are called
/// after the step. An error says what breaks a constraint of exec.
FailureOr<StepOp> importStep(ModuleOp module, Location location, StringRef name,
                             const ::dyna::plan::StepPlan &step);

/// The plans of the phases, in order.
SmallVector<PlanOp> plansOf(StepOp op);
/// The step that says the same; constraints must hold.
::dyna::plan::StepPlan exportStep(StepOp op);
/// The phase that a plan is of; null if it stands alone.
PhaseOp findPhase(PlanOp op);

} // namespace mlir::exec

#endif // DYNA_DIALECTS_EXEC_SWITCHTRANSLATION_H
