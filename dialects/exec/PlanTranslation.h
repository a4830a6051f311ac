//===- PlanTranslation.h - Translates plans and graphs to exec and back ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan goes to exec and back without loss; the import refuses a plan that
// violates a constraint of exec. The plan does not contain its graph: the
// module around it names that.
//
// A graph goes one way only. `strategyOf` reads the strategy of an
// `exec.graph`, and `ExecutableGraph` is made again from that strategy.
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
/// An error names the constraint of exec that the plan violates.
FailureOr<PlanOp> importPlan(OpBuilder &builder, Location location,
                             const ::dyna::plan::Plan &plan);

/// Fails for a draft, and says which passes are still to be run.
LogicalResult requireComplete(PlanOp op);

/// Returns the equivalent plan, without the purpose of a draft. The op's
/// constraints must hold.
::dyna::plan::Plan exportPlan(PlanOp op);

/// Sets the graph of a plan; fails if the plan was made for another graph.
LogicalResult setGraph(PlanOp op, GraphOp graph);

/// Returns the instruction that a failure of verifyPlan names. Without one,
/// returns its rank, or the plan.
Operation *findInstruction(PlanOp op, int rank, int instruction);

/// Makes an `exec.graph`.
GraphOp importGraph(OpBuilder &builder, Location location, StringRef name,
                    const ::dyna::ExecutableGraph &graph);

/// Returns the strategy of a graph, with as many layers as its stages list.
::dyna::Strategy strategyOf(GraphOp op);

} // namespace mlir::exec

#endif // DYNA_DIALECTS_EXEC_PLANTRANSLATION_H
