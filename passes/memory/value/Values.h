//===- Values.h - States which values may share a place ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rules under which two values may share a place. Planning, its verifier
// and code generation use them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_VALUE_VALUES_H
#define DYNA_PASSES_MEMORY_VALUE_VALUES_H

#include "dialects/dyna/Dyna.h"
#include "passes/memory/sweep/Epilogues.h"

namespace mlir::dyna {

/// Returns the product in whose epilogue the sweep runs. It is the row product
/// directly before the sweep, if the sweep uses its result and the target has
/// such epilogues (Target.h). The two are one step: the sweep writes its first
/// rows while the product still reads its operands.
Operation *getEpilogueProduct(RowsOp rows);

/// Returns the sweep that runs in the epilogue of the product before it, if
/// any.
RowsOp getEpilogue(Operation *product);

/// Returns true if a sweep may write `result` over its operand `operand`,
/// provided that nothing else needs the operand. Both must have one type, and
/// one of these must hold:
/// - the sweep has no norm and no rotary, so that it passes over a row once;
/// - the operand has one use in the sweep, with only element-wise ops between
///   it and the result.
///
/// A described epilogue overwrites nothing but its products.
///
/// Code generation guarantees three things. In a pass all operands of an
/// element are read before any result is stored. A yielded value is computed in
/// one pass and stored there. An operand with one use is read in one pass.
bool mayReplace(RowsOp rows, Value operand, OpResult result);

/// Answers the same for any op: a sum over the ranks of a group may also
/// overwrite its operand.
bool mayReplace(Operation *op, Value operand, OpResult result);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_VALUE_VALUES_H
