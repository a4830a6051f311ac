//===- RowsLowering.cpp - Sweeps over rows -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A `dyna.rows` becomes a body that follows its plan (RowsPlan.h) row by row.
//
// Results that sum over rows (gradients of vectors) are added up per chunk,
// each chunk in a row of its own in the scratch memory; a second launch, over
// columns, adds those in the order of the chunks. As chunks depend on the
// number of rows alone, the sums are the same for any number of threads.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Lowering.h"
#include "codegen/cpu/RowOps.h"
#include "codegen/cpu/RowsPlan.h"
#include "codegen/cpu/VectorMath.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "runtime/abi/Kernels.h"
#include <cmath>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

static bool isActivation(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.isDynamicDim(0);
}

namespace {
/// The slots of a sweep's body: what lies where.
struct RowsSlots {
  Slots slots;
  llvm::MapVector<Value, unsigned> operands;   ///< from outside, and tables
  llvm::MapVector<unsigned, unsigned> results; ///< activations, by result
  llvm::DenseMap<Value, int64_t> strides;      ///< of those, in elements
  SmallVector<unsigned> partials;              ///< per accumulation
  llvm::MapVector<Operation *, unsigned> keys; ///< of dropouts
  std::optional<unsigned> samples, positions;  ///< arrays of the segments
  std::optional<unsigned> streaming;           ///< whether to bypass the cache
};

/// Emits a sweep's body.
class RowsEmitter : public RowPiece {
public:
  RowsEmitter(ModuleLowering &module, RowsOp op, const RowsPlan &plan,
              const RowsSlots &slots, CodeBuilder &code, Value args)
      : module(module), rows(op), plan(plan), slots(slots), builder(code),
        args(args), lanes(module.vectorWidth(plan.accumulator)) {}

  void emitBody(Value begin, Value end, Value chunk);

  // RowPiece.
  CodeBuilder &code() override { return builder; }
  const Piece &piece() override { return current; }
  Value get(Value activation) override;
  Value getVector(Value parameter) override;
  Value getTableRow(PositionsOp op) override;
  Value get(const Statistic &statistic) override;
  Value getRandomKey(DropoutOp op) override { return randomKeys.lookup(op); }

private:
  Value slot(unsigned index) { return slots.slots.load(builder, args, index); }
  void loadPointers();
  void startRow(Value row);
  void emitRotary(RotaryOp op, Value rowPosition);
  void emitRows(Value begin, Value end);
  void emitPass(int pass);
  SmallVector<Value> emitPieces(ArrayRef<Piece> pieces, int pass,
                                ArrayRef<unsigned> statistics);
  Value loadPiece(Value pointer, Type element) {
    return builder.loadElements(
        builder.offset(pointer, current.column, element), element,
        current.width, alignmentOf(current, plan.width, element));
  }
  /// Asks for what the sweep will read soon: arithmetic heavier than a few
  /// operations leaves too few loads in flight to keep the memory busy.
  void prefetch(Value row, Type element);
  /// Where the body keeps an activation of its own for later passes.
  std::pair<Value, Type> storageOf(Value value);

  ModuleLowering &module;
  RowsOp rows;
  const RowsPlan &plan;
  const RowsSlots &slots;
  CodeBuilder &builder;
  Value args;
  int64_t lanes;

  // Of the whole body.
  DenseMap<Value, Value> operandPointers, stashPointers;
  DenseMap<unsigned, Value> resultPointers;
  SmallVector<Value> partialPointers;
  // Of the row.
  DenseMap<Value, Value> operandRows, tableRows;
  DenseMap<unsigned, Value> resultRows;
  DenseMap<Operation *, Value> randomKeys;
  SmallVector<Value> statisticValues; ///< scalars, null until known
  int currentPass = 0;
  bool streaming = false;
  // Of the piece.
  Piece current = {};
  DenseMap<Value, Value> cache;
};
} // namespace

//===----------------------------------------------------------------------===//
// Values of a piece
//===----------------------------------------------------------------------===//

void RowsEmitter::prefetch(Value row, Type element) {
  constexpr int32_t distance = 2048;
  if (currentPass > 0 || current.width < lanes)
    return;
  Value ahead = LLVM::GEPOp::create(
      builder, builder.pointerType(), builder.getIntegerType(8),
      builder.offset(row, current.column, element),
      ArrayRef<LLVM::GEPArg>{distance}); // may be behind the tensor
  LLVM::Prefetch::create(builder, ahead, /*rw=*/0, /*hint=*/3, /*cache=*/1);
}

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
    prefetch(operandRows.lookup(activation), elementOf(activation));
  } else if (isa<RotaryOp>(op) || plan.levelOf(activation) < currentPass) {
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
  for (auto [value, index] : slots.operands)
    operandPointers[value] = slot(index);
  for (auto [result, index] : slots.results)
    resultPointers[result] = slot(index);
  int64_t rowBytes = plan.width * sizeOf(plan.accumulator);
  for (Value value : plan.stashes)
    stashPointers[value] = builder.stack(rowBytes);
}

