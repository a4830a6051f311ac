//===- TableOps.cpp - Rows of tables, by token or position ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Lowering.h"
#include "codegen/layers/TableRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

static Value loadId(CodeBuilder &code, Value ids, Value row, Type type) {
  Value id = code.load(code.offset(ids, row, type), type);
  return type == code.i64Type() ? id : code.zeroExtend(id, code.i64Type());
}

LogicalResult CudaModule::lowerEmbedding(FunctionLowering &function,
                                         EmbeddingOp op) {
  CodeBuilder &host = function.getCode();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t width = type.getDimSize(1);
  Type element = type.getElementType();
  Value tokens = function.getTokens(op.getIds());
  function.checkIds(function.address(op.getIds()), tokens,
                    wholeRows(op.getTable(), op.getShardAttr()));
  Slots slots;
  unsigned idsSlot = slots.add(function.address(op.getIds()));
  unsigned tableSlot = slots.add(function.address(op.getTable()));
  unsigned resultSlot = slots.add(function.address(op.getResult()));
  unsigned rowsSlot = slots.add(tokens);
  TableRows tableRows(function, slots, op.getShardAttr(), op.getTable());
  int64_t lanes = accessLanes(element, {width});
  launch(function, "embedding", slots, rowsPerBlock * warpThreads,
         host.ceilDiv(tokens, host.i64(rowsPerBlock)), [&](Kernel &kernel) {
           CodeBuilder &code = kernel.code;
           kernel.forRow(kernel.slot(rowsSlot), [&](Value row) {
             auto rowOf = [&](unsigned slot, Value row) {
               return code.offset(kernel.slot(slot),
                                  code.mul(row, code.i64(width)), element);
             };
             Value id = loadId(code, kernel.slot(idsSlot), row, code.i32Type());
             Value to = rowOf(resultSlot, row);
             tableRows.visit(
                 code, slots, kernel.arguments(), id,
                 [&](Value id) {
                   kernel.copyRow(rowOf(tableSlot, id), to, width, element,
                                  lanes);
                 },
                 [&] { kernel.copyRow(Value(), to, width, element, lanes); });
           });
         });
  return success();
}

namespace {
/// Adds the rows of dy to rows of a table. A warp has some columns of a row of
/// dy. If it is the first row of its id, the warp adds up all rows of that id,
/// in order, and adds the sum to the table, rounded once: no two warps touch the
/// same element, and results are the same each time. Who is first, and who
/// follows, is found by looking at the ids of all rows, a lane at one each:
/// those are few bytes, and the same for all warps.
struct TableGradient {
  Kernel &kernel;
  CodeBuilder &code;
  Value ids, dy, table, rows;
  Type idType, dyElement, element;
  int64_t width, lanes, pieces;
  Value lane;

  Value laneBits(Value isSame) {
    // The mask of the lanes for which it holds, known to all.
    Value bit = arith::ShLIOp::create(code, code.i32(1),
                                      code.truncate(lane, code.i32Type()));
    Value mask = code.select(isSame, bit, code.i32(0));
    for (int64_t other = warpThreads / 2; other >= 1; other /= 2)
      mask = code.bitOr(mask, kernel.shuffleXor(mask, other));
    return mask;
  }

  /// Of the 32 rows from `first` on, those with this id.
  Value sameIds(Value id, Value first) {
    Value row = code.add(first, lane);
    Value last = code.sub(rows, code.i64(1));
    Value other = loadId(code, ids, code.min(row, last), idType);
    return laneBits(code.bitAnd(code.less(row, rows), code.equal(other, id)));
  }

  /// Whether no row before has this id.
  Value isFirst(Value row, Value id) {
    Type i64 = code.i64Type(), i32 = code.i32Type();
    // Stops at the first 32 rows that have one.
    auto search = scf::WhileOp::create(
        code, TypeRange{i64, i32}, ValueRange{code.i64(0), code.i32(0)},
        [&](OpBuilder &, Location, ValueRange now) {
          Value goesOn = code.bitAnd(code.less(now[0], row),
                                     code.equal(now[1], code.i32(0)));
          scf::ConditionOp::create(code, goesOn, now);
        },
        [&](OpBuilder &, Location, ValueRange now) {
          Value mask = sameIds(id, now[0]);
          // Of the last 32 only those before the row.
          Value left = code.min(code.sub(row, now[0]), code.i64(31));
          Value before = arith::ShLIOp::create(code, code.i32(-1),
                                               code.truncate(left, i32));
          before = code.bitXor(before, code.i32(-1));
          Value isWhole = code.less(code.i64(31), code.sub(row, now[0]));
          mask = code.select(isWhole, mask, code.bitAnd(mask, before));
          scf::YieldOp::create(
              code, ValueRange{code.add(now[0], code.i64(warpThreads)), mask});
        });
    return code.equal(search.getResult(1), code.i32(0));
  }

