//===- RowsEmitter.cpp - Emits the code of a sweep over rows --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/rows/RowsEmitter.h"

#include "codegen/rows/VectorMath.h"
#include "dialects/dyna/facts/RopeScaling.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::rows;

//===----------------------------------------------------------------------===//
// Values of a piece
//===----------------------------------------------------------------------===//

std::pair<Value, Type> RowsEmitter::storageOf(Value value) {
  auto *yielded = plan.yields.find(value);
  if (yielded != plan.yields.end())
    return {resultRows.lookup(yielded->second.front()), elementOf(value)};
  return {stashPointers.lookup(value), plan.accumulator};
}

Value RowsEmitter::get(Value activation) {
  if (Value known = cache.lookup(activation))
    return known;
  Value value;
  Operation *op = activation.getDefiningOp();
  if (!plan.levels.contains(activation)) {
    value = loadPiece(operandRows.lookup(activation), elementOf(activation));
    if (currentPass == 0)
      target.prefetch(operandRows.lookup(activation), current,
                      elementOf(activation));
  } else if (isa<RotaryOp>(op) || (!target.keepsPieces() &&
                                   plan.levelOf(activation) < currentPass)) {
    auto [pointer, element] = storageOf(activation);
    value = loadPiece(pointer, element);
  } else {
    value = emitRowOp(*this, op);
  }
  cache[activation] = value;
  return value;
}

Value RowsEmitter::getVector(Value parameter) {
  Value &value = cache[parameter];
  if (!value)
    value = loadPiece(operandPointers.lookup(parameter), elementOf(parameter));
  return value;
}

Value RowsEmitter::getTableRow(PositionsOp op) {
  return loadPiece(tableRows.lookup(op.getResult()), elementOf(op.getTable()));
}

Value RowsEmitter::get(const Statistic &statistic) {
  auto index = plan.find(statistic) - plan.statistics.begin();
  return builder.splat(statisticValues[index], current.width);
}

//===----------------------------------------------------------------------===//
// Rows and passes
//===----------------------------------------------------------------------===//

/// Loads every pointer of the body once and takes its stack.
void RowsEmitter::loadPointers() {
  for (auto [value, index] : arguments.operands)
    operandPointers[value] = target.argument(index);
  for (auto [result, index] : arguments.results)
    resultPointers[result] = target.argument(index);
  int64_t rowBytes = plan.width * sizeOf(plan.accumulator);
  for (Value value : plan.stashes)
    if (isStashed(value))
      stashPointers[value] = target.takeMemory(rowBytes);
}

/// Points at the row of every tensor and computes what the whole row shares.
void RowsEmitter::startRow(Value row) {
  auto rowOf = [&](Value base, Value index, Type element, int64_t stride) {
    Value start = builder.mul(index, builder.i64(stride));
    return builder.offset(base, start, element);
  };
  for (auto [value, index] : arguments.operands)
    if (isActivation(value.getType()))
      operandRows[value] = rowOf(operandPointers[value], row, elementOf(value),
                                 arguments.strides.lookup(value));
  for (auto [result, index] : arguments.results) {
    Value value = rows.getResult(result);
    resultRows[result] = rowOf(resultPointers[result], row, elementOf(value),
                               arguments.strides.lookup(value));
  }
  auto entry = [&](unsigned index) {
    Type i64 = builder.i64Type();
    return builder.load(builder.offset(target.argument(index), row, i64), i64);
  };
  Value sample = arguments.samples ? entry(*arguments.samples) : Value();
  Value position = arguments.positions ? entry(*arguments.positions) : Value();
  for (Operation &op : rows.getBody().front())
    if (auto positions = dyn_cast<PositionsOp>(op))
      tableRows[positions.getResult()] =
          rowOf(operandPointers[positions.getTable()], position,
                elementOf(positions.getTable()), plan.width);
  for (auto [op, index] : arguments.keys)
    randomKeys[op] =
        emitRandomRowKey(builder, target.argument(index), sample, position);
  statisticValues.assign(plan.statistics.size(), Value());
  kept.clear();
  for (RotaryOp op : plan.rotaries)
    emitRotary(op, position);
  if (!plan.rotaries.empty())
    target.syncRow();
}

