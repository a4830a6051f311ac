//===- LayerRun.h - Runs a layer's functions in the evaluator ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The memories of one layer call, as the evaluator sees them: what a function
// takes and gives is found by its places, the values of a saved tier by their
// order in it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_LAYERRUN_H
#define DYNA_TEST_REFERENCE_LAYERRUN_H

#include "test/reference/Evaluator.h"

namespace mlir::dyna::reference {

struct LayerRun {
  // Arrays of the signature.
  std::vector<Tensor> parameters;
  std::vector<Tensor> accumulators;
  std::vector<Datum> inputs; ///< without segments
  std::vector<Tensor> outputs;
  std::vector<Tensor> outputGradients;
  std::vector<Tensor> inputGradients;
  std::vector<Tensor> optimizerState; ///< master, m, v of each parameter
  Segments segments;
  /// Values of each saved tier, in order.
  std::map<Memory, std::vector<Datum>> tiers;

  /// Runs `function` and puts its results where its places say.
  LogicalResult run(FunctionOp function, const Context &context);

  /// The two halves of it: one value per argument, and where results go.
  std::vector<Datum> collectArguments(FunctionOp function);
  void setResults(FunctionOp function, std::vector<Datum> results);

private:
  Datum argument(FunctionOp function, PlaceAttr place, size_t indexInTier);
  void setResult(FunctionOp function, PlaceAttr place, size_t indexInTier,
                 Datum datum);
};

/// `@layer.role`, or null.
FunctionOp findFunction(ModuleOp module, LayerOp layer, Role role);

/// A layer with random parameters, accumulators and inputs for `segments`. Ids
/// and targets are below the smallest table of the layer; every fifth target
/// is ignored.
LayerRun makeRandomRun(LayerOp layer, const Segments &segments, uint64_t seed);

/// max|a - b| / max(max|b|, floor).
double distance(const Tensor &a, const Tensor &b, double floor = 1e-2);

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_LAYERRUN_H
