//===- DeriveLayer.h - Derives all functions of one layer -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the pass that differentiates and the pass that derives again to compare.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_DERIVELAYER_H
#define DYNA_PASSES_DIFFERENTIATE_DERIVELAYER_H

#include "dialects/dyna/facts/LayerVariants.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/differentiate/SavedValues.h"

namespace mlir::dyna {

/// Numbers of values that functions of one layer pass to each other.
struct SavedCounts {
  size_t products = 0, elementwise = 0, repeated = 0;
};

/// Builds the functions of all roles of `layer` at the builder's place, with
/// gradients of parameters added up in `gradientElement` (null: the accumulator
/// type). Weight decay, and what is frozen, is that of the parameters that `calls`
/// give to the layer and its variants. On failure a diagnostic was emitted.
FailureOr<SavedCounts> deriveLayer(OpBuilder &builder, LayerOp layer,
                                   ArrayRef<CallOp> calls,
                                   Type gradientElement);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_DERIVELAYER_H
