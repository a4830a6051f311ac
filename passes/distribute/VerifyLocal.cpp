//===- VerifyLocal.cpp - The pass dyna-verify-local -----------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/LayoutRules.h"
#include "passes/distribute/LocalTypes.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/Splits.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_VERIFYLOCAL
#include "passes/distribute/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::AxisParts;
using ::dyna::Layout;
using ::dyna::ReshardKind;
using ::dyna::ReshardStep;

namespace {

/// Follows layouts through one local function.
class LocalVerifier {
public:
  LocalVerifier(FunctionOpInterface function, dist::MeshAttr meshAttr,
                GroupTable &groups)
      : function(function), meshAttr(meshAttr), mesh(meshAttr.getMesh()),
        groups(groups) {}
  LogicalResult run();

private:
  LogicalResult visit(Operation *op);
  LogicalResult visitCollective(Operation *op, ReshardStep step,
                                dist::GroupAttr group);
  LogicalResult visitCompute(Operation *op);
  LogicalResult visitBody(Operation *op);
  LogicalResult checkResults();

  FunctionOpInterface function;
  dist::MeshAttr meshAttr;
  ::dyna::Mesh mesh;
  GroupTable &groups;
  llvm::DenseMap<Value, Layout> layouts;
};

class VerifyLocal : public mlir::dyna::impl::VerifyLocalBase<VerifyLocal> {
public:
  using Base = mlir::dyna::impl::VerifyLocalBase<VerifyLocal>;
  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerLayoutRules(registry);
  }
  void runOnOperation() override {
    if (failed(verifyLocal(getOperation())))
      signalPassFailure();
  }
};

} // namespace

LogicalResult LocalVerifier::visitCollective(Operation *op, ReshardStep step,
                                             dist::GroupAttr group) {
  if (group.getMesh() != meshAttr)
    return op->emitOpError() << "is over a group of " << group.getMesh()
                             << ", but the layer is on " << meshAttr;
  if (!groups.contains(group))
    return op->emitOpError() << "is over a group that is not in the module's '"
                             << dist::kGroupsName << "'";
  step.group = group.getParts();
  step.before = layouts[op->getOperand(0)];
  auto whole = globalType(cast<RankedTensorType>(op->getOperand(0).getType()),
                          step.before);
  auto after = ::dyna::layoutAfter(mesh, step, ::dyna::Shape(whole.getShape()));
  if (!after.isOk())
    return op->emitOpError() << after.status().message();
  layouts[op->getResult(0)] = *after;
  return success();
}

LogicalResult LocalVerifier::visitCompute(Operation *op) {
  FailureOr<dist::FactorRule> rule = getLayoutRule(op);
  if (failed(rule))
    return failure();
  std::vector<Layout> operands;
  for (Value operand : op->getOperands())
    operands.push_back(layouts.lookup(operand));
  AxisParts tokens;
  if (auto group = op->getAttrOfType<dist::GroupAttr>(dist::kTokensName))
    tokens = group.getParts();
  auto results = inferResults(mesh, *rule, operands, tokens);
  if (!results.isOk())
    return op->emitOpError() << results.status().message();
  for (auto [result, layout] : llvm::zip_equal(op->getResults(), *results))
    layouts[result] = layout;
  return success();
}

/// Fused collectives; after the memory phase row-wise ops stand in sweeps too.
LogicalResult LocalVerifier::visitBody(Operation *op) {
  Block &body = op->getRegion(0).front();
  for (Operation &inner : body.without_terminator())
    if (failed(visit(&inner)))
      return failure();
  for (auto [result, value] :
       llvm::zip_equal(op->getResults(), body.getTerminator()->getOperands()))
    layouts[result] = Layout(layouts[value]);
  return success();
}

LogicalResult LocalVerifier::visit(Operation *op) {
  ReshardStep step;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](dist::ReshardOp) {
        return op->emitOpError("is left over; run "
                               "dyna-materialize-collectives");
      })
      .Case([&](dist::AllReduceOp reduce) {
        step.kind = ReshardKind::AllReduce;
        return visitCollective(op, step, reduce.getGroup());
      })
      .Case([&](dist::AllGatherOp gather) {
        step.kind = ReshardKind::AllGather;
        step.dim = gather.getDim();
        return visitCollective(op, step, gather.getGroup());
      })
      .Case([&](dist::ReduceScatterOp scatter) {
        step.kind = ReshardKind::ReduceScatter;
        step.dim = scatter.getDim();
        return visitCollective(op, step, scatter.getGroup());
      })
      .Case([&](dist::SliceOp slice) {
        step.kind = ReshardKind::Slice;
        step.dim = slice.getDim();
        return visitCollective(op, step, slice.getGroup());
      })
      .Case([&](dist::AllToAllOp exchange) {
        step.kind = ReshardKind::AllToAll;
        step.dim = exchange.getDim();
        step.toDim = exchange.getTo();
        return visitCollective(op, step, exchange.getGroup());
      })
      .Case<RowsOp, dist::ExchangeOp>(
          [&](Operation *op) { return visitBody(op); })
      .Default([&](Operation *) { return visitCompute(op); });
}

