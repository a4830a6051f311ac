//===- RowOps.h - Emits the arithmetic of row-wise ops ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_ROWS_ROWOPS_H
#define DYNA_CODEGEN_ROWS_ROWOPS_H

#include "codegen/rows/CodeBuilder.h"
#include "codegen/rows/RowsPlan.h"

namespace mlir::dyna::rows {

/// Gives access to the values of one piece of one row.
class RowPiece {
public:
  virtual ~RowPiece() = default;
  virtual CodeBuilder &code() = 0;
  virtual const Piece &piece() = 0;
  /// Returns the piece of an activation, in the accumulator type.
  virtual Value get(Value activation) = 0;
  /// Returns the piece of a vector parameter.
  virtual Value getVector(Value parameter) = 0;
  /// Returns the piece of the table row of this row's position.
  virtual Value getTableRow(PositionsOp op) = 0;
  /// Returns a statistic of this row, in all lanes.
  virtual Value get(const Statistic &statistic) = 0;
  /// Returns the random key of this row for a dropout.
  virtual Value getRandomKey(DropoutOp op) = 0;
  /// Returns the number of the row's first feature. Null means 0, for example
  /// for whole rows.
  virtual Value getFirstFeature(DropoutOp op) = 0;
};

/// Emits the piece of the result of `op`, which is no rotary or accumulation.
Value emitRowOp(RowPiece &row, Operation *op);

/// Emits the contribution of this piece to `result`, the result of an
/// accumulation.
Value emitContribution(RowPiece &row, OpResult result);

/// Emits the contribution of this piece to the sum of a statistic. The second
/// function makes the statistic from the sum (a scalar).
Value emitTerm(RowPiece &row, const Statistic &statistic);
Value emitStatistic(CodeBuilder &code, const Statistic &statistic, Value sum,
                    int64_t width);

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_ROWOPS_H
