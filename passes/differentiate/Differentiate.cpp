//===- Differentiate.cpp - Implements dyna-differentiate --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/DeriveLayer.h"
#include "passes/differentiate/JointLayer.h"
#include "passes/differentiate/Passes.h"
#include "passes/differentiate/SpecializeLayers.h"

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

  CallsOfLayers callsOfLayer;
  /// Type of sums of gradients; null: the accumulator type.
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

LogicalResult Differentiate::differentiateLayer(LayerOp layer) {
  if (failed(checkGradients(layer)))
    return failure();
  OpBuilder builder(layer.getContext());
  builder.setInsertionPointAfter(layer);
  FailureOr<SavedCounts> saved = deriveLayer(
      builder, layer, callsOfLayer[getBaseName(layer)], gradientElement);
  if (failed(saved))
    return failure();
  ++numLayers;
  numProducts += saved->products;
  numElementwise += saved->elementwise;
  numRepeated += saved->repeated;
  return success();
}

/// Checks that the model trains anything; a model without trained parameters is
/// a mistake.
static LogicalResult checkAnyTrained(ModuleOp module) {
  auto isFrozen = [](ParameterOp parameter) { return parameter.getFrozen(); };
  auto parameters = module.getOps<ParameterOp>();
  if (parameters.empty() || !llvm::all_of(parameters, isFrozen))
    return success();
  return module.emitError("has only frozen parameters, so training would "
                          "change nothing: leave 'frozen' out of at least one "
                          "dyna.parameter");
}

void Differentiate::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(checkAnyTrained(module)))
    return signalPassFailure();
  if (failed(parseGradients()))
    return signalPassFailure();
  for (FunctionOp function : module.getOps<FunctionOp>()) {
    function.emitOpError("stands in a module that is to be differentiated; "
                         "differentiate a module only once");
    return signalPassFailure();
  }
  if (failed(specializeLayers(module, freezable)))
    return signalPassFailure();
  callsOfLayer = callsOfLayers(module);

  // Try all layers, so that one run reports the faults of all.
  bool failed = false;
  for (LayerOp layer : llvm::to_vector(module.getOps<LayerOp>()))
    failed |= mlir::failed(differentiateLayer(layer));
  if (failed || mlir::failed(verifyDifferentiated(module)))
    signalPassFailure();
}
