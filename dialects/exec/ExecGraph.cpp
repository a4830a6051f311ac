//===- ExecGraph.cpp - Verifies executable graphs -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace mlir::exec;

//===----------------------------------------------------------------------===//
// exec.graph
//===----------------------------------------------------------------------===//

/// Verifies GRAPH2.
static LogicalResult verifyMesh(GraphOp op, const ::dyna::Strategy &strategy) {
  ::dyna::StatusOr<::dyna::Mesh> mesh = ::dyna::meshOf(strategy);
  if (!mesh.isOk())
    return op.emitOpError() << mesh.status().message();
  if (op.getMesh().getMesh() != *mesh)
    return op.emitOpError() << "expects the mesh " << mesh->describe()
                            << " of its strategy, but got " << op.getMesh();
  return success();
}

/// Verifies GRAPH3.
static LogicalResult verifyList(GraphOp op, const ::dyna::Strategy &strategy) {
  int stages = 0;
  bool sawParameter = false;
  for (Operation &item : *op.getBody().begin()) {
    if (isa<ParameterOp>(item)) {
      sawParameter = true;
      continue;
    }
    if (!isa<StageOp>(item))
      return item.emitOpError(
          "is no part of an exec.graph, which lists stages and parameters");
    if (sawParameter)
      return item.emitOpError("expects stages to stand before parameters");
    ++stages;
  }
  if (stages != strategy.pp)
    return op.emitOpError()
           << "expects " << strategy.pp << " stages (pp), but lists " << stages;
  return success();
}

/// Verifies GRAPH4.
static LogicalResult verifyOnce(GraphOp op) {
  llvm::DenseMap<Attribute, Operation *> layers, parameters;
  auto insert = [](auto &seen, Attribute name, Operation *item) {
    auto [entry, isNew] = seen.insert({name, item});
    if (isNew)
      return success();
    InFlightDiagnostic error = item->emitOpError()
                               << "lists " << name << " a second time";
    error.attachNote(entry->second->getLoc()) << "the first is here";
    return LogicalResult(error);
  };
  for (auto stage : op.getOps<StageOp>())
    for (Attribute layer : stage.getLayers())
      if (failed(insert(layers, layer, stage)))
        return failure();
  for (auto parameter : op.getOps<ParameterOp>())
    if (failed(insert(parameters, parameter.getParameterAttr(), parameter)))
      return failure();
  return success();
}

LogicalResult GraphOp::verifyRegions() {
  // GRAPH1
  auto strategy = ::dyna::parseStrategy(getStrategy().str());
  if (!strategy.isOk())
    return emitOpError() << strategy.status().message();
  if (!strategy->name.empty() || !strategy->layers.empty())
    return emitOpError() << "expects a strategy without name and layers, which "
                            "the symbol and the stages say, but got '"
                         << getStrategy() << "'";
  // GRAPH2 to GRAPH4
  if (failed(verifyMesh(*this, *strategy)) ||
      failed(verifyList(*this, *strategy)))
    return failure();
  return verifyOnce(*this);
}

//===----------------------------------------------------------------------===//
// exec.stage, exec.parameter
//===----------------------------------------------------------------------===//

LogicalResult StageOp::verify() {
  // STAGE1
  if (getLayers().empty())
    return emitOpError("expects at least one layer");
  return success();
}

LogicalResult ParameterOp::verify() {
  // PARAMETER1
  dist::MeshAttr mesh = cast<GraphOp>((*this)->getParentOp()).getMesh();
  if (getLayout().getMesh() != mesh)
    return emitOpError() << "expects a layout on the mesh of the graph, "
                         << mesh << ", but got " << getLayout();
  if (!getLayout().getLayout().partial.empty())
    return emitOpError() << "expects a layout that is not partial, but got "
                         << getLayout();
  // PARAMETER2
  int64_t ranks = mesh.getMesh().size();
  llvm::SmallDenseSet<int64_t> seen;
  auto lists = getHolders().getAsRange<DenseI64ArrayAttr>();
  for (DenseI64ArrayAttr list : lists)
    for (int64_t rank : list.asArrayRef()) {
      if (rank < 0 || rank >= ranks)
        return emitOpError() << "expects holders to be ranks 0 to " << ranks - 1
                             << ", but got " << rank;
      if (!seen.insert(rank).second)
        return emitOpError() << "lists holder " << rank << " twice";
    }
  if (seen.empty() ||
      llvm::any_of(lists, [](DenseI64ArrayAttr list) { return list.empty(); }))
    return emitOpError("expects every list of holders to name a rank");
  return success();
}
