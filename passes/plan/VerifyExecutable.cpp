//===- VerifyExecutable.cpp - Verifies graphs against the model -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Requirements.h"
#include "dialects/exec/PlanTranslation.h"
#include "passes/plan/Passes.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_VERIFYEXECUTABLE
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

::dyna::StatusOr<::dyna::ExecutableGraph>
mlir::dyna::placeStrategy(const ::dyna::Model &model,
                          const ::dyna::Strategy &strategy) {
  bool isThere =
      strategy.tp == 1 ||
      llvm::any_of(model.manifest().degrees(), [&](const auto &degree) {
        return degree.tp() == strategy.tp && degree.sp() == strategy.sp;
      });
  if (isThere)
    return ::dyna::ExecutableGraph::create(model, strategy);
  std::string degree = "tp=" + std::to_string(strategy.tp);
  if (strategy.sp)
    degree += ",sp=1";
  return ::dyna::Status::invalidArgument(
      "the module has no layers for " + degree +
      ": run --dyna-distribute=\"strategy=" + degree +
      "\" on it, between --dyna-differentiate and --dyna-memory");
}

/// Verifies that stages have every layer of the model once and in order.
static LogicalResult verifyStages(exec::GraphOp graph,
                                  const ::dyna::Model &model) {
  int next = 0;
  for (auto stage : graph.getOps<exec::StageOp>())
    for (auto layer : stage.getLayers().getAsRange<StringAttr>()) {
      if (next == model.layers())
        return stage.emitOpError()
               << "lists layer " << layer << ", but the model has only "
               << model.layers() << " layers";
      if (layer.getValue() != model.layer(next).name())
        return stage.emitOpError()
               << "lists layer " << layer << " where the model has \""
               << model.layer(next).name()
               << "\": stages cover its layers once and in order";
      ++next;
    }
  if (next < model.layers())
    return graph.emitOpError()
           << "has no stage with layer \"" << model.layer(next).name() << "\"";
  return success();
}

/// Verifies `op` against the placement by the graph's strategy.
static LogicalResult verifyParameter(exec::ParameterOp op,
                                     exec::ParameterOp expected) {
  if (op.getHolders() != expected.getHolders())
    return op.emitOpError() << "expects the holders " << expected.getHolders()
                            << ", but got " << op.getHolders();
  if (!op.getLayout().isEquivalentTo(expected.getLayout()))
    return op.emitOpError()
           << "expects the layout that was compiled, " << expected.getLayout()
           << ", but got " << op.getLayout();
  return success();
}

static LogicalResult verifyParameters(exec::GraphOp graph,
                                      const ::dyna::Model &model,
                                      exec::GraphOp placed) {
  llvm::DenseMap<Attribute, exec::ParameterOp> expected;
  for (auto parameter : placed.getOps<exec::ParameterOp>())
    expected[parameter.getParameterAttr()] = parameter;
  for (auto op : graph.getOps<exec::ParameterOp>()) {
    int index = model.findParameter(op.getParameter().str());
    if (index < 0)
      return op.emitOpError() << "expects " << op.getParameterAttr()
                              << " to be a dyna.parameter";
    size_t rank = model.parameter(index).shape_size();
    if (size_t dims = op.getLayout().getLayout().dims.size(); dims != rank)
      return op.emitOpError() << "expects a layout of " << rank
                              << " dimensions, but got " << op.getLayout();
    auto found = expected.find(op.getParameterAttr());
    if (found == expected.end())
      return op.emitOpError("is used by no layer: no rank holds it");
    if (failed(verifyParameter(op, found->second)))
      return failure();
    expected.erase(found);
  }
  // Go in the order of the module, so that a graph always gets the same
  // message.
  for (auto parameter : placed.getOps<exec::ParameterOp>())
    if (expected.contains(parameter.getParameterAttr()))
      return graph.emitOpError()
             << "does not list the parameter " << parameter.getParameterAttr();
  return success();
}

LogicalResult mlir::dyna::verifyExecutable(exec::GraphOp graph,
                                           const ::dyna::Model &model) {
  if (failed(verifyStages(graph, model)))
    return failure();
  auto placed = placeStrategy(model, exec::strategyOf(graph));
  if (!placed.isOk())
    return graph.emitOpError() << placed.status().message();
  OpBuilder builder(graph.getContext());
  OwningOpRef<exec::GraphOp> expected =
      exec::importGraph(builder, graph.getLoc(), graph.getSymName(), *placed);
  return verifyParameters(graph, model, *expected);
}

namespace {

struct VerifyExecutable
    : mlir::dyna::impl::VerifyExecutableBase<VerifyExecutable> {
  void runOnOperation() override {
    FailureOr<::dyna::Model> model = modelOf(getOperation());
    if (failed(model))
      return signalPassFailure();
    if (getOperation().getOps<exec::GraphOp>().empty())
      warnOfNothing(getOperation(), getArgument(),
                    "exec.graph; --dyna-plan makes one");
    for (auto graph : getOperation().getOps<exec::GraphOp>())
      if (failed(verifyExecutable(graph, *model)))
        signalPassFailure();
  }
};

} // namespace
