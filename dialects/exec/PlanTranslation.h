//===- PlanTranslation.h - exec and the messages of runtime/plan *- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan goes to exec and back without loss: what breaks a constraint of exec is
// refused on the way in. Only its graph is named by the module that it stands in. A
// graph goes one way; `ExecutableGraph` is made from the strategy that `strategyOf`
// reads off again.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_PLANTRANSLATION_H
#define DYNA_DIALECTS_EXEC_PLANTRANSLATION_H

#include "dialects/exec/Exec.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/plan/graph/ExecutableGraph.h"

namespace mlir::exec {

/// Makes an `exec.plan` without a graph; a plan without a name becomes `@plan`.
/// An error says what of it breaks a constraint of exec.
FailureOr<PlanOp> importPlan(OpBuilder &builder, Location location,
                             const ::dyna::plan::Plan &plan);

/// Fails for a draft, with what is still to be run.
LogicalResult requireComplete(PlanOp op);

/// The plan that says the same, but for what a draft was begun for; the op's
/// constraints must hold.
::dyna::plan::Plan exportPlan(PlanOp op);

/// Says that the plan is of that graph; fails where it was made for another.
LogicalResult setGraph(PlanOp op, GraphOp graph);

/// The instruction that a failure of verifyPlan names, or its rank, or the
/// plan.
Operation *findInstruction(PlanOp op, int rank, int instruction);

/// Makes an `exec.graph`.
GraphOp importGraph(OpBuilder &builder, Location location, StringRef name,
                    const ::dyna::ExecutableGraph &graph);

/// The strategy of a graph, with as many layers as its stages list.
::dyna::Strategy strategyOf(GraphOp op);

} // namespace mlir::exec

#endif // DYNA_DIALECTS_EXEC_PLANTRANSLATION_H
