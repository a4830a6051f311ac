//===- TableOps.cpp - Lowers ops on tables of tokens or positions ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaLowering.h"
#include "codegen/layers/TableRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

static Value loadId(CodeBuilder &code, Value ids, Value row, Type type) {
  Value id = code.load(code.offset(ids, row, type), type);
  return type == code.i64Type() ? id : code.zeroExtend(id, code.i64Type());
}

LogicalResult CudaLowering::lowerEmbedding(FunctionLowering &function,
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
           // Treat every row as the first of its token: which rows share a row
           // of the table is only known for a batch.
           kernel.setRowBytes(2 * rowBytesOf(op.getResult()));
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
/// Rows of a run that a thread loads at once.
constexpr int64_t rowsAtOnce = 4;
/// Accesses of a thread to each of these rows.
constexpr int64_t piecesPerThread = 2;

/// Distribution of the columns of a table's row: `groups` blocks of `pieces`
/// pieces a thread, of `lanes` columns each.
struct TableColumns {
  int64_t width, lanes, pieces, groups;

  TableColumns(int64_t width, Type narrower) : width(width) {
    lanes = accessLanes(narrower, {width});
    int64_t share = (width + warpThreads * lanes - 1) / (warpThreads * lanes);
    pieces = std::min(share, piecesPerThread);
    groups = (share + pieces - 1) / pieces;
  }
  /// Returns the number of the run of this thread's warp, and finds the
  /// thread's pieces.
  Value find(Kernel &kernel, SmallVectorImpl<Piece> &own) const {
    CodeBuilder &code = kernel.code;
    Value lane = code.bitAnd(kernel.thread(), code.i64(warpThreads - 1));
    Value group =
        arith::RemUIOp::create(code, kernel.blockIndex(), code.i64(groups));
    Value block =
        arith::DivUIOp::create(code, kernel.blockIndex(), code.i64(groups));
    Value column = code.mul(
        code.add(code.mul(group, code.i64(pieces * warpThreads)), lane),
        code.i64(lanes));
    for (int64_t i = 0; i < pieces; ++i) {
      Value here = code.add(column, code.i64(i * lanes * warpThreads));
      own.push_back({code.min(here, code.i64(width - lanes)), lanes, lanes, i,
                     code.less(here, code.i64(width))});
    }
    return code.add(code.mul(block, code.i64(rowsPerBlock)),
                    code.shiftRight(kernel.thread(), 5));
  }
};

/// Slots of the kernel's arguments, beside the table's rows.
struct TableSlots {
  unsigned ids, dy, table, runRows, runStarts, runs;
  std::optional<unsigned> first, end; ///< of a part of the micro-batch
};

/// Adds the rows of dy to rows of a table. A warp has some columns of a run: of
/// all rows with one id. It adds them up in order and adds the sum to the
/// table, rounded once. No two warps touch the same element, and results are
/// reproducible.
struct TableGradient {
  CodeBuilder &code;
  Value ids, dy, table, runRows, runStarts;
  /// The rows of the micro-batch that dy has, where those are a part; else null.
  Value firstRow, endRow;
  Type idType, dyElement, element;
  int64_t width, lanes;

  TableGradient(Kernel &kernel, const TableSlots &given, Type idType,
                Type dyElement, Type element, const TableColumns &columns)
      : code(kernel.code), ids(kernel.slot(given.ids)),
        dy(kernel.slot(given.dy)), table(kernel.slot(given.table)),
        runRows(kernel.slot(given.runRows)),
        runStarts(kernel.slot(given.runStarts)),
        firstRow(given.first ? kernel.slot(*given.first) : Value()),
        endRow(given.end ? kernel.slot(*given.end) : Value()), idType(idType),
        dyElement(dyElement), element(element), width(columns.width),
        lanes(columns.lanes) {}

  Value loadIndex(Value indices, Value place) {
    Type i32 = code.i32Type();
    return code.zeroExtend(code.load(code.offset(indices, place, i32), i32),
                           code.i64Type());
  }
  Value rowOf(Value base, Value row, Type type) {
    return code.offset(base, code.mul(row, code.i64(width)), type);
  }
  /// Returns the row of dy, and of the ids.
  Value localRow(Value row) { return firstRow ? code.sub(row, firstRow) : row; }
  Value load(Value row, const Piece &piece, Type type) {
    return code.loadElements(code.offset(row, piece.column, type), type,
                             piece.width, alignmentOf(piece, width, type));
  }

  /// Returns the first place of [begin, end) whose row is not before `row`.
  Value findRow(Value begin, Value end, Value row) {
    auto search = scf::WhileOp::create(
        code, TypeRange{code.i64Type(), code.i64Type()}, ValueRange{begin, end},
        [&](OpBuilder &, Location, ValueRange now) {
          scf::ConditionOp::create(code, code.less(now[0], now[1]), now);
        },
        [&](OpBuilder &, Location, ValueRange now) {
          Value middle = code.shiftRight(code.add(now[0], now[1]), 1);
          Value isBefore = code.less(loadIndex(runRows, middle), row);
          Value low =
              code.select(isBefore, code.add(middle, code.i64(1)), now[0]);
          Value high = code.select(isBefore, now[1], middle);
          scf::YieldOp::create(code, ValueRange{low, high});
        });
    return search.getResult(0);
  }

  /// Returns the sums over the rows at [begin, end), in order.
  SmallVector<Value> sumRows(Value begin, Value end, ArrayRef<Piece> own) {
    Type sumType = getAccumulatorType(element);
    SmallVector<Value> zeros(
        own.size(), code.constant(VectorType::get(lanes, sumType), 0.0));
    Value last = code.sub(end, code.i64(1));
    return code.forLoop(
        begin, end, rowsAtOnce, zeros, [&](Value first, ValueRange carried) {
          SmallVector<Value> sums(carried), isThere;
          SmallVector<SmallVector<Value>> terms;
          for (int64_t i = 0; i < rowsAtOnce; ++i) {
            Value place = code.add(first, code.i64(i));
            isThere.push_back(code.less(place, end));
            // After the end of the run, load its last row again.
            Value row = loadIndex(runRows, code.min(place, last));
            Value from = rowOf(dy, localRow(row), dyElement);
            SmallVector<Value> &ofRow = terms.emplace_back();
            for (const Piece &piece : own)
              ofRow.push_back(load(from, piece, dyElement));
          }
          for (auto [counts, ofRow] : llvm::zip(isThere, terms))
            for (auto [sum, term] : llvm::zip(sums, ofRow))
              sum = code.select(counts, code.add(sum, term), sum);
          return sums;
        });
  }

  void emit(Value run, ArrayRef<Piece> own,
            function_ref<void(Value, function_ref<void(Value)>)> visit) {
    Value begin = loadIndex(runStarts, run);
    Value end = loadIndex(runStarts, code.add(run, code.i64(1)));
    auto addRun = [&] {
      Value row = localRow(loadIndex(runRows, begin));
      visit(loadId(code, ids, row, idType), [&](Value tableRow) {
        SmallVector<Value> sums = sumRows(begin, end, own);
        Value to = rowOf(table, tableRow, element);
        for (auto [piece, sum] : llvm::zip(own, sums))
          code.ifActive(piece, [&, piece = piece, sum = sum] {
            Value total = code.add(load(to, piece, element), sum);
            code.storeElements(total, code.offset(to, piece.column, element),
                               element, alignmentOf(piece, width, element));
          });
      });
    };
    if (!firstRow)
      return addRun();
    begin = findRow(begin, end, firstRow);
    end = findRow(begin, end, endRow);
    code.ifThen(code.less(begin, end), addRun);
  }
};
} // namespace

