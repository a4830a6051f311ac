//===- BackwardBuilder.cpp - Collects gradients during the walk -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/BackwardBuilder.h"

using namespace mlir;
using namespace mlir::dyna;

BackwardBuilder::BackwardBuilder(OpBuilder builder,
                                 ArrayRef<BlockArgument> parameters,
                                 ArrayRef<BlockArgument> accumulators,
                                 ArrayRef<bool> frozen)
    : opBuilder(builder) {
  for (auto [parameter, accumulator, isFrozen] :
       llvm::zip_equal(parameters, accumulators, frozen)) {
    this->accumulators.insert({parameter, accumulator});
    if (isFrozen)
      frozenParameters.insert(parameter);
    else
      markWanted(parameter);
  }
}

SmallVector<Value> BackwardBuilder::getAccumulators() const {
  return llvm::map_to_vector(accumulators,
                             [](const auto &entry) { return entry.second; });
}

void BackwardBuilder::add(Value forwardValue, Value gradient) {
  Value &sum = gradients[forwardValue];
  // Add at once, not at the end, so that only one partial sum is live. The new
  // gradient comes first: if it is a matrix product, the sum can become its
  // accumulator.
  sum = sum ? AddOp::create(opBuilder, gradient.getLoc(), gradient.getType(),
                            gradient, sum)
            : gradient;
}

Value BackwardBuilder::accumulatorOf(Value parameter) {
  if (isFrozen(parameter))
    return {};
  auto it = accumulators.find(parameter);
  if (it != accumulators.end())
    return it->second;
  failed = true;
  Operation *producer = parameter.getDefiningOp();
  InFlightDiagnostic diagnostic = emitError(parameter.getLoc());
  diagnostic << "expects a parameter of the layer where a weight is used, but "
                "got ";
  if (producer)
    diagnostic << "the result of '" << producer->getName() << "'";
  else
    diagnostic << "an input of the layer";
  return {};
}

void BackwardBuilder::setAccumulator(Value parameter, Value accumulated) {
  auto it = accumulators.find(parameter);
  assert(it != accumulators.end() && "accumulatorOf comes first");
  it->second = accumulated;
}

void BackwardBuilder::reject(Operation *op, const Twine &reason) {
  failed = true;
  op->emitOpError(reason);
}
