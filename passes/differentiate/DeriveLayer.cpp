//===- DeriveLayer.cpp - Derives all functions of one layer ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/DeriveLayer.h"

#include "passes/differentiate/LayerFunctions.h"

using namespace mlir;
using namespace mlir::dyna;

/// Reports that a call gives a parameter that differs from that of the first call.
static LogicalResult refuseDifference(CallOp call, CallOp first, size_t slot,
                                      FlatSymbolRefAttr name, StringRef what,
                                      StringRef firstWhat, StringRef shared) {
  InFlightDiagnostic diagnostic = call.emitOpError("gives parameter ");
  diagnostic << slot << " as " << name << " " << what
             << ", but the first call of the layer gives it " << firstWhat
             << "; " << shared;
  diagnostic.attachNote(first->getLoc()) << "see the first call";
  return diagnostic;
}

/// Fails unless all calls give frozen parameters in the same places.
static LogicalResult checkFrozen(LayerOp layer, ArrayRef<bool> frozen,
                                 ArrayRef<CallOp> calls) {
  if (layer.getFrozen()) // whatever its parameters are
    return success();
  for (CallOp call : calls)
    for (auto [i, name] : llvm::enumerate(
             call.getParameters().getAsRange<FlatSymbolRefAttr>())) {
      bool isFrozen = parameterOf(call, name).getFrozen();
      if (isFrozen != frozen[i])
        return refuseDifference(
            call, calls.front(), i, name, isFrozen ? "frozen" : "trained",
            frozen[i] ? "frozen" : "trained",
            "calls of one layer share its backward function; write a second "
            "layer of the same ops for one of them");
    }
  return success();
}

/// Returns true for each parameter of the layer to which weight decay applies.
static FailureOr<SmallVector<bool>> findDecays(LayerOp layer,
                                               ArrayRef<CallOp> calls) {
  SmallVector<bool> decays(layer.getNumParameters(), false);
  for (CallOp call : calls) {
    auto names = call.getParameters().getAsRange<FlatSymbolRefAttr>();
    for (auto [i, name] : llvm::enumerate(names)) {
      ParameterOp parameter = parameterOf(call, name);
      if (!parameter || i >= decays.size())
        return call.emitOpError("expects a parameter of the layer, but got ")
               << name;
      if (call == calls.front())
        decays[i] = parameter.getDecay();
      if (decays[i] == parameter.getDecay())
        continue;
      return refuseDifference(call, calls.front(), i, name,
                              decays[i] ? "without weight decay"
                                        : "with weight decay",
                              decays[i] ? "with decay" : "without decay",
                              "calls of one layer share one update function");
    }
  }
  return decays;
}

/// Numbers the attentions of a layer, so that all its functions agree which is which.
static void numberAttentions(LayerOp layer) {
  int64_t number = 0;
  layer.walk([&](AttentionOp attention) { attention.setNumber(number++); });
}

FailureOr<SavedCounts> mlir::dyna::deriveLayer(OpBuilder &builder,
                                               LayerOp layer,
                                               ArrayRef<CallOp> calls,
                                               Type gradientElement) {
  numberAttentions(layer);
  FailureOr<SmallVector<bool>> decays = findDecays(layer, calls);
  if (failed(decays))
    return failure();
  SmallVector<bool> frozen = frozenOf(layer, calls);
  if (failed(checkFrozen(layer, frozen, calls)))
    return failure();
  FailureOr<JointLayer> joint =
      JointLayer::create(layer, frozen, gradientElement);
  if (failed(joint))
    return failure();
  SavedValues saved = chooseSavedValues(*joint);
  if (failed(buildEvaluateFunction(builder, layer)) ||
      failed(buildTrainingFunctions(builder, layer, *joint, frozen, saved)) ||
      failed(buildOptimizerFunctions(builder, layer, *decays, frozen,
                                     gradientElement)))
    return failure();
  return SavedCounts{saved.products.size(), saved.elementwise.size(),
                     saved.repeated.size()};
}
