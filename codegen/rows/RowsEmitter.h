//===- RowsEmitter.h - Emits the code of a sweep over rows ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A `dyna.rows` becomes a body that follows its plan (RowsPlan.h) row by row. A
// target makes three decisions through `RowsTarget`. They are the places of the
// body's arguments, its memory, and the columns of a row that each thread
// computes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_ROWS_ROWSEMITTER_H
#define DYNA_CODEGEN_ROWS_ROWSEMITTER_H

#include "codegen/rows/CodeBuilder.h"
#include "codegen/rows/RowOps.h"
#include "codegen/rows/RowsPlan.h"

#include <optional>

namespace mlir::dyna::rows {

/// Numbers of the arguments of a sweep's body.
struct RowsArguments {
  llvm::MapVector<Value, unsigned> operands;   ///< from outside, and tables
  llvm::MapVector<unsigned, unsigned> results; ///< activations, by result
  llvm::DenseMap<Value, int64_t> strides;      ///< of those, in elements
  SmallVector<unsigned> partials;              ///< per accumulation
  llvm::MapVector<Operation *, unsigned> keys; ///< of dropouts
  /// Number of the first feature, for dropouts that have a part of the
  /// features.
  llvm::MapVector<Operation *, unsigned> features;
  std::optional<unsigned> samples, positions; ///< arrays of the segments
};

/// The part of a body that depends on the target.
class RowsTarget {
public:
  virtual ~RowsTarget() = default;
  virtual CodeBuilder &code() = 0;
  /// Returns the argument of that number, a pointer or a number.
  virtual Value argument(unsigned number) = 0;
  /// Reserves memory of the body, for as long as it runs.
  virtual Value takeMemory(int64_t bytes) = 0;
  /// Returns the address of constants.
  virtual Value table(ArrayRef<double> values) = 0;
  /// May prefetch what the sweep will read after this piece of a row.
  virtual void prefetch(Value row, const Piece &piece, Type element) {}
  /// Visits columns [0, count) in pieces, up to `unroll` at once. Adds up the
  /// results of `body` (piece-major) to `sums` scalars of `type`.
  virtual SmallVector<Value>
  sumColumns(int64_t count, int64_t unroll, unsigned sums, Type type,
             function_ref<SmallVector<Value>(ArrayRef<Piece>)> body) = 0;
  /// Emits a rotation in which the two halves of each of `heads` heads turn by
  /// the same angles. `angles` returns sine and cosine for a piece of a half.
  /// `turn` is called for the pieces of every head, with the head's first
  /// column and a function that returns the angles.
  using Angles = std::pair<Value, Value>;
  virtual void
  turnHeads(int64_t half, int64_t heads, Type type,
            function_ref<Angles(const Piece &)> angles,
            function_ref<void(Value, const Piece &, function_ref<Angles()>)>
                turn) = 0;
  /// Returns true if a thread has the same pieces in every pass and keeps their
  /// values (`Piece::number`). Then values are stored only to be read back if
  /// other threads turned them.
  virtual bool keepsPieces() const { return false; }
  /// Returns true if operands of a piece are kept too, and not read again in
  /// each pass. Used with keepsPieces.
  virtual bool keepsOperands() const { return true; }
  /// Makes all stores of the threads of a row so far visible to all of them.
  virtual void syncRow() {}
  /// Adds a piece to the sum over rows of that number. Used with keepsPieces.
  virtual void addToSum(unsigned number, const Piece &piece, Value value) {
    llvm_unreachable("a target without registers for sums");
  }
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

  /// Emits code that all rows share. The body clears row `chunk` of the partial
  /// sums and adds to it. Null: the target keeps sums itself.
  void begin(Value chunk);
  /// Emits the rows [begin, end). `streams`: results bypass the cache.
  void emitRows(Value begin, Value end, bool streams);
  void emitRow(Value row);

private:
  // RowPiece.
  CodeBuilder &code() override { return builder; }
  const Piece &piece() override { return current; }
  Value get(Value activation) override;
  Value getVector(Value parameter) override;
  Value getTableRow(PositionsOp op) override;
  Value get(const Statistic &statistic) override;
  Value getRandomKey(DropoutOp op) override { return randomKeys.lookup(op); }
  Value getFirstFeature(DropoutOp op) override {
    auto found = arguments.features.find(op);
    return found == arguments.features.end() ? Value()
                                             : target.argument(found->second);
  }

  void loadPointers();
  void startRow(Value row);
  void emitRotary(RotaryOp op, Value rowPosition);
  void emitPass(int pass);
  struct Store;
  void emitResults(const Piece &piece, int pass,
                   SmallVectorImpl<Store> &stores);
  void emitAccumulations(const Piece &piece, int pass,
                         SmallVectorImpl<Store> &stores);
  SmallVector<Value> emitPieces(ArrayRef<Piece> pieces, int pass,
                                ArrayRef<unsigned> statistics);
  Value loadPiece(Value pointer, Type element) {
    return builder.loadElements(
        builder.offset(pointer, current.column, element), element,
        current.width, alignmentOf(current, plan.width, element));
  }
  /// Returns true if a stash of the plan needs memory.
  bool isStashed(Value value) const {
    return !target.keepsPieces() || value.getDefiningOp<RotaryOp>();
  }
  /// Keeps only those values of a piece that the plan reads back; later passes
  /// read operands again.
  void dropOperands(DenseMap<Value, Value> &values) const;
  /// Returns the memory in which the body keeps an activation of its own for
  /// later passes.
  std::pair<Value, Type> storageOf(Value value);

  RowsTarget &target;
  RowsOp rows;
  const RowsPlan &plan;
  const RowsArguments &arguments;
  CodeBuilder &builder;

  // Values of the whole body.
  DenseMap<Value, Value> operandPointers, stashPointers;
  DenseMap<unsigned, Value> resultPointers;
  SmallVector<Value> partialPointers;
  // Values of the current row.
  DenseMap<Value, Value> operandRows, tableRows;
  DenseMap<unsigned, Value> resultRows;
  DenseMap<Operation *, Value> randomKeys;
  SmallVector<Value> statisticValues; ///< scalars, null until known
  int currentPass = 0;
  bool streaming = false;
  // Values of the current piece.
  Piece current = {};
  DenseMap<Value, Value> cache;
  SmallVector<DenseMap<Value, Value>> kept; ///< caches of the row, by piece
};

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_ROWSEMITTER_H