/// Points at the row of every tensor and computes what the whole row shares.
void RowsEmitter::startRow(Value row) {
  auto rowOf = [&](Value base, Value index, Type element, int64_t stride) {
    Value start = builder.mul(index, builder.i64(stride));
    return builder.offset(base, start, element);
  };
  for (auto [value, index] : slots.operands)
    if (isActivation(value))
      operandRows[value] = rowOf(operandPointers[value], row, elementOf(value),
                                 slots.strides.lookup(value));
  for (auto [result, index] : slots.results) {
    Value value = rows.getResult(result);
    resultRows[result] = rowOf(resultPointers[result], row, elementOf(value),
                               slots.strides.lookup(value));
  }
  auto entry = [&](unsigned index) {
    Type i64 = builder.i64Type();
    return builder.load(builder.offset(slot(index), row, i64), i64);
  };
  Value sample = slots.samples ? entry(*slots.samples) : Value();
  Value position = slots.positions ? entry(*slots.positions) : Value();
  for (Operation &op : rows.getBody().front())
    if (auto positions = dyn_cast<PositionsOp>(op))
      tableRows[positions.getResult()] =
          rowOf(operandPointers[positions.getTable()], position,
                elementOf(positions.getTable()), plan.width);
  for (auto [op, index] : slots.keys)
    randomKeys[op] = emitRandomRowKey(builder, slot(index), sample, position);
  statisticValues.assign(plan.statistics.size(), Value());
  for (RotaryOp op : plan.rotaries)
    emitRotary(op, position);
}

/// Computes a few pieces of pass `pass`: first all values, then all stores, so
/// that the arithmetic of the pieces overlaps. Returns the terms of the
/// statistics that the pass adds up.
SmallVector<Value> RowsEmitter::emitPieces(ArrayRef<Piece> pieces, int pass,
                                           ArrayRef<unsigned> statistics) {
  struct Store {
    Value value, pointer;
    Type element;
    Piece piece;
    bool streaming;
  };
  SmallVector<Store> stores;
  SmallVector<Value> terms;
  for (const Piece &piece : pieces) {
    current = piece;
    cache.clear();
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
        // A rotary has written its first place already.
        if (!std::exchange(inPlace, false))
          storeAt(get(value), resultRows.lookup(result), elementOf(value),
                  streaming && !plan.rereads.contains(value));
      }
    }
    for (Value value : plan.stashes)
      if (plan.levelOf(value) == pass && !value.getDefiningOp<RotaryOp>())
        storeAt(get(value), stashPointers.lookup(value), plan.accumulator);
    for (unsigned index : statistics)
      terms.push_back(emitTerm(*this, plan.statistics[index]));
    for (auto [index, accumulation] : llvm::enumerate(plan.accumulations)) {
      if (accumulation.pass != pass)
        continue;
      Value sum =
          builder.add(loadPiece(partialPointers[index], plan.accumulator),
                      emitContribution(*this, accumulation.result));
      storeAt(sum, partialPointers[index], plan.accumulator);
    }
  }
  for (const Store &store : stores)
    builder.storeElements(store.value, store.pointer, store.element,
                          alignmentOf(store.piece, plan.width, store.element),
                          store.streaming);
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
      builder.sumColumns(plan.width, lanes, unroll, statistics.size(),
                         plan.accumulator, [&](ArrayRef<Piece> pieces) {
                           return emitPieces(pieces, pass, statistics);
                         });
  for (auto [index, sum] : llvm::zip(statistics, sums))
    statisticValues[index] =
        emitStatistic(builder, plan.statistics[index], sum, plan.width);
}

