//===- TableRows.h - Rows of tables, whole or a rank's part -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_LAYERS_TABLEROWS_H
#define DYNA_CODEGEN_LAYERS_TABLEROWS_H

#include "codegen/layers/FunctionLowering.h"

#include <optional>

namespace mlir::dyna::layers {

/// Which rows of a table are here: all, or a rank's part.
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

  /// In the body: `here` is emitted with the row of the local table;
  /// `elsewhere` where the row is another rank's.
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
/// The rows of the whole table of which `table` is this rank's part.
inline int64_t wholeRows(Value table, ShardAttr shard) {
  return shard ? shard.getRows()
               : cast<RankedTensorType>(table.getType()).getDimSize(0);
}

/// Where the ids of the rows of dy are; without `ids` they are positions.
inline Value idsOf(FunctionLowering &function, Operation *op, Value ids) {
  return ids ? function.address(ids) : function.getPositions(op);
}

} // namespace mlir::dyna::layers

#endif // DYNA_CODEGEN_LAYERS_TABLEROWS_H
