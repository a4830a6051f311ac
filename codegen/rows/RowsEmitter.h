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
  /// Number of the first feature, for dropouts that have a part of the features.
  llvm::MapVector<Operation *, unsigned> features;
  std::optional<unsigned> samples, positions; ///< arrays of the segments
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
  /// The two halves of each of `heads` heads turn by the same angles: emits
  /// `angles` (sine and cosine) for the pieces of a half, and `turn` for them in
  /// every head, of which it gets the first column and who tells it the angles.
  using Angles = std::pair<Value, Value>;
  virtual void
  turnHeads(int64_t half, int64_t heads, Type type,
            function_ref<Angles(const Piece &)> angles,
            function_ref<void(Value, const Piece &, function_ref<Angles()>)>
                turn) = 0;
  /// Whether a thread has the same pieces in every pass and keeps what it knows
  /// of them (`Piece::number`): then nothing is stored only to be read back,
  /// except what other threads turned.
  virtual bool keepsPieces() const { return false; }
  /// With keepsPieces: whether what a piece has read is among that, or read again
  /// in each pass.
  virtual bool keepsOperands() const { return true; }
  /// What the threads of a row have stored so far can be read by all of them.
  virtual void syncRow() {}
  /// With keepsPieces: adds to what sum over rows `number` has of a piece.
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

  /// What all rows share; `chunk` is the number of the row of partial sums that
  /// the body adds to, which it clears. Null: the target keeps sums itself.
  void begin(Value chunk);
  /// The rows [begin, end). `streams`: results bypass the cache.
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
  /// Whether a stash of the plan needs memory.
  bool isStashed(Value value) const {
    return !target.keepsPieces() || value.getDefiningOp<RotaryOp>();
  }
  /// Leaves of a piece's values, which later passes find, those to be read back.
  void dropOperands(DenseMap<Value, Value> &values) const;
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
  SmallVector<DenseMap<Value, Value>> kept; ///< caches of the row, by piece
};

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_ROWSEMITTER_H