void RowsEmitter::emitBody(Value begin, Value end, Value chunk) {
  loadPointers();
  for (unsigned index : slots.partials) {
    Value start = builder.mul(chunk, builder.i64(plan.width));
    Value partial = builder.offset(slot(index), start, plan.accumulator);
    partialPointers.push_back(partial);
    builder.forColumns(plan.width, lanes, 4, [&](ArrayRef<Piece> pieces) {
      for (const Piece &piece : pieces)
        builder.storeElements(
            builder.constant(VectorType::get(piece.width, plan.accumulator),
                             0.0),
            builder.offset(partial, piece.column, plan.accumulator),
            plan.accumulator, alignmentOf(piece, plan.width, plan.accumulator));
    });
  }
  if (!slots.streaming)
    return emitRows(begin, end);
  Value yes = builder.equal(slot(*slots.streaming), builder.i64(1));
  auto branch = scf::IfOp::create(builder, yes, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  streaming = true;
  emitRows(begin, end);
  // Streaming stores are not ordered with the message that the chunk is done.
  LLVM::FenceOp::create(builder, LLVM::AtomicOrdering::seq_cst);
  builder.setInsertionPointToStart(branch.elseBlock());
  streaming = false;
  emitRows(begin, end);
}

void RowsEmitter::emitRows(Value begin, Value end) {
  builder.forLoop(begin, end, 1, [&](Value row) {
    startRow(row);
    for (int pass = 0; pass < plan.passes; ++pass)
      emitPass(pass);
  });
}

//===----------------------------------------------------------------------===//
// Rotary
//===----------------------------------------------------------------------===//

/// Writes the rotated row: angles once per row, in f64 (positions reach
/// millions), then all heads.
void RowsEmitter::emitRotary(RotaryOp op, Value rowPosition) {
  int64_t half = op.getHeadDim() / 2;
  double theta = op.getTheta().convertToDouble();
  Type type = plan.accumulator;
  SmallVector<double> frequencies;
  for (int64_t j = 0; j < half; ++j)
    frequencies.push_back(std::pow(theta, -2.0 * j / op.getHeadDim()));
  LLVM::GlobalOp global = module.getTable(frequencies);
  Value table = LLVM::AddressOfOp::create(builder, global);
  Value cosines = builder.stack(half * sizeOf(type));
  Value sines = builder.stack(half * sizeOf(type));
  Value position = builder.convertToFloat(rowPosition, builder.f64Type());
  auto at = [&](Value base, const Piece &piece, Type element) {
    return builder.offset(base, piece.column, element);
  };
  builder.forColumns(half, lanes, 1, [&](ArrayRef<Piece> pieces) {
    for (const Piece &piece : pieces) {
      Type f64 = builder.f64Type();
      Value angle = builder.mul(
          builder.loadElements(at(table, piece, f64), f64, piece.width,
                               alignmentOf(piece, half, f64)),
          builder.splat(position, piece.width));
      auto [sine, cosine] = emitSinCos(builder, angle, type);
      if (op.getInverse())
        sine = builder.neg(sine);
      int64_t alignment = alignmentOf(piece, half, type);
      builder.storeElements(sine, at(sines, piece, type), type, alignment);
      builder.storeElements(cosine, at(cosines, piece, type), type, alignment);
    }
  });

  Value source = operandRows.lookup(op.getX());
  Type sourceElement = elementOf(op.getX());
  auto [result, resultElement] = storageOf(op.getResult());
  int64_t headDim = op.getHeadDim();
  builder.forLoop(
      builder.i64(0), builder.i64(plan.width), headDim,
      [&, result = result, resultElement = resultElement](Value head) {
        builder.forColumns(half, lanes, 1, [&](ArrayRef<Piece> pieces) {
          for (const Piece &piece : pieces) {
            auto load = [&](Value base, Type element) {
              return builder.loadElements(at(base, piece, element), element,
                                          piece.width,
                                          alignmentOf(piece, half, element));
            };
            Value first = builder.offset(source, head, sourceElement);
            Value second =
                builder.offset(first, builder.i64(half), sourceElement);
            Value x = load(first, sourceElement),
                  y = load(second, sourceElement);
            Value sine = load(sines, type), cosine = load(cosines, type);
            auto store = [&](Value value, Value base) {
              builder.storeElements(value, at(base, piece, resultElement),
                                    resultElement,
                                    alignmentOf(piece, half, resultElement));
            };
            Value low = builder.offset(result, head, resultElement);
            Value high = builder.offset(low, builder.i64(half), resultElement);
            store(builder.fma(builder.neg(y), sine, builder.mul(x, cosine)),
                  low);
            store(builder.fma(x, sine, builder.mul(y, cosine)), high);
          }
        });
      });
}

//===----------------------------------------------------------------------===//
// The layer function's side
//===----------------------------------------------------------------------===//

/// Collects what the body needs into slots.
static FailureOr<RowsSlots> collectSlots(FunctionLowering &function, RowsOp op,
                                         const RowsPlan &plan) {
  CodeBuilder &code = function.getCode();
  RowsSlots result;
  auto field = [&](size_t offset, Type type) {
    return code.loadField(function.getContext(), offset, type);
  };
  auto segmentsArray = [&](size_t offset) {
    Value rows =
        code.loadField(function.getSegments(), offset, code.pointerType());
    return result.slots.add(
        code.offset(rows, function.getFirstToken(op), code.i64Type()));
  };
  bool samples = false, positions = false;
  for (Operation &inner : op.getBody().front().without_terminator()) {
    for (Value operand : inner.getOperands()) {
      bool inside = operand.getParentBlock() == inner.getBlock();
      bool isSum = llvm::any_of(plan.accumulations, [&](auto &accumulation) {
        return accumulation.accumulator == operand;
      });
      if (inside || isSum || !isa<RankedTensorType>(operand.getType()))
        continue;
      result.operands[operand] = result.slots.add(function.address(operand));
      if (isActivation(operand))
        result.strides[operand] = function.strideOf(operand);
    }
    positions |= isa<PositionsOp, RotaryOp, DropoutOp>(inner);
    if (auto dropout = dyn_cast<DropoutOp>(inner)) {
      samples = true;
      Type i64 = code.i64Type();
      Value key = emitRandomOpKey(
          code, field(offsetof(dyna_context, seed), i64),
          field(offsetof(dyna_context, step), i64),
          field(offsetof(dyna_context, layer), i64), dropout.getInstance());
      result.keys[dropout] = result.slots.add(key);
    }
  }
  for (auto lookup : op.getBody().front().getOps<PositionsOp>())
    function.checkPositions(op, function.getTokens(op),
                            lookup.getTable().getType().getDimSize(0));
  if (samples)
    result.samples = segmentsArray(offsetof(dyna_segments, row_sample));
  if (positions)
    result.positions = result.slots.add(function.getPositions(op));
  for (auto &[value, results] : plan.yields)
    for (unsigned index : results) {
      Value leaving = op.getResult(index);
      result.results[index] = result.slots.add(function.address(leaving));
      result.strides[leaving] = function.strideOf(leaving);
    }
  if (plan.accumulations.empty())
    return result;

  FailureOr<PlaceAttr> scratch = function.scratchOf(op);
  if (failed(scratch))
    return failure();
  Value base = function.address(*scratch);
  int64_t bytes =
      dyna_align_block(DYNA_MAX_CHUNKS * plan.width * sizeOf(plan.accumulator));
  for (size_t i = 0; i < plan.accumulations.size(); ++i)
    result.partials.push_back(
        result.slots.add(code.offsetBytes(base, i * bytes)));
  return result;
}

/// Lets the body choose between ordinary and streaming stores, where the latter
/// can be better: the sweep stands alone, writes whole cache lines that it has
/// not just read, and adds nothing up.
static void addStreamingSlot(FunctionLowering &function, RowsOp op,
                             const RowsPlan &plan, RowsSlots &slots) {
  int64_t rowBytes = 0;
  for (auto &[value, results] : plan.yields)
    for (unsigned result : results) {
      int64_t bytes = plan.width * sizeOf(elementOf(value));
      if (bytes % DYNA_BLOCK_ALIGNMENT != 0)
        return;
      rowBytes += bytes;
      for (auto [operand, slot] : slots.operands)
        if (function.placeOf(operand) == function.placeOf(op.getResult(result)))
          return;
    }
  if (!plan.accumulations.empty() || !plan.rotaries.empty())
    return;
  CodeBuilder &code = function.getCode();
  Value bytes = code.mul(function.getTokens(op), code.i64(rowBytes));
  Value limit = code.i64(function.getModule().getOptions().streamingBytes);
  Value large = code.less(limit, bytes);
  slots.streaming =
      slots.slots.add(code.select(large, code.i64(1), code.i64(0)));
}

/// Adds the chunks' partial sums to the accumulator, of type `element`, a
/// launch over columns. The sum is rounded to a narrower type once.
static void addPartials(FunctionLowering &function, const RowsPlan &plan,
                        Value partials, Value accumulator, Type element,
                        Value chunks) {
  CodeBuilder &code = function.getCode();
  ModuleLowering &module = function.getModule();
  Type type = plan.accumulator;
  int64_t width = plan.width, lanes = module.vectorWidth(type);
  Slots slots;
  unsigned partialsSlot = slots.add(partials);
  unsigned accumulatorSlot = slots.add(accumulator);
  unsigned chunksSlot = slots.add(chunks);
  constexpr int64_t block = 64;
  int64_t whole = width / block;
  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("sum"), code.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        Value from = slots.load(code, args, partialsSlot);
        Value to = slots.load(code, args, accumulatorSlot);
        Value count = slots.load(code, args, chunksSlot);
        // Columns of the partial sums of `chunk` go to `target`.
        auto addRow = [&](Value chunk, Value target, Type targetType,
                          Value first, int64_t columns) {
          Value start = code.add(code.mul(chunk, code.i64(width)), first);
          Value source = code.offset(from, start, type);
          target = code.offset(target, first, targetType);
          code.forColumns(columns, lanes, 4, [&](ArrayRef<Piece> pieces) {
            for (const Piece &piece : pieces) {
              auto load = [&](Value base, Type stored) {
                return code.loadElements(
                    code.offset(base, piece.column, stored), stored,
                    piece.width, alignmentOf(piece, width, stored));
              };
              Value sum =
                  code.add(load(target, targetType), load(source, type));
              code.storeElements(
                  sum, code.offset(target, piece.column, targetType),
                  targetType, alignmentOf(piece, width, targetType));
            }
          });
        };
        auto addBlock = [&](Value first, int64_t columns) {
          if (element == type) {
            code.forLoop(code.i64(0), count, 1, [&](Value chunk) {
              addRow(chunk, to, type, first, columns);
            });
            return;
          }
          // Together with the first chunk's, then all at once.
          code.forLoop(code.i64(1), count, 1, [&](Value chunk) {
            addRow(chunk, from, type, first, columns);
          });
          code.ifThen(code.less(code.i64(0), count), [&] {
            addRow(code.i64(0), to, element, first, columns);
          });
        };
        code.forLoop(begin, code.min(end, code.i64(whole)), 1,
                     [&](Value index) {
                       addBlock(code.mul(index, code.i64(block)), block);
                     });
        if (width % block != 0)
          code.ifThen(code.less(code.i64(whole), end), [&] {
            addBlock(code.i64(whole * block), width % block);
          });
      });
  function.launch({body, slots.store(code), slots.bytes(), /*minRows=*/16},
                  code.i64((width + block - 1) / block));
}

