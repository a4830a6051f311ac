//===- TableOps.cpp - Lowers ops on tables of tokens or positions ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuLowering.h"
#include "codegen/layers/TableRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

/// Columns that one body adds up for all rows: four cache lines of f32.
static constexpr int64_t gradientColumns = 64;

LogicalResult CpuLowering::lowerEmbedding(FunctionLowering &function,
                                          EmbeddingOp op) {
  CodeBuilder &code = function.getCode();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t width = type.getDimSize(1);
  Type element = type.getElementType();
  int64_t lanes = vectorWidth(element);
  function.checkIds(function.address(op.getIds()),
                    function.getTokens(op.getIds()),
                    wholeRows(op.getTable(), op.getShardAttr()));
  Slots slots;
  unsigned idsSlot = slots.add(function.address(op.getIds()));
  unsigned tableSlot = slots.add(function.address(op.getTable()));
  unsigned resultSlot = slots.add(function.address(op.getResult()));
  TableRows tableRows(function, slots, op.getShardAttr(), op.getTable());
  LLVM::LLVMFuncOp body = createBody(
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
  launch(function, {body, slots.store(code), slots.bytes(), minimumRows(width)},
         function.getTokens(op.getIds()));
  return success();
}

namespace {
/// The rows of dy that belong to one row of a table, as lists: `first` has the
/// first row of dy by row of the table, `next` the one after each row of dy;
/// -1 ends a list. Both are 32 bits wide.
struct TokenLists {
  Value first, next;

  Value load(CodeBuilder &code, Value list, Value index) const {
    Value bits =
        code.load(code.offset(list, index, code.i32Type()), code.i32Type());
    return arith::ExtSIOp::create(code, code.i64Type(), bits);
  }
  void store(CodeBuilder &code, Value value, Value list, Value index) const {
    Value bits = arith::TruncIOp::create(code, code.i32Type(), value);
    code.store(bits, code.offset(list, index, code.i32Type()));
  }
};

/// Adds the rows of dy to rows of a table, some columns of all rows at a time.
/// No two bodies touch the same element, and rows come in order. So the sums
/// are equal for any number of threads.
struct TableGradient {
  int64_t width;
  Type dyElement, element;
  int64_t lanes;
  Value ids, dy, table;
  bool wideIds; ///< positions are i64, token ids i32
  const TableRows &tableRows;
  const Slots &slots;
  Value args;
  /// Set if the table is narrower than the sums, whose rows are then added
  /// once.
  std::optional<TokenLists> lists;

  Value idOf(CodeBuilder &code, Value row) const {
    Type type = wideIds ? code.i64Type() : code.i32Type();
    Value id = code.load(code.offset(ids, row, type), type);
    return wideIds ? id : code.zeroExtend(id, code.i64Type());
  }

  /// Makes the lists; `size` rows of the table may occur.
  void emitLists(CodeBuilder &code, Value rows, Value size) const {
    Value end = code.i64(-1), one = code.i64(1);
    code.forLoop(code.i64(0), size, 1,
                 [&](Value id) { lists->store(code, end, lists->first, id); });
    // Go backwards, so that the lists ascend.
    code.forLoop(code.i64(0), rows, 1, [&](Value step) {
      Value row = code.sub(code.sub(rows, one), step);
      tableRows.visit(
          code, slots, args, idOf(code, row),
          [&](Value id) {
            Value follower = lists->load(code, lists->first, id);
            lists->store(code, follower, lists->next, row);
            lists->store(code, row, lists->first, id);
          },
          [] {});
    });
  }

  /// Columns [first, first + count) of all rows.
  void emitColumns(CodeBuilder &code, Value rows, Value first,
                   int64_t count) const {
    code.forLoop(code.i64(0), rows, 1, [&](Value row) {
      tableRows.visit(
          code, slots, args, idOf(code, row),
          [&](Value id) {
            if (!lists)
              return emitRow(code, row, id, first, count);
            Value leads = code.equal(lists->load(code, lists->first, id), row);
            code.ifThen(leads, [&] { emitList(code, row, id, first, count); });
          },
          [] {});
    });
  }

  /// Columns [first, first + count) of the row of the table whose list starts
  /// at `row`.
  void emitList(CodeBuilder &code, Value row, Value id, Value first,
                int64_t count) const {
    auto start = [&](Value row) {
      return code.add(code.mul(row, code.i64(width)), first);
    };
    Value to = code.offset(table, start(id), element);
    code.forColumns(count, lanes, 4, [&](ArrayRef<Piece> pieces) {
      Type sumType = getAccumulatorType(element);
      SmallVector<Value> state = {row};
      for (const Piece &piece : pieces)
        state.push_back(
            code.constant(VectorType::get(piece.width, sumType), 0.0));
      auto loop = scf::WhileOp::create(
          code, ValueRange(state).getTypes(), state,
          [&](OpBuilder &, Location, ValueRange now) {
            Value more = code.less(code.i64(-1), now[0]);
            scf::ConditionOp::create(code, more, now);
          },
          [&](OpBuilder &, Location, ValueRange now) {
            Value from = code.offset(dy, start(now[0]), dyElement);
            SmallVector<Value> next = {lists->load(code, lists->next, now[0])};
            for (auto [piece, sum] : llvm::zip(pieces, now.drop_front()))
              next.push_back(code.add(
                  sum,
                  code.loadElements(code.offset(from, piece.column, dyElement),
                                    dyElement, piece.width,
                                    alignmentOf(piece, width, dyElement))));
            scf::YieldOp::create(code, next);
          });
      for (auto [piece, sum] :
           llvm::zip(pieces, loop.getResults().drop_front())) {
        Value target = code.offset(to, piece.column, element);
        int64_t alignment = alignmentOf(piece, width, element);
        Value old = code.loadElements(target, element, piece.width, alignment);
        code.storeElements(code.add(old, sum), target, element, alignment);
      }
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

/// Launches what each column block needs first where rows of the table are
/// added to once, as one body.
static void
launchLists(CpuLowering &module, FunctionLowering &function, Operation *op,
            const Slots &slots, unsigned rowsSlot, int64_t size,
            function_ref<TableGradient(CodeBuilder &, Value)> read) {
  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("lists"), op->getLoc(),
      [&](CodeBuilder &code, Value args, Value, Value, Value) {
        read(code, args)
            .emitLists(code, slots.load(code, args, rowsSlot), code.i64(size));
      });
  CodeBuilder &code = function.getCode();
  module.launch(function,
                {body, slots.store(code), slots.bytes(), /*minRows=*/1},
                code.i64(1));
}

/// Launches the additions, each body for some blocks of columns.
static void
launchColumns(CpuLowering &module, FunctionLowering &function, Operation *op,
              const Slots &slots, unsigned rowsSlot, int64_t width,
              function_ref<TableGradient(CodeBuilder &, Value)> read) {
  int64_t whole = width / gradientColumns;
  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("table"), op->getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        TableGradient gradient = read(code, args);
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
  CodeBuilder &code = function.getCode();
  module.launch(function,
                {body, slots.store(code), slots.bytes(), /*minRows=*/1},
                code.i64(blocks));
}

LogicalResult CpuLowering::lowerTableGradient(FunctionLowering &function,
                                              Operation *op, Value dy,
                                              Value accumulator, Value ids,
                                              ShardAttr shard) {
  if (function.placeOf(accumulator) != function.placeOf(op->getResult(0)))
    return op->emitOpError(
        "expects its accumulator in the place of its result");
  auto dyType = cast<RankedTensorType>(dy.getType());
  auto tableType = cast<RankedTensorType>(accumulator.getType());
  Type element = tableType.getElementType();
  int64_t width = dyType.getDimSize(1), size = tableType.getDimSize(0);
  bool isNarrow = element != getAccumulatorType(element);
  if (ids)
    function.checkIds(function.address(ids), function.getTokens(dy),
                      wholeRows(accumulator, shard));
  else
    function.checkPositions(op, function.getTokens(dy), size);
  Slots slots;
  unsigned idsSlot = slots.add(idsOf(function, op, ids));
  unsigned dySlot = slots.add(function.address(dy));
  unsigned tableSlot = slots.add(function.address(accumulator));
  unsigned rowsSlot = slots.add(function.getTokens(dy));
  unsigned listsSlot = 0;
  if (isNarrow) {
    FailureOr<PlaceAttr> scratch = function.scratchOf(op);
    if (failed(scratch))
      return failure();
    listsSlot = slots.add(function.address(*scratch));
  }
  TableRows tableRows(function, slots, shard, accumulator);
  auto read = [&](CodeBuilder &code, Value args) {
    std::optional<TokenLists> lists;
    if (isNarrow) {
      Value first = slots.load(code, args, listsSlot);
      lists = {first, code.offsetBytes(first, dyna_align_block(4 * size))};
    }
    return TableGradient{width,
                         dyType.getElementType(),
                         element,
                         vectorWidth(getAccumulatorType(element)),
                         slots.load(code, args, idsSlot),
                         slots.load(code, args, dySlot),
                         slots.load(code, args, tableSlot),
                         /*wideIds=*/!ids,
                         tableRows,
                         slots,
                         args,
                         lists};
  };
  if (isNarrow)
    launchLists(*this, function, op, slots, rowsSlot, size, read);

  launchColumns(*this, function, op, slots, rowsSlot, width, read);
  return success();
}