/// A store that is emitted once all values of some pieces are computed.
struct RowsEmitter::Store {
  Value value, pointer;
  Type element;
  Piece piece;
  bool streaming;
};

/// Collects the stores of one piece: results, then stashed values.
void RowsEmitter::emitResults(const Piece &piece, int pass,
                              SmallVectorImpl<Store> &stores) {
  auto storeAt = [&](Value value, Value pointer, Type element,
                     bool streaming = false) {
    stores.push_back({value, builder.offset(pointer, piece.column, element),
                      element, piece, streaming});
  };
  for (auto &[value, results] : plan.yields) {
    if (plan.levelOf(value) != pass)
      continue;
    bool inPlace = value.getDefiningOp<RotaryOp>();
    for (unsigned result : results) {
      // A rotary has already written its first result.
      if (!std::exchange(inPlace, false))
        storeAt(get(value), resultRows.lookup(result), elementOf(value),
                streaming && !plan.rereads.contains(value));
    }
  }
  for (Value value : plan.stashes)
    if (isStashed(value) && plan.levelOf(value) == pass &&
        !value.getDefiningOp<RotaryOp>())
      storeAt(get(value), stashPointers.lookup(value), plan.accumulator);
}

/// Emits the piece's part of sums over rows.
void RowsEmitter::emitAccumulations(const Piece &piece, int pass,
                                    SmallVectorImpl<Store> &stores) {
  for (auto [index, accumulation] : llvm::enumerate(plan.accumulations)) {
    if (accumulation.pass != pass)
      continue;
    if (target.keepsPieces()) {
      target.addToSum(index, piece,
                      emitContribution(*this, accumulation.result));
      continue;
    }
    Value sum = builder.add(loadPiece(partialPointers[index], plan.accumulator),
                            emitContribution(*this, accumulation.result));
    stores.push_back(
        {sum,
         builder.offset(partialPointers[index], piece.column, plan.accumulator),
         plan.accumulator, piece, false});
  }
}

void RowsEmitter::dropOperands(DenseMap<Value, Value> &values) const {
  SmallVector<Value> dropped;
  for (auto [value, inRegisters] : values)
    if (!plan.rereads.contains(value))
      dropped.push_back(value);
  for (Value value : dropped)
    values.erase(value);
}

/// Computes a few pieces of pass `pass`: first all values, then all stores, so
/// that the arithmetic of the pieces overlaps. Returns the terms of the
/// statistics that the pass adds up.
SmallVector<Value> RowsEmitter::emitPieces(ArrayRef<Piece> pieces, int pass,
                                           ArrayRef<unsigned> statistics) {
  SmallVector<Store> stores;
  SmallVector<Value> terms;
  for (const Piece &piece : pieces) {
    current = piece;
    cache.clear();
    if (target.keepsPieces()) {
      kept.resize(std::max<size_t>(kept.size(), piece.number + 1));
      std::swap(cache, kept[piece.number]);
    }
    emitResults(piece, pass, stores);
    for (unsigned index : statistics)
      terms.push_back(emitTerm(*this, plan.statistics[index]));
    emitAccumulations(piece, pass, stores);
    if (target.keepsPieces()) {
      if (!target.keepsOperands())
        dropOperands(cache);
      std::swap(cache, kept[piece.number]);
    }
  }
  for (const Store &store : stores)
    builder.ifActive(store.piece, [&] {
      builder.storeElements(store.value, store.pointer, store.element,
                            alignmentOf(store.piece, plan.width, store.element),
                            store.streaming);
    });
  return terms;
}