FailureOr<PreparedRows> mlir::dyna::cpu::prepareRows(FunctionLowering &function,
                                                     RowsOp op,
                                                     bool isEpilogue) {
  FailureOr<RowsPlan> plan = planRows(op);
  if (failed(plan))
    return failure();
  FailureOr<RowsSlots> slots = collectSlots(function, op, *plan);
  if (failed(slots))
    return failure();
  if (!isEpilogue)
    addStreamingSlot(function, op, *plan, *slots);
  for (const Accumulation &sum : plan->accumulations)
    for (OpOperand &use : sum.result.getUses()) {
      if (!isa<YieldOp>(use.getOwner()))
        return op.emitOpError("expects a sum over rows to be yielded only");
      Value result = op.getResult(use.getOperandNumber());
      if (function.placeOf(result) != function.placeOf(sum.accumulator))
        return op.emitOpError("expects result ")
               << use.getOperandNumber()
               << " in the place of the accumulator it adds to";
    }

  ModuleLowering &module = function.getModule();
  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("rows"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value chunk) {
        RowsEmitter(module, op, *plan, *slots, code, args)
            .emitBody(begin, end, chunk);
      });
  CodeBuilder &code = function.getCode();
  int64_t minRows = minimumRows(plan->width);
  PreparedRows prepared;
  prepared.launch = {body, slots->slots.store(code), slots->slots.bytes(),
                     minRows};
  prepared.finish = [&function, op, plan = *plan, slots = *slots, minRows] {
    if (plan.accumulations.empty())
      return;
    CodeBuilder &code = function.getCode();
    Value rows = function.getTokens(op);
    // As dyna_chunk_rows and dyna_chunk_count.
    Value even = code.ceilDiv(rows, code.i64(DYNA_MAX_CHUNKS));
    Value chunks = code.ceilDiv(rows, code.max(even, code.i64(minRows)));
    for (auto [index, sum] : llvm::enumerate(plan.accumulations))
      addPartials(function, plan, slots.slots.get(slots.partials[index]),
                  function.address(sum.accumulator), elementOf(sum.accumulator),
                  chunks);
  };
  return prepared;
}

LogicalResult mlir::dyna::cpu::lowerRows(FunctionLowering &function,
                                         RowsOp op) {
  FailureOr<PreparedRows> prepared =
      prepareRows(function, op, /*isEpilogue=*/false);
  if (failed(prepared))
    return failure();
  function.launch(prepared->launch, function.getTokens(op));
  prepared->finish();
  return success();
}
