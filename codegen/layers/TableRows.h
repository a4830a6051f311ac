//===- TableRows.h - Finds the rows of a table that a rank has --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_LAYERS_TABLEROWS_H
#define DYNA_CODEGEN_LAYERS_TABLEROWS_H

#include "codegen/layers/FunctionLowering.h"

#include <optional>

namespace mlir::dyna::layers {

/// The rows of a table that are on this rank: all, or a part.
class TableRows {
public:
  TableRows(FunctionLowering &function, Slots &slots, ShardAttr shard,
            Value table) {
    if (!shard)
      return;
    int64_t room = cast<RankedTensorType>(table.getType()).getDimSize(0);
    RankRows part = function.partOf(shard, room);
    begin = slots.add(part.begin);
    size = slots.add(part.size);
  }

  /// Emits `here` with the row of the local table, inside the body. Emits
  /// `elsewhere` for a row of another rank.
  void visit(CodeBuilder &code, const Slots &slots, Value args, Value row,
             function_ref<void(Value)> here,
             function_ref<void()> elsewhere) const {
    if (!begin)
      return here(row);
    Value local = code.sub(row, slots.load(code, args, *begin));
    code.ifThenElse(
        code.lessUnsigned(local, slots.load(code, args, *size)),
        [&] { here(local); }, elsewhere);
  }

private:
  std::optional<unsigned> begin, size;
};
/// Returns the rows of the whole table of which `table` is this rank's part.
inline int64_t wholeRows(Value table, ShardAttr shard) {
  return shard ? shard.getRows()
               : cast<RankedTensorType>(table.getType()).getDimSize(0);
}

/// Returns the address of the ids of the rows of dy; without `ids`, of
/// positions.
inline Value idsOf(FunctionLowering &function, Operation *op, Value ids) {
  return ids ? function.address(ids) : function.getPositions(op);
}

} // namespace mlir::dyna::layers

#endif // DYNA_CODEGEN_LAYERS_TABLEROWS_H