void RowsEmitter::emitPass(int pass) {
  currentPass = pass;
  SmallVector<unsigned> statistics;
  for (auto [index, statistic] : llvm::enumerate(plan.statistics))
    if (statistic.pass == pass)
      statistics.push_back(index);
  // Sums need several accumulators to hide the latency of additions.
  int64_t unroll = statistics.empty() ? 2 : 4;
  SmallVector<Value> sums =
      target.sumColumns(plan.width, unroll, statistics.size(), plan.accumulator,
                        [&](ArrayRef<Piece> pieces) {
                          return emitPieces(pieces, pass, statistics);
                        });
  for (auto [index, sum] : llvm::zip(statistics, sums))
    statisticValues[index] =
        emitStatistic(builder, plan.statistics[index], sum, plan.width);
}

void RowsEmitter::begin(Value chunk) {
  loadPointers();
  if (!chunk)
    return;
  for (unsigned index : arguments.partials) {
    Value start = builder.mul(chunk, builder.i64(plan.width));
    Value partial =
        builder.offset(target.argument(index), start, plan.accumulator);
    partialPointers.push_back(partial);
    target.forColumns(plan.width, 4, [&](ArrayRef<Piece> pieces) {
      for (const Piece &piece : pieces)
        builder.storeElements(
            builder.constant(VectorType::get(piece.width, plan.accumulator),
                             0.0),
            builder.offset(partial, piece.column, plan.accumulator),
            plan.accumulator, alignmentOf(piece, plan.width, plan.accumulator));
    });
  }
}

void RowsEmitter::emitRows(Value begin, Value end, bool streams) {
  streaming = streams;
  builder.forLoop(begin, end, 1, [&](Value row) { emitRow(row); });
}

void RowsEmitter::emitRow(Value row) {
  startRow(row);
  for (int pass = 0; pass < plan.passes; ++pass)
    emitPass(pass);
}

//===----------------------------------------------------------------------===//
// Rotary
//===----------------------------------------------------------------------===//

/// Writes the rotated row: angles once per row, then all heads. Angles are in
/// f64 (positions reach millions).
void RowsEmitter::emitRotary(RotaryOp op, Value rowPosition) {
  Type type = plan.accumulator;
  int64_t headDim = op.getHeadDim(), half = headDim / 2;
  Value table = target.table(rotaryFrequencies(op));
  Value position = builder.convertToFloat(rowPosition, builder.f64Type());
  auto at = [&](Value base, const Piece &piece, Type element) {
    return builder.offset(base, piece.column, element);
  };
  auto angles = [&](const Piece &piece) -> RowsTarget::Angles {
    Type f64 = builder.f64Type();
    Value angle = builder.mul(
        builder.loadElements(at(table, piece, f64), f64, piece.width,
                             alignmentOf(piece, half, f64)),
        builder.splat(position, piece.width));
    auto [sine, cosine] = emitSinCos(builder, angle, type);
    if (op.getInverse())
      sine = builder.neg(sine);
    return {sine, cosine};
  };
  Value source = operandRows.lookup(op.getX());
  Type sourceElement = elementOf(op.getX());
  auto [result, resultElement] = storageOf(op.getResult());
  auto turn = [&, result = result, resultElement = resultElement](
                  Value head, const Piece &piece,
                  function_ref<RowsTarget::Angles()> anglesOf) {
    auto load = [&](Value base) {
      return builder.loadElements(at(base, piece, sourceElement), sourceElement,
                                  piece.width,
                                  alignmentOf(piece, half, sourceElement));
    };
    Value first = builder.offset(source, head, sourceElement);
    Value second = builder.offset(first, builder.i64(half), sourceElement);
    Value x = load(first), y = load(second);
    auto [sine, cosine] = anglesOf();
    auto store = [&](Value value, Value base) {
      builder.ifActive(piece, [&] {
        builder.storeElements(value, at(base, piece, resultElement),
                              resultElement,
                              alignmentOf(piece, half, resultElement));
      });
    };
    Value low = builder.offset(result, head, resultElement);
    Value high = builder.offset(low, builder.i64(half), resultElement);
    store(builder.fma(builder.neg(y), sine, builder.mul(x, cosine)), low);
    store(builder.fma(x, sine, builder.mul(y, cosine)), high);
  };
  target.turnHeads(half, plan.width / headDim, type, angles, turn);
}
