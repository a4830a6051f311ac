//===- DeriveLayer.cpp - All functions of one layer -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/DeriveLayer.h"

#include "passes/differentiate/LayerFunctions.h"

using namespace mlir;
using namespace mlir::dyna;

CallsOfLayers mlir::dyna::callsOfLayers(ModuleOp module) {
  CallsOfLayers calls;
  for (ModelOp model : module.getOps<ModelOp>())
    for (CallOp call : model.getBody().getOps<CallOp>())
      calls[call.getCalleeAttr().getAttr()].push_back(call);
  return calls;
}

/// Returns, by parameter of the layer, if weight decay applies.
static FailureOr<SmallVector<bool>> findDecays(LayerOp layer,
                                               ArrayRef<CallOp> calls) {
  SmallVector<bool> decays(layer.getNumParameters(), false);
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
  FailureOr<JointLayer> joint = JointLayer::create(layer, gradientElement);
  if (failed(decays) || failed(joint))
    return failure();
  SavedValues saved = chooseSavedValues(*joint);
  if (failed(buildEvaluateFunction(builder, layer)) ||
      failed(buildTrainingFunctions(builder, layer, *joint, saved)) ||
      failed(buildOptimizerFunctions(builder, layer, *decays, gradientElement)))
    return failure();
  return SavedCounts{saved.products.size(), saved.elementwise.size(),
                     saved.repeated.size()};
}
