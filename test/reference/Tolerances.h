//===- Tolerances.h - How close numbers must be, and why --------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
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

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_TOLERANCES_H