LogicalResult LocalVerifier::checkResults() {
  Operation *terminator = function.getFunctionBody().front().getTerminator();
  auto promised = function->getAttrOfType<ArrayAttr>(dist::kResultsName);
  for (auto [index, attribute, value] :
       llvm::enumerate(promised, terminator->getOperands())) {
    auto layout = dyn_cast<dist::LayoutAttr>(attribute);
    if (!layout)
      continue;
    if (::dyna::canonicalLayout(layout.getLayout()) !=
        ::dyna::canonicalLayout(layouts[value]))
      return terminator->emitOpError()
             << "returns value " << index << " laid out as "
             << describeLayout(mesh, layouts[value]) << ", but "
             << function.getName() << " promises " << layout.getText();
  }
  return success();
}

LogicalResult LocalVerifier::run() {
  auto arguments = function->getAttrOfType<ArrayAttr>(dist::kArgumentsName);
  if (!arguments || !function->hasAttr(dist::kResultsName))
    return function->emitOpError()
           << "belongs to a layer of a tensor degree and needs '"
           << dist::kArgumentsName << "' and '" << dist::kResultsName << "'";
  for (auto [argument, attribute] :
       llvm::zip_equal(function.getFunctionBody().getArguments(), arguments))
    if (auto layout = dyn_cast<dist::LayoutAttr>(attribute))
      layouts[argument] = layout.getLayout();
  // Optimizer functions exchange nothing; the plan says which of its elements
  // a rank steps (LayerDeducer.cpp).
  if (auto layerFunction = dyn_cast<FunctionOp>(function.getOperation()))
    if (layerFunction.getRole() == Role::Update ||
        layerFunction.getRole() == Role::GradNorm ||
        layerFunction.getRole() == Role::Cast)
      return success();
  for (Operation &op : function.getFunctionBody().front().without_terminator())
    if (failed(visit(&op)))
      return failure();
  return checkResults();
}

/// Parameters of a local layer have the local types of the logical ones.
static LogicalResult checkParameters(LayerOp layer, LayerOp logical) {
  auto layouts = layer->getAttrOfType<ArrayAttr>(dist::kArgumentsName);
  for (BlockArgument parameter : logical.getParameterArguments()) {
    unsigned index = parameter.getArgNumber();
    auto layout = dyn_cast<dist::LayoutAttr>(layouts[index]);
    Type wanted = parameter.getType();
    if (layout)
      wanted = localType(cast<RankedTensorType>(wanted), layout.getLayout());
    Type type = layer.getArgumentTypes()[index];
    if (type != wanted)
      return layer.emitOpError() << "has parameter " << index << " of type "
                                 << type << ", but " << layouts[index] << " of "
                                 << parameter.getType() << " is " << wanted;
  }
  return success();
}

/// An argument of a function that is a parameter, or the gradient of one, has
/// the layer's type.
static LogicalResult checkFunctionTypes(FunctionOp function, LayerOp layer) {
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    PlaceAttr place = function.getArgPlace(index);
    bool isParameter = place.getMemory() == Memory::Parameter ||
                       place.getMemory() == Memory::Gradient;
    if (!isParameter || size_t(place.getIndex()) >= layer.getNumParameters())
      continue;
    auto wanted =
        cast<RankedTensorType>(layer.getArgumentTypes()[place.getIndex()]);
    if (cast<RankedTensorType>(type).getShape() != wanted.getShape())
      return function.emitOpError() << "takes argument " << index << " of type "
                                    << type << ", but the layer's parameter "
                                    << place.getIndex() << " is " << wanted;
  }
  return success();
}

LogicalResult mlir::dyna::verifyLocal(ModuleOp module) {
  GroupTable groups(module);
  for (LayerOp layer : module.getOps<LayerOp>()) {
    auto mesh = layer->getAttrOfType<dist::MeshAttr>(dist::kMeshName);
    if (!mesh)
      continue;
    auto name = layer->getAttrOfType<FlatSymbolRefAttr>(dist::kLogicalName);
    auto logical =
        name ? module.lookupSymbol<LayerOp>(name.getAttr()) : LayerOp();
    if (!logical || logical.getNumParameters() != layer.getNumParameters())
      return layer.emitOpError()
             << "expects '" << dist::kLogicalName
             << "' to name the layer that it is a part of, but got " << name;
    if (failed(LocalVerifier(layer, mesh, groups).run()) ||
        failed(checkParameters(layer, logical)))
      return failure();
    for (FunctionOp function : module.getOps<FunctionOp>())
      if (function.getLayer() == layer.getSymName() &&
          (failed(checkFunctionTypes(function, layer)) ||
           failed(LocalVerifier(function, mesh, groups).run())))
        return failure();
  }
  return success();
}
