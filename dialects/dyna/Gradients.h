//===- Gradients.h - How an op states its gradient -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reverse mode, one op at a time: the differentiate phase walks a layer from
// its last op to its first and calls `buildGradient` of each
// (DynaInterfaces.td). An op asks for the gradient of its results, builds
// gradient ops, and hands over what it adds to the gradients of its operands.
// It never sees the walk.
//
// Parameters are different from activations: their gradients are accumulated
// into tensors that live across micro-batches, so an op takes the current
// accumulator and puts back the one with its contribution added.
//
// Example: for `y = linear(x, w)` the walk knows `dy`, and `buildGradient` does
//   setAccumulator(w, linear_grad_weight(dy, use(x), accumulatorOf(w)))
//   add(x, linear_grad_input(dy, use(w)))
// Gradients of parameters come first, so that `dy` can die at its last use.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_GRADIENTS_H
#define DYNA_DIALECTS_DYNA_GRADIENTS_H

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/Builders.h"

namespace mlir::dyna {

class GradientBuilder {
public:
  virtual ~GradientBuilder() = default;

  /// Where gradient ops go.
  virtual OpBuilder &builder() = 0;

  /// The gradient of a forward value, or null if nothing needs it.
  virtual Value gradientOf(Value forwardValue) = 0;

  /// Whether the gradient of this operand is wanted (false for ids, segments
  /// and values that depend on no parameter or differentiable input).
  virtual bool wants(Value forwardValue) = 0;

  /// Adds `gradient` to that of the activation `forwardValue`.
  virtual void add(Value forwardValue, Value gradient) = 0;

  /// Returns true if the parameter has no gradient. Then no op adds to one.
  virtual bool isFrozen(Value parameter) = 0;

  /// The current accumulator of a parameter (a block argument of the layer).
  /// Always paired with `setAccumulator`: an accumulator has one user. Null if the
  /// parameter is frozen, or if `parameter` is none.
  virtual Value accumulatorOf(Value parameter) = 0;
  virtual void setAccumulator(Value parameter, Value accumulated) = 0;

  /// Makes a forward value available to backward: saved, or recomputed.
  virtual Value use(Value forwardValue) = 0;

  /// In training, forward computes `value` in the place of `forwardValue`, with
  /// all that `value` needs: for a loss whose forward makes its gradients too.
  virtual void replaceInForward(Value forwardValue, Value value) = 0;

  /// Reports at `op` why its gradient cannot be built; differentiation fails.
  virtual void reject(Operation *op, const Twine &reason) = 0;
};

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_GRADIENTS_H
