//===- MaterializeCollectives.cpp - Inserts collectives -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/distribute/LocalTypes.h"
#include "passes/distribute/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_MATERIALIZECOLLECTIVES
#include "passes/distribute/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::Layout;
using ::dyna::ReshardKind;
using ::dyna::ReshardStep;

namespace {

/// Rewrites one layer or layer function in place, op after op.
class Localizer {
public:
  Localizer(FunctionOpInterface function, dist::MeshAttr mesh,
            GroupTable &groups)
      : function(function), mesh(mesh), groups(groups) {}
  LogicalResult run();

private:
  void localizeBorders();
  LogicalResult lowerReshard(dist::ReshardOp reshard);
  Value createStep(OpBuilder &builder, Location loc, Value value,
                   const ReshardStep &step, RankedTensorType whole);
  void localizeOp(Operation *op);
  void setShard(TableOpInterface op);
  void setTokens(Operation *op);
  void setFeatures(Operation *op);
  void foldCollectives();

  FunctionOpInterface function;
  dist::MeshAttr mesh;
  GroupTable &groups;
  /// Layouts and whole types of values that have local types.
  llvm::DenseMap<Value, Layout> layouts;
  llvm::DenseMap<Value, RankedTensorType> wholeTypes;
};

class MaterializeCollectives
    : public mlir::dyna::impl::MaterializeCollectivesBase<
          MaterializeCollectives> {
public:
  void runOnOperation() override;
};

} // namespace

static Type localized(Type type, Attribute layout) {
  auto attribute = dyn_cast<dist::LayoutAttr>(layout);
  if (!attribute)
    return type;
  return localType(cast<RankedTensorType>(type), attribute.getLayout());
}

void Localizer::localizeBorders() {
  auto arguments = dist::kArguments.of(function);
  auto results = dist::kResults.of(function);
  SmallVector<Type> inputs, outputs;
  for (BlockArgument argument : function.getFunctionBody().getArguments()) {
    Attribute layout = arguments[argument.getArgNumber()];
    if (auto attribute = dyn_cast<dist::LayoutAttr>(layout)) {
      layouts[argument] = attribute.getLayout();
      wholeTypes[argument] = cast<RankedTensorType>(argument.getType());
    }
    argument.setType(localized(argument.getType(), layout));
    inputs.push_back(argument.getType());
  }
  for (auto [type, layout] :
       llvm::zip_equal(function.getResultTypes(), results))
    outputs.push_back(localized(type, layout));
  function.setFunctionTypeAttr(
      TypeAttr::get(FunctionType::get(function.getContext(), inputs, outputs)));
}

/// `whole` is the logical type.
Value Localizer::createStep(OpBuilder &builder, Location loc, Value value,
                            const ReshardStep &step, RankedTensorType whole) {
  Type type = localType(whole, step.after);
  dist::GroupAttr group = groups.getGroup(mesh, step.group);
  switch (step.kind) {
  case ReshardKind::AllReduce:
    return dist::AllReduceOp::create(builder, loc, type, value, group);
  case ReshardKind::AllGather:
    return dist::AllGatherOp::create(builder, loc, type, value, step.dim,
                                     group);
  case ReshardKind::ReduceScatter:
    return dist::ReduceScatterOp::create(builder, loc, type, value, step.dim,
                                         group);
  case ReshardKind::Slice:
    return dist::SliceOp::create(builder, loc, type, value, step.dim, group);
  case ReshardKind::AllToAll:
    return dist::AllToAllOp::create(builder, loc, type, value, step.dim,
                                    step.toDim, group);
  }
  llvm_unreachable("all kinds are handled");
}

LogicalResult Localizer::lowerReshard(dist::ReshardOp reshard) {
  RankedTensorType whole = reshard.getResult().getType();
  auto plan = ::dyna::planReshard(mesh.getMesh(), reshard.getFrom().getLayout(),
                                  reshard.getTo().getLayout(),
                                  ::dyna::Shape(whole.getShape()));
  if (!plan.isOk())
    return reshard.emitOpError() << plan.status().message();
  OpBuilder builder(reshard);
  Value value = reshard.getX();
  for (const ReshardStep &step : *plan)
    value = createStep(builder, reshard.getLoc(), value, step, whole);
  layouts[value] = reshard.getTo().getLayout();
  wholeTypes[value] = whole;
  reshard.getResult().replaceAllUsesWith(value);
  reshard.erase();
  return success();
}

/// Marks a table of which this rank has a part.
void Localizer::setShard(TableOpInterface op) {
  const Layout &layout = layouts[op.getTable()];
  if (layout.dims[0].empty())
    return;
  dist::GroupAttr group = groups.getGroup(mesh, layout.dims[0]);
  op.setShardAttr(ShardAttr::get(op->getContext(), group.getIndex(),
                                 wholeTypes[op.getTable()].getDimSize(0)));
}

