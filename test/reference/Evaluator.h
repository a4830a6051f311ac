//===- Evaluator.h - Interprets dyna IR in f64 ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The oracle of the compiler's tests. Two ways in:
//
// - `evaluateFunction` runs a layer function, at any stage between the
//   differentiate phase and code generation, op by op.
// - `evaluateModel` and `differentiateModel` run the logical graph. The latter
//   has a reverse mode of its own, that knows nothing of the differentiate
//   phase: what it returns is what the whole compiler is held against.
//
// Failures (an op that is not known, arguments that do not fit) are diagnostics
// at the op.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_EVALUATOR_H
#define DYNA_TEST_REFERENCE_EVALUATOR_H

#include "dialects/dyna/Dyna.h"
#include "test/reference/Formulas.h"
#include "test/reference/Values.h"

namespace mlir::dyna::reference {

using Environment = llvm::DenseMap<mlir::Value, Datum>;

/// The results of `function` for one value per argument, segments included.
FailureOr<std::vector<Datum>> evaluateFunction(FunctionOp function,
                                               const std::vector<Datum> &args,
                                               const Context &context);

/// Runs one op (not a terminator) on values in `environment` and puts its
/// results there.
LogicalResult evaluateOperation(Operation *op, Environment &environment,
                                const Context &context);

/// The scaling that an op has, as Formulas.h has it.
RotaryScaling scalingOf(RotaryOp op);

/// The result of a layer for one value per argument: parameters, then inputs.
/// `environment`, when given, receives every value of the body.
FailureOr<Datum> evaluateLayer(LayerOp layer, const std::vector<Datum> &args,
                               const Context &context,
                               Environment *environment = nullptr);

/// All results of a layer: of an exit, its activation and its loss.
FailureOr<std::vector<Datum>>
evaluateResults(LayerOp layer, const std::vector<Datum> &args,
                const Context &context, Environment *environment = nullptr);

struct LayerGradients {
  Datum result;
  std::vector<Tensor> parameters;
  Tensor input; ///< of the first input; empty for token ids
};
/// Reverse mode over one layer; `dResults` are the gradients of its results (shape
/// [1] for a loss).
FailureOr<LayerGradients>
differentiateLayer(LayerOp layer, const std::vector<Datum> &args,
                   const std::vector<Tensor> &dResults, const Context &context);

/// One micro-batch.
struct Batch {
  Ids ids;
  Ids targets;
  Segments segments;
  int64_t ignored = -1; ///< the target of rows that are not in the loss
  /// Rows of the store that the slices of a bundle share; 0: all samples are whole.
  /// The keys of slices are numbered behind those of the batch (runtime/abi/Abi.h).
  int64_t stored = 0;
};

/// The sum of token losses, of several calls each times its weight. The context's
/// `layer` is set call by call.
FailureOr<double> evaluateModel(ModelOp model, const NamedTensors &parameters,
                                const Batch &batch, Context context);

struct ModelGradients {
  double loss = 0.0; ///< as `evaluateModel` returns it
  /// The sum of token losses of every call that gives one, without its weight.
  std::vector<double> losses;
  /// Of the loss times `inverseTargets`, by parameter.
  NamedTensors parameters;
  /// The result of every call, in order (the loss as shape [1]).
  std::vector<Tensor> activations;
};
FailureOr<ModelGradients> differentiateModel(ModelOp model,
                                             const NamedTensors &parameters,
                                             const Batch &batch,
                                             Context context);

/// Every parameter of the module as its initialiser says, rounded to its type.
NamedTensors initialParameters(ModuleOp module, uint64_t seed);

/// Rounds to the values that `element` (f64, f32, bf16) has.
void roundTo(Type element, Tensor &tensor);

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_EVALUATOR_H
