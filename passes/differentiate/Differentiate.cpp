//===- Differentiate.cpp - The pass dyna-differentiate -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/LayerFunctions.h"
#include "passes/differentiate/Passes.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

class Differentiate
    : public mlir::dyna::impl::DifferentiateBase<Differentiate> {
public:
  using DifferentiateBase::DifferentiateBase;
  void runOnOperation() override;

private:
  LogicalResult parseGradients();
  LogicalResult checkGradients(LayerOp layer);
  LogicalResult differentiateLayer(LayerOp layer);
  /// Per parameter of the layer, whether weight decay applies.
  FailureOr<SmallVector<bool>> findDecays(LayerOp layer);

  DenseMap<StringAttr, SmallVector<CallOp>> callsOfLayer;
  /// In which gradients are added up; null: the accumulator type.
  Type gradientElement;
};

} // namespace

LogicalResult Differentiate::parseGradients() {
  gradientElement = Type();
  if (gradients.empty())
    return success();
  if (gradients == "f32")
    gradientElement = Float32Type::get(&getContext());
  else if (gradients == "bf16")
    gradientElement = BFloat16Type::get(&getContext());
  else
    return getOperation().emitError(
               "expects gradients in f32 or bf16, but got '")
           << gradients << "'";
  return success();
}

/// Gradients are as wide as the sums of the compute type, or as narrow as it.
LogicalResult Differentiate::checkGradients(LayerOp layer) {
  if (!gradientElement)
    return success();
  for (BlockArgument parameter : layer.getParameterArguments()) {
    Type element = getElementTypeOrSelf(parameter.getType());
    if (gradientElement == getAccumulatorType(element) ||
        (gradientElement.isBF16() && element.isBF16()))
      continue;
    InFlightDiagnostic diagnostic = layer.emitOpError("computes in ");
    diagnostic << element << ", whose gradients are kept in "
               << getAccumulatorType(element) << ", but gradients in "
               << gradientElement << " are asked for";
    if (gradientElement.isBF16())
      diagnostic << "; use the compute type bf16 with them";
    return diagnostic;
  }
  return success();
}

FailureOr<SmallVector<bool>> Differentiate::findDecays(LayerOp layer) {
  SmallVector<bool> decays(layer.getNumParameters(), false);
  ArrayRef<CallOp> calls = callsOfLayer[layer.getSymNameAttr()];
  for (CallOp call : calls) {
    auto names = call.getParameters().getAsRange<FlatSymbolRefAttr>();
    for (auto [i, name] : llvm::enumerate(names)) {
      auto parameter =
          SymbolTable::lookupNearestSymbolFrom<ParameterOp>(call, name);
      if (!parameter || i >= decays.size())
        return call.emitOpError("expects a parameter of the layer, but got ")
               << name;
      if (call == calls.front())
        decays[i] = parameter.getDecay();
      if (decays[i] == parameter.getDecay())
        continue;
      InFlightDiagnostic diagnostic = call.emitOpError("gives parameter ");
      diagnostic << i << " as " << name << (decays[i] ? " without" : " with")
                 << " weight decay, but the first call of the layer gives it "
                 << (decays[i] ? "with" : "without")
                 << " decay; calls of one layer share one update function";
      diagnostic.attachNote(calls.front()->getLoc()) << "see the first call";
      return diagnostic;
    }
  }
  return decays;
}

LogicalResult Differentiate::differentiateLayer(LayerOp layer) {
  if (failed(checkGradients(layer)))
    return failure();
  FailureOr<SmallVector<bool>> decays = findDecays(layer);
  FailureOr<JointLayer> joint = JointLayer::create(layer, gradientElement);
  if (failed(decays) || failed(joint))
    return failure();
  SavedValues saved = chooseSavedValues(*joint);

  OpBuilder builder(layer.getContext());
  builder.setInsertionPointAfter(layer);
  if (failed(buildEvaluateFunction(builder, layer)) ||
      failed(buildTrainingFunctions(builder, layer, *joint, saved)) ||
      failed(buildOptimizerFunctions(builder, layer, *decays, gradientElement)))
    return failure();

  ++numLayers;
  numProducts += saved.products.size();
  numElementwise += saved.elementwise.size();
  numRepeated += saved.repeated.size();
  return success();
}

void Differentiate::runOnOperation() {
  ModuleOp module = getOperation();
  callsOfLayer.clear();
  if (failed(parseGradients()))
    return signalPassFailure();
  for (FunctionOp function : module.getOps<FunctionOp>()) {
    function.emitOpError("stands in a module that is to be differentiated; "
                         "differentiate a module only once");
    return signalPassFailure();
  }
  for (ModelOp model : module.getOps<ModelOp>())
    for (CallOp call : model.getBody().getOps<CallOp>())
      callsOfLayer[call.getCalleeAttr().getAttr()].push_back(call);

  // All layers are tried, so that one run reports the faults of all.
  bool failed = false;
  for (LayerOp layer : llvm::to_vector(module.getOps<LayerOp>()))
    failed |= mlir::failed(differentiateLayer(layer));
  if (failed || mlir::failed(verifyDifferentiated(module)))
    signalPassFailure();
}
