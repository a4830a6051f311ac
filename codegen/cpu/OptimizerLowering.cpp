//===- OptimizerLowering.cpp - Lowers sweeps over parameters ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers the optimizer, the global norm and casts. They run over the elements
// of the rows of a parameter that the caller gives (all rows, or this rank's),
// in blocks. All are bound by memory, so one sweep reads and writes each
// element once. A tensor whose `data` is null is left out (a tied parameter
// that another layer updates).
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuLowering.h"
#include "codegen/layers/Elements.h"

#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

/// Elements of a block, the unit that dyna_launch counts, and the fewest blocks
/// worth a chunk of their own.
static constexpr int64_t blockElements = 1024;
static constexpr int64_t minimumBlocks = 32;

/// Visits elements [begin, end) * blockElements of `count`: `sweep` gets the
/// first element and the number of a run, which is static: a block, a vector of
/// `lanes` or one element.
static void
emitBlocks(CodeBuilder &code, Value begin, Value end, Value count,
           int64_t lanes,
           function_ref<void(Value first, int64_t elements)> sweep) {
  Value first = code.mul(begin, code.i64(blockElements));
  Value last = code.min(code.mul(end, code.i64(blockElements)), count);
  for (int64_t run : {blockElements, lanes, int64_t(1)}) {
    // The length of a run is a power of two.
    Value whole = code.bitAnd(code.sub(last, first), code.i64(-run));
    Value stop = code.add(first, whole);
    code.forLoop(first, stop, run, [&](Value at) { sweep(at, run); });
    first = stop;
  }
}

/// Launches over the elements, unless there are none or one tensor is null.
static void launchElements(CpuLowering &module, FunctionLowering &function,
                           const Launch &launch, const Elements &elements) {
  CodeBuilder &code = function.getCode();
  Value blocks = code.ceilDiv(elements.count, code.i64(blockElements));
  unlessAbsent(function, elements, [&] {
    return module.launchUnchecked(function, launch, blocks);
  });
}

/// Loads a piece of a flat tensor at `pointer`. The first of a rank's rows may
/// begin anywhere, so only an element's alignment is known.
static Value loadPiece(CodeBuilder &code, Value pointer, Type element,
                       const Piece &piece) {
  return code.loadElements(code.offset(pointer, piece.column, element), element,
                           piece.width, sizeOf(element));
}

static void storePiece(CodeBuilder &code, Value value, Value pointer,
                       Type element, const Piece &piece) {
  code.storeElements(value, code.offset(pointer, piece.column, element),
                     element, sizeOf(element));
}

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

/// Emits one step for one vector of elements.
static void emitAdamwPiece(CodeBuilder &code, const AdamwScalars &scalars,
                           ArrayRef<Value> pointers, ArrayRef<Type> types,
                           const Piece &piece) {
  auto load = [&](unsigned i) {
    return loadPiece(code, pointers[i], types[i], piece);
  };
  auto store = [&](Value value, unsigned i) {
    storePiece(code, value, pointers[i], types[i], piece);
  };
  Value p = load(0), g = load(1), m = load(2), v = load(3);
  AdamwState state = emitAdamwStep(code, scalars, {p, m, v}, g);
  store(state.master, 0);
  store(code.like(g, 0.0), 1);
  store(state.m, 2);
  store(state.v, 3);
  if (pointers.size() > 4)
    store(state.master, 4);
}

namespace {
/// Slots of the arguments of an update's body.
struct AdamwSlots {
  Slots slots;
  unsigned count = 0, scale = 0;
  SmallVector<unsigned> pointers, scalars;

  AdamwSlots(const Elements &elements, AdamwScalars &given) {
    count = slots.add(elements.count);
    for (Value pointer : elements.pointers)
      pointers.push_back(slots.add(pointer));
    for (Value *scalar : given.all())
      scalars.push_back(slots.add(*scalar));
    scale = slots.add(given.gradientScale);
  }
};
} // namespace

