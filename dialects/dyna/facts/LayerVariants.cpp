//===- LayerVariants.cpp - Which gradients layers give and add ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/facts/LayerVariants.h"

using namespace mlir;
using namespace mlir::dyna;

StringAttr mlir::dyna::getBaseName(LayerOp layer) {
  std::optional<FlatSymbolRefAttr> base = layer.getVariantOf();
  return base ? base->getAttr() : layer.getSymNameAttr();
}

CallsOfLayers mlir::dyna::callsOfLayers(ModuleOp module) {
  SymbolTable symbols(module);
  CallsOfLayers calls;
  for (ModelOp model : module.getOps<ModelOp>())
    for (CallOp call : model.getBody().getOps<CallOp>()) {
      auto layer = symbols.lookup<LayerOp>(call.getCallee());
      calls[layer ? getBaseName(layer) : call.getCalleeAttr().getAttr()]
          .push_back(call);
    }
  return calls;
}

ParameterOp mlir::dyna::parameterOf(CallOp call, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<ParameterOp>(call, name);
}

SmallVector<bool> mlir::dyna::frozenOf(LayerOp layer, ArrayRef<CallOp> calls) {
  SmallVector<bool> frozen(layer.getNumParameters(), layer.getFrozen());
  if (calls.empty() || layer.getFrozen())
    return frozen;
  CallOp first = calls.front();
  for (auto [i, name] :
       llvm::enumerate(first.getParameters().getAsRange<FlatSymbolRefAttr>()))
    if (ParameterOp parameter = parameterOf(first, name);
        parameter && i < frozen.size())
      frozen[i] = parameter.getFrozen();
  return frozen;
}

bool mlir::dyna::takesActivation(LayerOp layer) {
  return isActivation(layer.getInputArguments().front().getType());
}

bool mlir::dyna::givesInputGradient(LayerOp layer) {
  return takesActivation(layer) && !layer.getStopsGradient();
}

bool mlir::dyna::hasBackward(LayerOp layer, ArrayRef<bool> frozen) {
  return givesInputGradient(layer) ||
         llvm::any_of(frozen, [](bool isFrozen) { return !isFrozen; });
}
