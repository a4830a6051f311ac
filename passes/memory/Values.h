//===- Values.h - What places may be shared -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rules by which two values may lie at one place, shared by planning, its
// check and code generation.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_VALUES_H
#define DYNA_PASSES_MEMORY_VALUES_H

#include "dialects/dyna/Dyna.h"
#include "passes/memory/Epilogues.h"

namespace mlir::dyna {

/// The product in whose epilogue the sweep runs: the row product directly
/// before it, if the sweep uses its result and the target has such epilogues
/// (Target.h). The two are one step: the sweep
/// writes its first rows while the product still reads its operands.
Operation *getEpilogueProduct(RowsOp rows);

/// The sweep that runs in the epilogue of the product before it, if one does.
RowsOp getEpilogue(Operation *product);

/// Whether a sweep may write `result` over its operand `operand`, if nothing
/// else needs that: both have one type, and either
/// - the sweep has no norm and no rotary, so that it passes over a row once, or
/// - the operand has one use in the sweep, and only element-wise ops lie
/// between
///   it and the result.
/// A described epilogue writes over nothing but its products.
/// Code generation guarantees that in a pass all operands of an element are
/// read before any result is stored, that a yielded value is computed in one
/// pass and stored there, and that an operand with one use is read in one pass.
bool mayReplace(RowsOp rows, Value operand, OpResult result);

/// The same for any op: also a sum over the ranks of a group may lie where its
/// operand did.
bool mayReplace(Operation *op, Value operand, OpResult result);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_VALUES_H