/// Elements at [begin, end), of `lanes` each; where the factor of the gradients is
/// not a number they are cleared, and nothing else changes.
static void emitAdamwBody(CodeBuilder &code, const AdamwSlots &given,
                          ArrayRef<Type> types, int64_t lanes, Value args,
                          Value begin, Value end) {
  const Slots &slots = given.slots;
  Type element = types.front();
  AdamwScalars inner;
  for (auto [scalar, slot] : llvm::zip(inner.all(), given.scalars))
    *scalar = code.convertFloat(slots.load(code, args, slot), element);
  Value scale = code.load(slots.load(code, args, given.scale), code.f64Type());
  inner.gradientScale = code.convertFloat(scale, element);
  SmallVector<Value> bases;
  for (unsigned slot : given.pointers)
    bases.push_back(slots.load(code, args, slot));
  Value count = slots.load(code, args, given.count);
  auto sweep = [&](Value first, int64_t run) {
    SmallVector<Value> starts;
    for (auto [index, base] : llvm::enumerate(bases))
      starts.push_back(code.offset(base, first, types[index]));
    code.forColumns(run, lanes, 2, [&](ArrayRef<Piece> pieces) {
      for (const Piece &piece : pieces)
        emitAdamwPiece(code, inner, starts, types, piece);
    });
  };
  auto clear = [&](Value first, int64_t run) {
    Value start = code.offset(bases[1], first, types[1]);
    Value zero = code.constant(getAccumulatorType(types[1]), 0.0);
    code.forColumns(run, lanes, 2, [&](ArrayRef<Piece> pieces) {
      for (const Piece &piece : pieces)
        storePiece(code, code.splat(zero, piece.width), start, types[1], piece);
    });
  };
  code.ifThenElse(
      code.isNan(scale),
      [&] { emitBlocks(code, begin, end, count, lanes, clear); },
      [&] { emitBlocks(code, begin, end, count, lanes, sweep); });
}

LogicalResult CpuLowering::lowerAdamw(FunctionLowering &function, AdamwOp op) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    if (function.placeOf(operand) != function.placeOf(op->getResult(index)))
      return op.emitOpError("expects operand ")
             << index << " in the place of result " << index;
  CodeBuilder &code = function.getCode();
  SmallVector<Value> tensors(op.getOperands());
  if (CastOp copy = castOf(op))
    tensors.push_back(copy.getResult());
  auto types = llvm::map_to_vector(
      tensors, [](Value tensor) { return typeOf(tensor).getElementType(); });
  FailureOr<Elements> elements = elementsOf(function, op, tensors);
  if (failed(elements))
    return failure();
  AdamwScalars scalars = emitAdamwScalars(function, op.getDecay());
  AdamwSlots given(*elements, scalars);
  LLVM::LLVMFuncOp body = createBody(
      function.bodyName("adamw"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        emitAdamwBody(code, given, types, vectorWidth(types.front()), args,
                      begin, end);
      });
  launchElements(
      *this, function,
      {body, given.slots.store(code), given.slots.bytes(), minimumBlocks},
      *elements);
  return success();
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

LogicalResult CpuLowering::lowerCast(FunctionLowering &function, CastOp op) {
  if (isFusedCast(op))
    return success();
  CodeBuilder &code = function.getCode();
  Type from = typeOf(op.getX()).getElementType();
  Type to = typeOf(op.getResult()).getElementType();
  int64_t lanes = vectorWidth(from);
  FailureOr<Elements> elements =
      elementsOf(function, op, {op.getX(), op.getResult()});
  if (failed(elements))
    return failure();
  Slots slots;
  unsigned fromSlot = slots.add(elements->pointers[0]);
  unsigned toSlot = slots.add(elements->pointers[1]);
  unsigned countSlot = slots.add(elements->count);
  LLVM::LLVMFuncOp body = createBody(
      function.bodyName("cast"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        Value source = slots.load(code, args, fromSlot);
        Value result = slots.load(code, args, toSlot);
        auto sweep = [&](Value first, int64_t run) {
          Value sourceStart = code.offset(source, first, from);
          Value resultStart = code.offset(result, first, to);
          code.forColumns(run, lanes, 4, [&](ArrayRef<Piece> pieces) {
            for (const Piece &piece : pieces) {
              Value value = loadPiece(code, sourceStart, from, piece);
              value = code.convertFloat(value, getAccumulatorType(to));
              storePiece(code, value, resultStart, to, piece);
            }
          });
        };
        emitBlocks(code, begin, end, slots.load(code, args, countSlot), lanes,
                   sweep);
      });
  launchElements(*this, function,
                 {body, slots.store(code), slots.bytes(), minimumBlocks},
                 *elements);
  return success();
}

