//===- Gradients.h - Lets an op state its gradient --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reverse mode works one op at a time. The differentiate phase walks a layer
// from its last op to its first and calls `buildGradient` of each
// (DynaInterfaces.td). An op asks for the gradient of its results, builds
// gradient ops, and adds to the gradients of its operands. It never sees the
// walk.
//
// Parameters differ from activations: their gradients are accumulated in
// tensors that live across micro-batches. So an op reads the current
// accumulator and sets a new one with its contribution added.
//
// Example: `y = linear(x, w)`. The walk knows `dy`, and `buildGradient` does
//
//     setAccumulator(w, linear_grad_weight(dy, use(x), accumulatorOf(w)))
//     add(x, linear_grad_input(dy, use(w)))
//
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

  /// Returns the builder that gradient ops are created with.
  virtual OpBuilder &builder() = 0;

  /// Returns the gradient of a forward value, or null if nothing needs it.
  virtual Value gradientOf(Value forwardValue) = 0;

  /// Returns true if the gradient of this operand is needed. It is not for ids,
  /// segments, and values that depend on no parameter or differentiable input.
  virtual bool wants(Value forwardValue) = 0;

  /// Adds `gradient` to the gradient of the activation `forwardValue`.
  virtual void add(Value forwardValue, Value gradient) = 0;

  /// Returns true if the parameter has no gradient. Then no op adds to one.
  virtual bool isFrozen(Value parameter) = 0;

  /// Gets and sets the current accumulator of a parameter (a block argument of
  /// the layer). Both are always called together, because an accumulator has
  /// one user. Null if the parameter is frozen, or if `parameter` is none.
  virtual Value accumulatorOf(Value parameter) = 0;
  virtual void setAccumulator(Value parameter, Value accumulated) = 0;

  /// Makes a forward value available to backward: saved, or recomputed.
  virtual Value use(Value forwardValue) = 0;

  /// Replaces `forwardValue` in the forward function of training by `value`,
  /// with all ops that `value` needs. A loss whose forward also makes its
  /// gradients uses this.
  virtual void replaceInForward(Value forwardValue, Value value) = 0;

  /// Reports at `op` why its gradient cannot be built; differentiation fails.
  virtual void reject(Operation *op, const Twine &reason) = 0;
};

} // namespace mlir::dyna

#endif // DYNA_DIALECTS_DYNA_GRADIENTS_H
