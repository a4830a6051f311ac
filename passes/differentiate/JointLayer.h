//===- JointLayer.h - Joins a layer with its gradient -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The idea: differentiation first makes *one* block in which forward and
// backward follow each other, and only then decides what to save between them.
// Every layer function is afterwards cut out of this block by naming its
// arguments and results (LayerFunctions.h); what it must compute itself
// follows.
//
//   layer @L[%w](%x, %s) { forward ops; return %y }
// becomes (detached, never part of the module)
//   (%w, %x, %s, %g_w, %dy) { forward ops; gradient ops;
//                             return %y, %g_w (forward), %g_w' , %dx }
//
// A loss needs no %dy: its gradient is made by forward (`replaceInForward`). An exit
// returns %y and a loss. Then forward makes the gradient of the loss, and backward adds
// what follows from it to the gradient of the layer's input.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_JOINTLAYER_H
#define DYNA_PASSES_DIFFERENTIATE_JOINTLAYER_H

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::dyna {

class JointLayer {
public:
  /// Differentiates a copy of `layer`, with gradients of parameters added up in
  /// `gradientElement` (null: the accumulator type). Parameter i has none if
  /// `frozen[i]`. On failure a diagnostic was emitted.
  static FailureOr<JointLayer> create(LayerOp layer, ArrayRef<bool> frozen,
                                      Type gradientElement);

  Block &getBlock() { return clone->getBody().front(); }

  // Arguments.
  ArrayRef<BlockArgument> getParameters() {
    return getBlock().getArguments().take_front(numParameters);
  }
  /// Inputs in the order of their index; the first is the primary one, which
  /// backward finds among the saved values.
  ArrayRef<Value> getInputs() { return inputs; }
  Value getPrimaryInput() { return inputs.front(); }
  /// Returns the segments; null if the layer has none.
  Value getSegments() { return segments; }
  ArrayRef<BlockArgument> getAccumulators() {
    return getBlock()
        .getArguments()
        .drop_front(numLayerArguments)
        .take_front(numParameters);
  }
  /// Returns true if nothing adds to this accumulator.
  bool isFrozen(size_t parameter) const { return frozen[parameter]; }
  /// Returns the gradient of the activation; null if the layer gives a loss alone.
  Value getOutputGradient() {
    return hasActivation ? Value(getBlock().getArguments().back()) : Value();
  }

  // Results.
  bool givesLoss() const { return hasLoss; }
  /// Returns the activation, then the loss. A layer may have one of them alone.
  SmallVector<Value> getOutputs() { return returned(0, numOutputs()); }
  /// Returns the accumulators after forward; they are the arguments if forward
  /// does not change them.
  SmallVector<Value> getForwardAccumulators() {
    return returned(numOutputs(), numParameters);
  }
  /// Returns the accumulators after backward.
  SmallVector<Value> getFinalAccumulators() {
    return returned(numOutputs() + numParameters, numParameters);
  }
  /// Null if the primary input is no activation, or no layer needs its gradient.
  Value getInputGradient() {
    return hasInputGradient ? returned(numOutputs() + 2 * numParameters)
                            : Value();
  }

private:
  unsigned numOutputs() const { return hasActivation + hasLoss; }
  Value returned(unsigned index) {
    return getBlock().getTerminator()->getOperand(index);
  }
  SmallVector<Value> returned(unsigned first, unsigned count) {
    return llvm::to_vector(
        getBlock().getTerminator()->getOperands().slice(first, count));
  }
  LogicalResult classifyArguments(LayerOp layer);
  LogicalResult differentiate(Type gradientElement);

  OwningOpRef<LayerOp> clone;
  SmallVector<bool> frozen;
  unsigned numParameters = 0;
  unsigned numLayerArguments = 0;
  SmallVector<Value> inputs;
  Value segments;
  bool hasActivation = false, hasLoss = false;
  bool hasInputGradient = false;
};

/// Removes duplicate and unused computation of a layer. Its results are the
/// operands of the terminator.
void simplifyLayer(LayerOp layer);

/// Returns `location` with `prefix` before its name, if it has one. Readable
/// names of values come from there.
Location prefixName(StringRef prefix, Location location);

/// Returns the type of a parameter's master and moments, and of its gradient
/// unless that is stored narrower.
RankedTensorType getAccumulatorTensorType(Type parameter);

/// Returns the type in which the gradient of a parameter is added up. Its
/// element is `gradientElement`, or, if that is null, that of the accumulator
/// type.
RankedTensorType getGradientTensorType(Type parameter, Type gradientElement);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_JOINTLAYER_H