//===----------------------------------------------------------------------===//
// Sum of squares
//===----------------------------------------------------------------------===//

/// Emits the body, which stores the sum of chunk `chunk` in partial[chunk].
static LLVM::LLVMFuncOp emitSumSquaresBody(CpuLowering &module,
                                           FunctionLowering &function,
                                           SumSquaresOp op, const Slots &slots,
                                           unsigned xSlot, unsigned countSlot,
                                           unsigned partialSlot) {
  Type element = typeOf(op.getX()).getElementType();
  int64_t lanes = module.vectorWidth(element);
  return module.createBody(
      function.bodyName("squares"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value chunk) {
        Type f64 = code.f64Type();
        Value x = slots.load(code, args, xSlot);
        Value partial =
            code.offset(slots.load(code, args, partialSlot), chunk, f64);
        code.store(code.constant(f64, 0.0), partial);
        emitBlocks(code, begin, end, slots.load(code, args, countSlot), lanes,
                   [&](Value first, int64_t run) {
                     Value start = code.offset(x, first, element);
                     SmallVector<Value> sum = code.sumColumns(
                         run, lanes, 2, 1, f64, [&](ArrayRef<Piece> pieces) {
                           SmallVector<Value> squares;
                           for (const Piece &piece : pieces) {
                             Value value = code.convertFloat(
                                 loadPiece(code, start, element, piece), f64);
                             squares.push_back(code.mul(value, value));
                           }
                           return squares;
                         });
                     code.store(code.add(code.load(partial, f64), sum[0]),
                                partial);
                   });
      });
}

LogicalResult CpuLowering::lowerSumSquares(FunctionLowering &function,
                                           SumSquaresOp op) {
  FailureOr<PlaceAttr> scratch = function.scratchOf(op);
  if (failed(scratch))
    return failure();
  if (function.placeOf(op.getAccumulator()) != function.placeOf(op.getResult()))
    return op.emitOpError("expects its accumulator in the place of its result");
  CodeBuilder &code = function.getCode();
  FailureOr<Elements> elements = elementsOf(function, op, op.getX());
  if (failed(elements))
    return failure();
  Value total = function.address(op.getResult());
  Value partials = function.address(*scratch);
  Slots slots;
  unsigned xSlot = slots.add(elements->pointers[0]);
  unsigned countSlot = slots.add(elements->count);
  unsigned partialSlot = slots.add(partials);
  LLVM::LLVMFuncOp body = emitSumSquaresBody(*this, function, op, slots, xSlot,
                                             countSlot, partialSlot);

  // A part of the rows has fewer chunks, and an absent tensor has none. Chunks
  // that do not run write no partial sums, so set all of them to zero first.
  int64_t blocks =
      llvm::divideCeil(typeOf(op.getX()).getNumElements(), blockElements);
  int64_t chunks = std::min<int64_t>(llvm::divideCeil(blocks, minimumBlocks),
                                     DYNA_MAX_CHUNKS);
  Type f64 = code.f64Type();
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    code.storeField(code.constant(f64, 0.0), partials, 8 * chunk);
  launchElements(*this, function,
                 {body, slots.store(code), slots.bytes(), minimumBlocks},
                 *elements);
  Value sum = code.load(total, f64);
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    sum = code.add(sum, code.loadField(partials, 8 * chunk, f64));
  code.store(sum, total);
  return success();
}
