//===- TokenParts.h - Which tokens the rows of a value are -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In a function of a tensor degree the rows of a token-major value are all
// tokens of the micro-batch, or those of this rank where tokens are dealt to
// the ranks of a group. Types do not tell (`tensor<?x96xf32>` is both): the
// layouts of the function's arguments do, and from there on the ops.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_TOKENPARTS_H
#define DYNA_PASSES_MEMORY_TOKENPARTS_H

#include "dialects/dist/Dist.h"
#include "passes/memory/OpScratch.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::dyna {

class TokenParts {
public:
  /// Of a layer or a layer function as it is now.
  explicit TokenParts(FunctionOpInterface function);

  /// The group to whose ranks the tokens of a value are dealt; null if its rows
  /// are all tokens, or no tokens at all.
  dist::GroupAttr of(Value value) const { return groups.lookup(value); }
  /// The same for the rows that an op works on.
  dist::GroupAttr ofRows(Operation *op) const;

  /// The bytes of a value. Of `ranks` ranks each holds at most
  /// ceil(Tq / ranks) rows, which is never more than
  /// ceil(DYNA_ROW_ALIGNMENT / ranks) of every DYNA_ROW_ALIGNMENT of rounded
  /// Tq; so the bytes per token are those of a row times that fraction, rounded
  /// up to what keeps offsets aligned (an even number).
  LinearBytes bytesOf(Value value) const;

private:
  void visit(Operation *op);
  void set(Value value, dist::GroupAttr group);

  llvm::DenseMap<Value, dist::GroupAttr> groups;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_TOKENPARTS_H
