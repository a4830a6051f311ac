//===- Tolerances.h - How close numbers must be, and why --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one table of tolerances of tests in C++ (docs/numerics.md tells the whole
// story). Distances are max|a - b| / max(max|b|, floor) over a tensor.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_TOLERANCES_H
#define DYNA_TEST_REFERENCE_TOLERANCES_H

namespace mlir::dyna::reference {

/// Two ways through the same formulas in f64: only the order of sums differs.
constexpr double sameFormulaTolerance = 1e-12;

/// Central differences in f64 have an error of step^2 times the third
/// derivative plus 1e-16 / step: about 1e-9 with this step, where values are
/// near 1. Norms of rows with little variance have large third derivatives,
/// hence the margin.
constexpr double differenceStep = 1e-5;
constexpr double differenceTolerance = 1e-6;

/// Of compiled code against the evaluator.
struct CompiledTolerances {
  double loss;       ///< relative to the loss
  double activation; ///< of a layer's output
  double gradient;   ///< of a parameter's gradient
  double update;     ///< of AdamW, given the same gradients
};

/// f64 differs in the order of sums and in the last bits of exp, tanh and erf;
/// gradients multiply that by 1 / sqrt(variance) in norms.
constexpr CompiledTolerances f64Tolerances = {1e-12, 1e-12, 1e-10, 1e-13};
/// f32: 6e-8 per operation, some hundred operations in a row.
constexpr CompiledTolerances f32Tolerances = {1e-5, 1e-5, 1e-4, 1e-6};
/// bf16: 4e-3 per stored value, a few dozen stored values in a row; the models
/// have as few as one token, so nothing averages out. AdamW runs in f32.
constexpr CompiledTolerances bf16Tolerances = {2e-2, 5e-2, 2e-1, 1e-6};

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_TOLERANCES_H
