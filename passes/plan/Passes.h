//===- Passes.h - Declares the passes of the plan phase ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_PASSES_H
#define DYNA_PASSES_PLAN_PASSES_H

#include "dialects/exec/Exec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/model/Model.h"
#include "runtime/plan/verify/PlanVerifier.h"

namespace mlir::dyna {

#define GEN_PASS_DECL
#include "passes/plan/Passes.h.inc"

/// Returns the module's manifest, checked; diagnostics say what is missing.
FailureOr<::dyna::Model> modelOf(ModuleOp module);

/// Places the model under `strategy`: what each rank holds. Fails also for a
/// tensor degree that the module was not distributed for.
::dyna::StatusOr<::dyna::ExecutableGraph>
placeStrategy(const ::dyna::Model &model, const ::dyna::Strategy &strategy);

/// Creates `dyna-plan` for samples of `lengths`, with planning words by name.
std::unique_ptr<Pass>
createPlan(const std::vector<std::pair<std::string, std::string>> &words,
           ArrayRef<int64_t> lengths);

/// Checks what `dyna-verify-executable` checks of one graph.
LogicalResult verifyExecutable(exec::GraphOp graph, const ::dyna::Model &model);

/// Returns the tokens of every sample: as the plan says, or from the ends of
/// its segments.
std::vector<int64_t> lengthsOf(exec::PlanOp plan);

/// Checks what `dyna-verify-plan` checks of one plan; its graph must have
/// passed. A negative limit means no limit.
LogicalResult verifyPlan(exec::PlanOp plan, const ::dyna::Model &model,
                         int64_t limit = -1,
                         const ::dyna::UpdateRules &updates = {});

/// Defines `registerPlanPasses`.
#define GEN_PASS_REGISTRATION
#include "passes/plan/Passes.h.inc"

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_PASSES_H