/// Runs are those of the micro-batch's tokens: others have no table.
static LogicalResult checkIdsAreTokens(FunctionLowering &function,
                                       Operation *op, Value ids) {
  if (!ids || function.placeOf(ids).getMemory() == Memory::SavedInput)
    return success();
  return op->emitOpError("expects the ids of the micro-batch's tokens, which "
                         "are the input that the layer keeps, but got ids in ")
         << function.placeOf(ids);
}

LogicalResult CudaLowering::lowerTableGradient(FunctionLowering &function,
                                               Operation *op, Value dy,
                                               Value accumulator, Value ids,
                                               ShardAttr shard) {
  if (function.placeOf(accumulator) != function.placeOf(op->getResult(0)))
    return op->emitOpError(
        "expects its accumulator in the place of its result");
  if (failed(checkIdsAreTokens(function, op, ids)))
    return failure();
  CodeBuilder &host = function.getCode();
  auto dyType = cast<RankedTensorType>(dy.getType());
  auto tableType = cast<RankedTensorType>(accumulator.getType());
  Type element = tableType.getElementType();
  Type dyElement = dyType.getElementType();
  Value rows = function.getTokens(dy);
  if (ids)
    function.checkIds(function.address(ids), rows,
                      wholeRows(accumulator, shard));
  else
    function.checkPositions(op, rows, tableType.getDimSize(0));
  RowRuns runs = function.getRuns(ids ? offsetof(dyna_segments, token_runs)
                                      : offsetof(dyna_segments, position_runs));
  Slots slots;
  TableSlots given;
  given.ids = slots.add(idsOf(function, op, ids));
  given.dy = slots.add(function.address(dy));
  given.table = slots.add(function.address(accumulator));
  given.runRows = slots.add(runs.rows);
  given.runStarts = slots.add(runs.starts);
  given.runs = slots.add(runs.count);
  if (function.hasPart(op)) {
    Value first = function.getFirstToken(op);
    given.first = slots.add(first);
    given.end = slots.add(host.add(first, rows));
  }
  TableRows tableRows(function, slots, shard, accumulator);
  const TableColumns columns(dyType.getDimSize(1),
                             sizeOf(dyElement) < sizeOf(element) ? dyElement
                                                                 : element);
  Value blocks = host.ceilDiv(runs.count, host.i64(rowsPerBlock));
  launch(function, "table", slots, rowsPerBlock * warpThreads,
         host.mul(blocks, host.i64(columns.groups)), [&](Kernel &kernel) {
           CodeBuilder &code = kernel.code;
           // Leave out rows of the table: batches differ in runs.
           kernel.setRowBytes(rowBytesOf(dy));
           SmallVector<Piece> own;
           Value run = columns.find(kernel, own);
           TableGradient gradient(kernel, given,
                                  ids ? code.i32Type() : code.i64Type(),
                                  dyElement, element, columns);
           code.ifThen(code.less(run, kernel.slot(given.runs)), [&] {
             gradient.emit(run, own,
                           [&](Value id, function_ref<void(Value)> here) {
                             tableRows.visit(code, slots, kernel.arguments(),
                                             id, here, [] {});
                           });
           });
         });
  return success();
}
