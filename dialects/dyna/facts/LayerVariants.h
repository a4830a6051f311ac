//===- LayerVariants.h - Which gradients layers give and add ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Frozen parameters have no gradient, and layers before all trained parameters run forward
// alone. So a layer can have variants that differ in their backward. dyna-differentiate
// makes them (passes/differentiate/SpecializeLayers.h).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_FACTS_LAYERVARIANTS_H
#define DYNA_DIALECTS_DYNA_FACTS_LAYERVARIANTS_H

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna {

/// The calls of each layer and its variants, by the layer's name, in the order of the
/// module.
using CallsOfLayers = llvm::DenseMap<StringAttr, SmallVector<CallOp>>;
CallsOfLayers callsOfLayers(ModuleOp module);

/// Returns the parameter that a call names, or null.
ParameterOp parameterOf(CallOp call, FlatSymbolRefAttr name);

/// Returns the name of the layer that this one is a variant of, or its own.
StringAttr getBaseName(LayerOp layer);

/// Returns true for each parameter of the layer that `calls` give a frozen one. The calls
/// agree in modules that were differentiated.
SmallVector<bool> frozenOf(LayerOp layer, ArrayRef<CallOp> calls);

/// Returns true if the first input of the layer is an activation, which has a gradient.
bool takesActivation(LayerOp layer);
/// Returns true if the layer gives a gradient of its first input.
bool givesInputGradient(LayerOp layer);
/// Returns true if the layer has a backward: a gradient to give, or one to add.
bool hasBackward(LayerOp layer, ArrayRef<bool> frozen);

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_FACTS_LAYERVARIANTS_H