/// Sets the part of the tokens that an op has, if it counts tokens from the
/// first of the micro-batch. They are the tokens of its activation, or else of
/// its result.
void Localizer::setTokens(Operation *op) {
  Value tokens = op->getResult(0);
  for (Value operand : llvm::reverse(op->getOperands()))
    if (isActivation(operand.getType()))
      tokens = operand;
  const Layout &layout = layouts[tokens];
  if (!layout.dims[0].empty())
    dist::kTokens.set(op, groups.getGroup(mesh, layout.dims[0]));
}

/// Records the first feature of the op's result that this rank has.
void Localizer::setFeatures(Operation *op) {
  const Layout &layout = layouts[op->getResult(0)];
  if (!layout.dims[1].empty())
    dist::kFeatures.set(op, groups.getGroup(mesh, layout.dims[1]));
}

template <typename Op> static void setHeads(Op op, int64_t headDim) {
  op.setHeads(op.getQuery().getType().getDimSize(1) / headDim);
  op.setKvHeads(op.getKey().getType().getDimSize(1) / headDim);
}

void Localizer::localizeOp(Operation *op) {
  auto attributes = dist::kLayouts.of(op);
  for (auto [result, attribute] :
       llvm::zip_equal(op->getResults(), attributes)) {
    layouts[result] = cast<dist::LayoutAttr>(attribute).getLayout();
    wholeTypes[result] = cast<RankedTensorType>(result.getType());
    result.setType(localType(wholeTypes[result], layouts[result]));
  }
  dist::kLayouts.removeFrom(op);
  llvm::TypeSwitch<Operation *>(op)
      .Case<AttentionOp, AttentionGradOp>([&](auto attention) {
        int64_t width = wholeTypes[attention->getResult(0)].getDimSize(1);
        setHeads(attention, width / int64_t(attention.getHeads()));
      })
      .Case([&](TableOpInterface table) { setShard(table); });
  if (op->hasTrait<mlir::dyna::OpTrait::CountsTokens>())
    setTokens(op);
  if (op->hasTrait<mlir::dyna::OpTrait::CountsFeatures>())
    setFeatures(op);
}

/// Collectives that undo each other, and those of groups of one.
void Localizer::foldCollectives() {
  Block &block = function.getFunctionBody().front();
  OpBuilder builder(function.getContext());
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isa_and_present<dist::DistDialect>(op.getDialect()))
      continue;
    SmallVector<Value> folded;
    builder.setInsertionPoint(&op);
    if (succeeded(builder.tryFold(&op, folded)) && !folded.empty()) {
      op.replaceAllUsesWith(folded);
      op.erase();
    }
  }
  // Removes unused ops, last first. Ops that the layer never used go too,
  // because an exchange would keep them alive.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

LogicalResult Localizer::run() {
  localizeBorders();
  Block &block = function.getFunctionBody().front();
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (auto reshard = dyn_cast<dist::ReshardOp>(op)) {
      if (failed(lowerReshard(reshard)))
        return failure();
      continue;
    }
    if (!dist::kLayouts.isOn(&op))
      return op.emitOpError("has no layouts; run dyna-deduce-layouts first");
    localizeOp(&op);
  }
  foldCollectives();
  return success();
}

/// Adds the groups over whose ranks gradients are partial to the module: the
/// plan reduces there once per step.
static void addGradientGroups(LayerOp layer, dist::MeshAttr mesh,
                              GroupTable &groups) {
  auto gradients = dist::kGradients.of(layer);
  for (auto attribute : gradients.getAsRange<dist::LayoutAttr>()) {
    Layout layout = attribute.getLayout();
    if (!layout.partial.empty())
      groups.getGroup(mesh, layout.partial);
  }
}

/// Returns true if all arguments and results have layouts.
static bool hasBorders(FunctionOpInterface function) {
  auto arguments = dist::kArguments.of(function);
  auto results = dist::kResults.of(function);
  return arguments && results &&
         arguments.size() == function.getNumArguments() &&
         results.size() == function.getNumResults();
}

void MaterializeCollectives::runOnOperation() {
  ModuleOp module = getOperation();
  GroupTable groups(module);
  for (LayerOp layer : module.getOps<LayerOp>()) {
    auto mesh = dist::kMesh.of(layer);
    if (!mesh)
      continue;
    SmallVector<FunctionOpInterface> functions{layer};
    for (FunctionOp function : module.getOps<FunctionOp>())
      if (function.getLayer() == layer.getSymName())
        functions.push_back(function);
    for (FunctionOpInterface function : functions) {
      if (!hasBorders(function)) {
        function->emitOpError("has no layouts; run dyna-deduce-layouts first");
        return signalPassFailure();
      }
      if (failed(Localizer(function, mesh, groups).run()))
        return signalPassFailure();
      function->walk([&](Operation *op) {
        numCollectives += isa_and_present<dist::DistDialect>(op->getDialect());
      });
    }
    if (!dist::kGradients.isOn(layer)) {
      layer.emitOpError("has no layouts; run dyna-deduce-layouts first");
      return signalPassFailure();
    }
    addGradientGroups(layer, mesh, groups);
  }
}
