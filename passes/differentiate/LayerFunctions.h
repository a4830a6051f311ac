//===- LayerFunctions.h - The layer functions of every role -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_LAYERFUNCTIONS_H
#define DYNA_PASSES_DIFFERENTIATE_LAYERFUNCTIONS_H

#include "mlir/IR/Builders.h"
#include "passes/differentiate/SavedValues.h"

namespace mlir::dyna {

/// Builds `@layer.evaluate`: the layer without dropout. All builders insert
/// into the module.
LogicalResult buildEvaluateFunction(OpBuilder &builder, LayerOp layer);

/// Builds forward, the recomputations (unless the layer ends in the loss),
/// backward, and its halves backward_input and backward_weight.
LogicalResult buildTrainingFunctions(OpBuilder &builder, LayerOp layer,
                                     JointLayer &joint,
                                     const SavedValues &saved);

/// Whether the parameters are copies of masters in a wider type (bf16).
bool needsCast(LayerOp layer);

/// Builds update, grad_norm and, under bf16, cast. `decays[i]`: whether weight
/// decay applies to parameter i. `gradientElement` as in `JointLayer::create`.
LogicalResult buildOptimizerFunctions(OpBuilder &builder, LayerOp layer,
                                      ArrayRef<bool> decays,
                                      Type gradientElement);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_LAYERFUNCTIONS_H
