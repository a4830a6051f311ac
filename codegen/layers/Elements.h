//===- Elements.h - Lowers sweeps over parameters ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The optimizer, the global norm and casts run over elements of a parameter.
// The caller gives the rows: all of them, or this rank's.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_LAYERS_ELEMENTS_H
#define DYNA_CODEGEN_LAYERS_ELEMENTS_H

#include "codegen/layers/FunctionLowering.h"

namespace mlir::dyna::layers {

inline RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The tensors of one sweep, all with the same elements.
struct Elements {
  SmallVector<Value> pointers;
  Value count;   ///< in the rows given
  Value isValid; ///< true if the rows are those of a part of the parameter
};

/// Finds the tensors in the arrays of the signature.
FailureOr<Elements> elementsOf(FunctionLowering &function, Operation *op,
                               ArrayRef<Value> tensors);

/// Returns true if there is nothing to do: no elements, or one tensor is null.
Value isAbsent(CodeBuilder &code, const Elements &elements);

/// Emits `launch`, which returns a status, to run unless the elements are
/// absent. Leaves the layer function if the rows are not valid.
void unlessAbsent(FunctionLowering &function, const Elements &elements,
                  function_ref<Value()> launch);

/// Scalars of the step that AdamW's sweep needs.
struct AdamwScalars {
  Value beta1, rest1, beta2, rest2, epsilon, decay, stepSize, inverseRoot2;
  /// In the context: an address in device memory (dyna_optimizer). In a step:
  /// the value at that address.
  Value gradientScale;
  /// Returns all scalars but `gradientScale`.
  SmallVector<Value *> all() {
    return {&beta1,   &rest1, &beta2,    &rest2,
            &epsilon, &decay, &stepSize, &inverseRoot2};
  }
};

/// Loads the scalars of the context, in f64.
AdamwScalars emitAdamwScalars(FunctionLowering &function, bool decay);

/// State of AdamW for a vector of elements; the scalars of a step have its
/// type.
struct AdamwState {
  Value master, m, v;
};
AdamwState emitAdamwStep(CodeBuilder &code, const AdamwScalars &scalars,
                         AdamwState state, Value gradient);

/// Returns the cast that makes the compute-type copy of the updated master, or
/// null.
CastOp castOf(AdamwOp op);
/// Returns true if the sweep of the `adamw` before it does the cast.
bool isFusedCast(CastOp op);

} // namespace mlir::dyna::layers

#endif // DYNA_CODEGEN_LAYERS_ELEMENTS_H
