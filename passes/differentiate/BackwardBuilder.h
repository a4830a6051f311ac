//===- BackwardBuilder.h - Collects gradients during the walk -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_BACKWARDBUILDER_H
#define DYNA_PASSES_DIFFERENTIATE_BACKWARDBUILDER_H

#include "dialects/dyna/Gradients.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::dyna {

/// Implements `GradientBuilder` for the backward walk. Gradient ops come after
/// the forward ops in the same block, so they can use every forward value
/// directly.
class BackwardBuilder final : public GradientBuilder {
public:
  /// Makes a builder that inserts gradient ops at the end of `builder`'s block.
  /// `parameters[i]` accumulates into `accumulators[i]`, unless `frozen[i]`.
  BackwardBuilder(OpBuilder builder, ArrayRef<BlockArgument> parameters,
                  ArrayRef<BlockArgument> accumulators, ArrayRef<bool> frozen);

  /// Marks the gradients of values that depend on `value` as wanted.
  void markWanted(Value value) { wanted.insert(value); }
  bool hasFailed() const { return failed; }
  /// Returns the current accumulators, in the order of the parameters.
  SmallVector<Value> getAccumulators() const;
  /// Returns the value that replaced `value` in forward, or `value`.
  Value inForward(Value value) const {
    auto it = replacements.find(value);
    return it == replacements.end() ? value : it->second;
  }

  OpBuilder &builder() override { return opBuilder; }
  Value gradientOf(Value forwardValue) override {
    return gradients.lookup(forwardValue);
  }
  bool wants(Value forwardValue) override {
    return wanted.contains(forwardValue);
  }
  void add(Value forwardValue, Value gradient) override;
  bool isFrozen(Value parameter) override {
    return frozenParameters.contains(parameter);
  }
  Value accumulatorOf(Value parameter) override;
  void setAccumulator(Value parameter, Value accumulated) override;
  Value use(Value forwardValue) override { return forwardValue; }
  void replaceInForward(Value forwardValue, Value value) override {
    replacements[forwardValue] = value;
  }
  void reject(Operation *op, const Twine &reason) override;

private:
  OpBuilder opBuilder;
  llvm::DenseSet<Value> wanted;
  DenseMap<Value, Value> gradients;
  DenseMap<Value, Value> replacements;
  /// Parameter to its accumulator, in the order of the parameters.
  llvm::MapVector<Value, Value> accumulators;
  llvm::DenseSet<Value> frozenParameters;
  bool failed = false;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_BACKWARDBUILDER_H
