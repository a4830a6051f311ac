//===- LayerFunctions.h - Cuts out the layer functions of all roles -------===//
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

/// Returns true if a layer whose parameters are `frozen` has a function in this role:
/// - recomputation, unless the layer ends in the loss or runs forward alone;
/// - backward, unless it runs forward alone;
/// - both halves of backward, update and grad_norm, if a parameter is trained or there
///   is none;
/// - cast, if parameters are copies of masters.
bool hasRole(LayerOp layer, Role role, ArrayRef<bool> frozen);

/// Builds forward, the recomputations, backward, and its halves backward_input and
/// backward_weight, as far as the layer has them.
LogicalResult buildTrainingFunctions(OpBuilder &builder, LayerOp layer,
                                     JointLayer &joint, ArrayRef<bool> frozen,
                                     const SavedValues &saved);

/// Returns true if parameters are copies of masters in a wider type (bf16). Frozen
/// ones have no master beside them.
bool needsCast(LayerOp layer, ArrayRef<bool> frozen);

/// Builds update, grad_norm and, under bf16, cast, of parameters that are not
/// frozen, if there are any. `decays[i]`: whether weight decay applies to parameter i.
/// `gradientElement` as in `JointLayer::create`.
LogicalResult buildOptimizerFunctions(OpBuilder &builder, LayerOp layer,
                                      ArrayRef<bool> decays,
                                      ArrayRef<bool> frozen,
                                      Type gradientElement);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_LAYERFUNCTIONS_H
