//===- TokenParts.h - Finds which tokens a rank has of a value --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In a function of a tensor degree, a token-major value has rows for all tokens
// of the micro-batch. If a group's ranks share the tokens, it has rows for this
// rank's alone. Types do not tell (`tensor<?x96xf32>` is both). The layouts of
// the function's arguments do, and from there on the ops.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_VALUE_TOKENPARTS_H
#define DYNA_PASSES_MEMORY_VALUE_TOKENPARTS_H

#include "dialects/dist/Dist.h"
#include "passes/memory/value/OpScratch.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::dyna {

class TokenParts {
public:
  /// Analyses a layer or a layer function in its present form.
  explicit TokenParts(FunctionOpInterface function);

  /// Returns the group whose ranks share the tokens of a value; null if its
  /// rows are all tokens, or no tokens at all.
  dist::GroupAttr of(Value value) const { return groups.lookup(value); }
  /// Returns the same for the rows that an op works on.
  dist::GroupAttr ofRows(Operation *op) const;

  /// Returns the bytes of a value. Each of `ranks` ranks has at most ceil(Tq /
  /// ranks) rows. This is at most ceil(DYNA_ROW_ALIGNMENT / ranks) of every
  /// DYNA_ROW_ALIGNMENT rows of rounded Tq. So the bytes per token are those of
  /// a row times that fraction, rounded up to an even number, which keeps
  /// offsets aligned.
  LinearBytes bytesOf(Value value) const;

private:
  void visit(Operation *op);
  void set(Value value, dist::GroupAttr group);

  llvm::DenseMap<Value, dist::GroupAttr> groups;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_VALUE_TOKENPARTS_H
