//===- RowOps.h - The arithmetic of row-wise ops -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_ROWS_ROWOPS_H
#define DYNA_CODEGEN_ROWS_ROWOPS_H

#include "codegen/rows/CodeBuilder.h"
#include "codegen/rows/RowsPlan.h"

namespace mlir::dyna::rows {

/// What the arithmetic of one piece of one row may ask for.
class RowPiece {
public:
  virtual ~RowPiece() = default;
  virtual CodeBuilder &code() = 0;
  virtual const Piece &piece() = 0;
  /// The piece of an activation, in the accumulator type.
  virtual Value get(Value activation) = 0;
  /// The piece of a vector parameter.
  virtual Value getVector(Value parameter) = 0;
  /// The piece of the table row of this row's position.
  virtual Value getTableRow(PositionsOp op) = 0;
  /// A statistic of this row, in all lanes.
  virtual Value get(const Statistic &statistic) = 0;
  /// The random key of this row for a dropout.
  virtual Value getRandomKey(DropoutOp op) = 0;
  /// The number of the row's first feature; null for 0, as where the row is whole.
  virtual Value getFirstFeature(DropoutOp op) = 0;
};

/// The piece of the result of `op`, which is not a rotary or an accumulation.
Value emitRowOp(RowPiece &row, Operation *op);

/// What this piece adds to `result`, the result of an accumulation.
Value emitContribution(RowPiece &row, OpResult result);

/// What this piece adds to the sum of a statistic, and the statistic from the
/// sum (a scalar).
Value emitTerm(RowPiece &row, const Statistic &statistic);
Value emitStatistic(CodeBuilder &code, const Statistic &statistic, Value sum,
                    int64_t width);

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_ROWOPS_H
