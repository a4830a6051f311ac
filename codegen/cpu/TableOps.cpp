//===- TableOps.cpp - Rows of tables, by token or position -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Lowering.h"

#include "runtime/abi/Abi.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

namespace {
/// Which rows of a table are here: all, or a rank's part.
class TableRows {
public:
  TableRows(FunctionLowering &function, Slots &slots, ShardAttr shard,
            Value table) {
    if (!shard)
      return;
    int64_t room = cast<RankedTensorType>(table.getType()).getDimSize(0);
    RankPart part = function.partOf(shard, room);
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
} // namespace

/// Columns that one body adds up for all rows: four cache lines of f32.
static constexpr int64_t gradientColumns = 64;

LogicalResult mlir::dyna::cpu::lowerEmbedding(FunctionLowering &function,
                                              EmbeddingOp op) {
  CodeBuilder &code = function.getCode();
  ModuleLowering &module = function.getModule();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t width = type.getDimSize(1);
  Type element = type.getElementType();
  int64_t lanes = module.vectorWidth(element);
  Slots slots;
  unsigned idsSlot = slots.add(function.address(op.getIds()));
  unsigned tableSlot = slots.add(function.address(op.getTable()));
  unsigned resultSlot = slots.add(function.address(op.getResult()));
  TableRows tableRows(function, slots, op.getShardAttr(), op.getTable());
  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("embedding"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        Value ids = slots.load(code, args, idsSlot);
        Value table = slots.load(code, args, tableSlot);
        Value result = slots.load(code, args, resultSlot);
        auto rowOf = [&](Value base, Value row) {
          return code.offset(base, code.mul(row, code.i64(width)), element);
        };
        code.forLoop(begin, end, 1, [&](Value row) {
          Type i32 = code.i32Type();
          Value id = code.zeroExtend(code.load(code.offset(ids, row, i32), i32),
                                     code.i64Type());
          Value to = rowOf(result, row);
          tableRows.visit(
              code, slots, args, id,
              [&](Value id) {
                emitCopy(code, rowOf(table, id), to, width, element, lanes);
              },
              [&] { emitZeros(code, to, width, element, lanes); });
        });
      });
  function.launch({body, slots.store(code), slots.bytes(), minimumRows(width)},
                  function.getTokens(op.getIds()));
  return success();
}

namespace {
/// Adds the rows of dy to rows of a table, some columns of all rows at a time:
/// no two bodies touch the same element and rows come in order, so the sums are
/// the same for any number of threads.
struct TableGradient {
  int64_t width;
  Type dyElement, element;
  int64_t lanes;
  Value ids, dy, table;
  bool wideIds; ///< positions are i64, token ids i32
  const TableRows &tableRows;
  const Slots &slots;
  Value args;

  Value idOf(CodeBuilder &code, Value row) const {
    Type type = wideIds ? code.i64Type() : code.i32Type();
    Value id = code.load(code.offset(ids, row, type), type);
    return wideIds ? id : code.zeroExtend(id, code.i64Type());
  }

  /// Columns [first, first + count) of all rows.
  void emitColumns(CodeBuilder &code, Value rows, Value first,
                   int64_t count) const {
    code.forLoop(code.i64(0), rows, 1, [&](Value row) {
      tableRows.visit(
          code, slots, args, idOf(code, row),
          [&](Value id) { emitRow(code, row, id, first, count); }, [] {});
    });
  }

  /// Columns [first, first + count) of one row.
  void emitRow(CodeBuilder &code, Value row, Value id, Value first,
               int64_t count) const {
    auto start = [&](Value row) {
      return code.add(code.mul(row, code.i64(width)), first);
    };
    Value from = code.offset(dy, start(row), dyElement);
    Value to = code.offset(table, start(id), element);
    code.forColumns(count, lanes, 4, [&](ArrayRef<Piece> pieces) {
      for (const Piece &piece : pieces) {
        Value target = code.offset(to, piece.column, element);
        int64_t alignment = alignmentOf(piece, width, element);
        Value sum =
            code.add(code.loadElements(target, element, piece.width, alignment),
                     code.loadElements(
                         code.offset(from, piece.column, dyElement), dyElement,
                         piece.width, alignmentOf(piece, width, dyElement)));
        code.storeElements(sum, target, element, alignment);
      }
    });
  }
};
} // namespace

LogicalResult mlir::dyna::cpu::lowerTableGradient(FunctionLowering &function,
                                                  Operation *op, Value dy,
                                                  Value accumulator, Value ids,
                                                  ShardAttr shard) {
  if (function.placeOf(accumulator) != function.placeOf(op->getResult(0)))
    return op->emitOpError(
        "expects its accumulator in the place of its result");
  CodeBuilder &code = function.getCode();
  ModuleLowering &module = function.getModule();
  auto dyType = cast<RankedTensorType>(dy.getType());
  Type element = cast<RankedTensorType>(accumulator.getType()).getElementType();
  int64_t width = dyType.getDimSize(1);
  Value idPointer;
  if (ids)
    idPointer = function.address(ids);
  else
    idPointer =
        code.offset(code.loadField(function.getSegments(),
                                   offsetof(dyna_segments, row_position),
                                   code.pointerType()),
                    function.getFirstToken(op), code.i64Type());
  Slots slots;
  unsigned idsSlot = slots.add(idPointer);
  unsigned dySlot = slots.add(function.address(dy));
  unsigned tableSlot = slots.add(function.address(accumulator));
  unsigned rowsSlot = slots.add(function.getTokens(dy));
  TableRows tableRows(function, slots, shard, accumulator);
  int64_t whole = width / gradientColumns;
  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("table"), op->getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        TableGradient gradient{width,
                               dyType.getElementType(),
                               element,
                               module.vectorWidth(element),
                               slots.load(code, args, idsSlot),
                               slots.load(code, args, dySlot),
                               slots.load(code, args, tableSlot),
                               /*wideIds=*/!ids,
                               tableRows,
                               slots,
                               args};
        Value rows = slots.load(code, args, rowsSlot);
        Value wholeEnd = code.min(end, code.i64(whole));
        code.forLoop(begin, wholeEnd, 1, [&](Value block) {
          gradient.emitColumns(code, rows,
                               code.mul(block, code.i64(gradientColumns)),
                               gradientColumns);
        });
        if (width % gradientColumns == 0)
          return;
        code.ifThen(code.less(code.i64(whole), end), [&] {
          gradient.emitColumns(code, rows, code.i64(whole * gradientColumns),
                               width % gradientColumns);
        });
      });
  int64_t blocks = (width + gradientColumns - 1) / gradientColumns;
  function.launch({body, slots.store(code), slots.bytes(), /*minRows=*/1},
                  code.i64(blocks));
  return success();
}
