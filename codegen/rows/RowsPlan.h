//===- RowsPlan.h - Assigns the values of a sweep to passes -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A `dyna.rows` runs row by row. Without a norm a row is one *pass* over its
// columns. A norm needs sums over the whole row first, so it splits the row
// into passes; the row stays in the first-level cache between them. For
//
//     %h = add %x, %p;  %n = layer_norm %h, %g, %b;  yield %h, %n
//
//     pass 0   h = x + p, stored; sum of h
//     pass 1   h read back;       sum of (h - mean)^2
//     pass 2   h read back;       n computed, stored
//
// Every value is computed in exactly one pass, its *level*. A later pass reads
// a value back from its place if it is yielded, else from a *stash* on the
// stack. The memory phase relies on two consequences. An operand that is used
// once is read once. A yielded value is stored as soon as it is known.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_ROWS_ROWSPLAN_H
#define DYNA_CODEGEN_ROWS_ROWSPLAN_H

#include "dialects/dyna/Dyna.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::dyna::rows {

/// A number per row, computed from a sum over its columns.
struct Statistic {
  enum Kind {
    Mean,        ///< mean of x
    Deviation,   ///< 1 / sqrt(mean((x - Mean)^2) + epsilon)
    RootMean,    ///< 1 / sqrt(mean(x^2) + epsilon)
    Gradient,    ///< mean of weight * dy
    CenteredDot, ///< mean of weight * dy * (x - Mean)
    Dot,         ///< mean of weight * dy * x
  };
  Kind kind;
  Value x = {};         ///< null for Gradient
  double epsilon = 0.0; ///< Deviation, RootMean
  Value weight = {};    ///< the last three
  Value dy = {};        ///< as `weight`
  int pass = 0;         ///< the pass that adds up

  bool operator==(const Statistic &other) const {
    return kind == other.kind && x == other.x && epsilon == other.epsilon &&
           weight == other.weight && dy == other.dy;
  }
};

/// A result that sums over rows: `result` of `op`, known in pass `pass`.
struct Accumulation {
  OpResult result;
  Value accumulator;
  int pass;
};

struct RowsPlan {
  int64_t width;    ///< of all rows
  Type accumulator; ///< the type that values have in registers
  int passes = 1;
  SmallVector<Statistic> statistics;
  SmallVector<Accumulation> accumulations;
  /// Yielded activations, each with the numbers of the results.
  llvm::MapVector<Value, SmallVector<unsigned>> yields;
  /// Row-wide values made before the first pass.
  SmallVector<RotaryOp> rotaries;
  /// Values of the body that are read back. `stashes` are those that are kept
  /// on the stack, because they are not yielded.
  llvm::DenseSet<Value> rereads;
  llvm::SetVector<Value> stashes;
  /// The pass of each activation made in the body.
  llvm::DenseMap<Value, int> levels;

  /// Returns the pass of a value; 0 for values from outside.
  int levelOf(Value value) const { return levels.lookup(value); }
  const Statistic *find(const Statistic &key) const {
    auto *found = llvm::find(statistics, key);
    return found == statistics.end() ? nullptr : found;
  }
};

/// Plans the sweep, or reports why it cannot be compiled.
FailureOr<RowsPlan> planRows(RowsOp op);

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_ROWSPLAN_H
