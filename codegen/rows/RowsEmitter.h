//===- RowsEmitter.h - The code of a sweep over rows ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A `dyna.rows` becomes a body that follows its plan (RowsPlan.h) row by row.
// What a target decides is behind `RowsTarget`: where the body finds what it
// works on, what memory it has, and who computes which columns of a row.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_ROWS_ROWSEMITTER_H
#define DYNA_CODEGEN_ROWS_ROWSEMITTER_H

#include "codegen/rows/CodeBuilder.h"
#include "codegen/rows/RowOps.h"
#include "codegen/rows/RowsPlan.h"

#include <optional>

namespace mlir::dyna::rows {

/// What the body of a sweep works on: numbers of its arguments.
struct RowsArguments {
  llvm::MapVector<Value, unsigned> operands;   ///< from outside, and tables
  llvm::MapVector<unsigned, unsigned> results; ///< activations, by result
  llvm::DenseMap<Value, int64_t> strides;      ///< of those, in elements
  SmallVector<unsigned> partials;              ///< per accumulation
  llvm::MapVector<Operation *, unsigned> keys; ///< of dropouts
  std::optional<unsigned> samples, positions;  ///< arrays of the segments
};

/// What is the target's own about a body.
class RowsTarget {
public:
  virtual ~RowsTarget() = default;
  virtual CodeBuilder &code() = 0;
  /// The argument of that number, a pointer or a number.
  virtual Value argument(unsigned number) = 0;
  /// Memory of the body, for as long as it runs.
  virtual Value takeMemory(int64_t bytes) = 0;
  /// The address of constants.
  virtual Value table(ArrayRef<double> values) = 0;
  /// May ask for what the sweep will read behind this piece of a row.
  virtual void prefetch(Value row, const Piece &piece, Type element) {}
  /// Visits columns [0, count) in pieces, up to `unroll` at once, and adds up
  /// what `body` returns for them (piece-major) to `sums` scalars of `type`.
  virtual SmallVector<Value>
  sumColumns(int64_t count, int64_t unroll, unsigned sums, Type type,
             function_ref<SmallVector<Value>(ArrayRef<Piece>)> body) = 0;
  void forColumns(int64_t count, int64_t unroll,
                  function_ref<void(ArrayRef<Piece>)> body) {
    sumColumns(count, unroll, /*sums=*/0, Type(), [&](ArrayRef<Piece> pieces) {
      body(pieces);
      return SmallVector<Value>();
    });
  }
};

/// Emits a sweep's body.
class RowsEmitter : private RowPiece {
public:
  RowsEmitter(RowsTarget &target, RowsOp op, const RowsPlan &plan,
              const RowsArguments &arguments)
      : target(target), rows(op), plan(plan), arguments(arguments),
        builder(target.code()) {}

  /// What all rows share; `chunk` is the number of the row of partial sums that
  /// the body adds to, which it clears.
  void begin(Value chunk);
  /// The rows [begin, end). `streams`: results bypass the cache.
  void emitRows(Value begin, Value end, bool streams);

private:
  // RowPiece.
  CodeBuilder &code() override { return builder; }
  const Piece &piece() override { return current; }
  Value get(Value activation) override;
  Value getVector(Value parameter) override;
  Value getTableRow(PositionsOp op) override;
  Value get(const Statistic &statistic) override;
  Value getRandomKey(DropoutOp op) override { return randomKeys.lookup(op); }

  void loadPointers();
  void startRow(Value row);
  struct Turns {
    Value sines, cosines;
  };
  Turns emitTurns(RotaryOp op, Value rowPosition);
  void emitRotary(RotaryOp op, Value rowPosition);
  void emitPass(int pass);
  SmallVector<Value> emitPieces(ArrayRef<Piece> pieces, int pass,
                                ArrayRef<unsigned> statistics);
  Value loadPiece(Value pointer, Type element) {
    return builder.loadElements(
        builder.offset(pointer, current.column, element), element,
        current.width, alignmentOf(current, plan.width, element));
  }
  /// Where the body keeps an activation of its own for later passes.
  std::pair<Value, Type> storageOf(Value value);

  RowsTarget &target;
  RowsOp rows;
  const RowsPlan &plan;
  const RowsArguments &arguments;
  CodeBuilder &builder;

  // Of the whole body.
  DenseMap<Value, Value> operandPointers, stashPointers;
  DenseMap<unsigned, Value> resultPointers;
  SmallVector<Value> partialPointers;
  // Of the row.
  DenseMap<Value, Value> operandRows, tableRows;
  DenseMap<unsigned, Value> resultRows;
  DenseMap<Operation *, Value> randomKeys;
  SmallVector<Value> statisticValues; ///< scalars, null until known
  int currentPass = 0;
  bool streaming = false;
  // Of the piece.
  Piece current = {};
  DenseMap<Value, Value> cache;
};

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_ROWSEMITTER_H