  /// The sums of this warp's columns over the rows from `row` on.
  SmallVector<Value> sumRows(Value row, Value id, ArrayRef<Piece> own) {
    Type sumType = getAccumulatorType(element);
    SmallVector<Value> zeros(
        own.size(), code.constant(VectorType::get(lanes, sumType), 0.0));
    Value start = code.bitAnd(row, code.i64(-warpThreads));
    return code.forLoop(
        start, rows, warpThreads, zeros, [&](Value first, ValueRange carried) {
          Value mask = sameIds(id, first);
          SmallVector<Value> state = {mask};
          llvm::append_range(state, carried);
          auto loop = scf::WhileOp::create(
              code, ValueRange(state).getTypes(), state,
              [&](OpBuilder &, Location, ValueRange now) {
                Value isEmpty = code.equal(now[0], code.i32(0));
                Value more = code.select(
                    isEmpty, code.constant(code.getI1Type(), int64_t(0)),
                    code.constant(code.getI1Type(), int64_t(1)));
                scf::ConditionOp::create(code, more, now);
              },
              [&](OpBuilder &, Location, ValueRange now) {
                Value next = math::CountTrailingZerosOp::create(code, now[0]);
                Value from = rowOf(
                    dy, code.add(first, code.zeroExtend(next, code.i64Type())),
                    dyElement);
                Value rest = code.bitAnd(now[0], code.sub(now[0], code.i32(1)));
                SmallVector<Value> result = {rest};
                for (auto [piece, sum] : llvm::zip(own, now.drop_front()))
                  result.push_back(code.add(sum, load(from, piece, dyElement)));
                scf::YieldOp::create(code, result);
              });
          return llvm::to_vector_of<Value>(loop.getResults().drop_front());
        });
  }

  Value rowOf(Value base, Value row, Type type) {
    return code.offset(base, code.mul(row, code.i64(width)), type);
  }
  Value load(Value row, const Piece &piece, Type type) {
    return code.loadElements(code.offset(row, piece.column, type), type,
                             piece.width, alignmentOf(piece, width, type));
  }

  void emit(Value row, Value firstColumn,
            function_ref<void(Value, function_ref<void(Value)>)> visit) {
    SmallVector<Piece> own;
    for (int64_t i = 0; i < pieces; ++i) {
      Value column = code.add(firstColumn, code.i64(i * lanes * warpThreads));
      Piece piece = {code.min(column, code.i64(width - lanes)), lanes, lanes, i,
                     code.less(column, code.i64(width))};
      own.push_back(piece);
    }
    Value id = loadId(code, ids, row, idType);
    visit(id, [&](Value tableRow) {
      code.ifThen(isFirst(row, id), [&] {
        SmallVector<Value> sums = sumRows(row, id, own);
        Value to = rowOf(table, tableRow, element);
        for (auto [piece, sum] : llvm::zip(own, sums))
          code.ifActive(piece, [&, piece = piece, sum = sum] {
            Value total = code.add(load(to, piece, element), sum);
            code.storeElements(total, code.offset(to, piece.column, element),
                               element, alignmentOf(piece, width, element));
          });
      });
    });
  }
};
} // namespace

LogicalResult CudaModule::lowerTableGradient(FunctionLowering &function,
                                             Operation *op, Value dy,
                                             Value accumulator, Value ids,
                                             ShardAttr shard) {
  if (function.placeOf(accumulator) != function.placeOf(op->getResult(0)))
    return op->emitOpError(
        "expects its accumulator in the place of its result");
  CodeBuilder &host = function.getCode();
  auto dyType = cast<RankedTensorType>(dy.getType());
  auto tableType = cast<RankedTensorType>(accumulator.getType());
  Type element = tableType.getElementType();
  Type dyElement = dyType.getElementType();
  int64_t width = dyType.getDimSize(1), size = tableType.getDimSize(0);
  Value rows = function.getTokens(dy);
  if (ids)
    function.checkIds(function.address(ids), rows,
                      wholeRows(accumulator, shard));
  else
    function.checkPositions(op, rows, size);
  Slots slots;
  unsigned idsSlot = slots.add(idsOf(function, op, ids));
  unsigned dySlot = slots.add(function.address(dy));
  unsigned tableSlot = slots.add(function.address(accumulator));
  unsigned rowsSlot = slots.add(rows);
  TableRows tableRows(function, slots, shard, accumulator);
  int64_t lanes = accessLanes(
      sizeOf(dyElement) < sizeOf(element) ? dyElement : element, {width});
  int64_t share = (width + warpThreads * lanes - 1) / (warpThreads * lanes);
  int64_t pieces = std::min<int64_t>(share, 32 / lanes);
  int64_t groups = (share + pieces - 1) / pieces;
  launch(function, "table", slots, rowsPerBlock * warpThreads,
         host.mul(host.ceilDiv(rows, host.i64(rowsPerBlock)), host.i64(groups)),
         [&](Kernel &kernel) {
           CodeBuilder &code = kernel.code;
           Value lane = code.bitAnd(kernel.thread(), code.i64(warpThreads - 1));
           Value group = arith::RemUIOp::create(code, kernel.blockIndex(),
                                                code.i64(groups));
           Value block = arith::DivUIOp::create(code, kernel.blockIndex(),
                                                code.i64(groups));
           Value column = code.mul(
               code.add(code.mul(group, code.i64(pieces * warpThreads)), lane),
               code.i64(lanes));
           Value row = code.add(code.mul(block, code.i64(rowsPerBlock)),
                                code.shiftRight(kernel.thread(), 5));
           Type idType = ids ? code.i32Type() : code.i64Type();
           TableGradient gradient = {kernel,
                                     code,
                                     kernel.slot(idsSlot),
                                     kernel.slot(dySlot),
                                     kernel.slot(tableSlot),
                                     kernel.slot(rowsSlot),
                                     idType,
                                     dyElement,
                                     element,
                                     width,
                                     lanes,
                                     pieces,
                                     lane};
           code.ifThen(code.less(row, gradient.rows), [&] {
             gradient.emit(row, column,
                           [&](Value id, function_ref<void(Value)> here) {
                             tableRows.visit(code, slots, kernel.arguments(),
                                             id, here, [] {});
                           });
           });
         });
  return success();
}
