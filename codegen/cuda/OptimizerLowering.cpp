//===- OptimizerLowering.cpp - Sweeps over parameters ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The optimizer, the global norm and casts: every thread has a few elements.
// The first of a rank's rows may begin anywhere; where all tensors of the sweep
// happen to be aligned, as they are when all rows are given, a thread reads its
// elements at once, else one by one.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Lowering.h"
#include "codegen/layers/Elements.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

static constexpr int64_t blockThreads = 256;

namespace {
/// The tensors of a sweep, as the kernel sees them.
struct Tensors {
  Kernel &kernel;
  CodeBuilder &code;
  SmallVector<Value> pointers;
  SmallVector<Type> types;
  Value count;
  int64_t lanes;

  Tensors(Kernel &kernel, ArrayRef<unsigned> slots, ArrayRef<Type> types,
          unsigned countSlot, int64_t lanes)
      : kernel(kernel), code(kernel.code), types(types),
        count(kernel.slot(countSlot)), lanes(lanes) {
    for (unsigned slot : slots)
      pointers.push_back(kernel.slot(slot));
  }

  /// Whether pieces of all tensors can be read at once.
  Value areAligned() {
    Value all;
    for (auto [pointer, type] : llvm::zip(pointers, types)) {
      Value address = LLVM::PtrToIntOp::create(code, code.i64Type(), pointer);
      int64_t bytes = std::min(accessBytes, lanes * sizeOf(type));
      Value rest = code.bitAnd(address, code.i64(bytes - 1));
      all = all ? code.bitOr(all, rest) : rest;
    }
    return code.equal(all, code.i64(0));
  }
  Value load(unsigned i, Value at, int64_t width) {
    return code.loadElements(code.offset(pointers[i], at, types[i]), types[i],
                             width, width * sizeOf(types[i]));
  }
  void store(Value value, unsigned i, Value at, int64_t width) {
    code.storeElements(value, code.offset(pointers[i], at, types[i]), types[i],
                       width * sizeOf(types[i]));
  }
  /// Emits `piece` for the `lanes` elements from `first` on.
  void visit(Value first, function_ref<void(Value at, int64_t width)> piece) {
    Value end = code.add(first, code.i64(lanes));
    Value isWhole =
        code.bitAnd(code.less(end, code.add(count, code.i64(1))), areAligned());
    code.ifThenElse(
        isWhole, [&] { piece(first, lanes); },
        [&] {
          code.forLoop(first, code.min(end, count), 1,
                       [&](Value at) { piece(at, 1); });
        });
  }
};
} // namespace

/// Elements of a thread: two accesses of the widest type at most.
static int64_t lanesOf(ArrayRef<Type> types) {
  int64_t widest = 1;
  for (Type type : types)
    widest = std::max(widest, sizeOf(type));
  return accessBytes / widest;
}

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

LogicalResult CudaModule::lowerAdamw(FunctionLowering &function, AdamwOp op) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    if (function.placeOf(operand) != function.placeOf(op->getResult(index)))
      return op.emitOpError("expects operand ")
             << index << " in the place of result " << index;
  CodeBuilder &host = function.getCode();
  Type element = elementOf(op.getMaster());
  SmallVector<Value> tensors(op.getOperands());
  if (CastOp copy = castOf(op))
    tensors.push_back(copy.getResult());
  SmallVector<Type> types = llvm::map_to_vector(
      tensors, [](Value tensor) { return elementOf(tensor); });
  FailureOr<Elements> elements = elementsOf(function, op, tensors);
  if (failed(elements))
    return failure();
  AdamwScalars scalars = emitAdamwScalars(function, op.getDecay());
  Slots slots;
  unsigned countSlot = slots.add(elements->count);
  SmallVector<unsigned> pointerSlots, scalarSlots;
  for (Value pointer : elements->pointers)
    pointerSlots.push_back(slots.add(pointer));
  for (Value *scalar : scalars.all())
    scalarSlots.push_back(slots.add(host.convertFloat(*scalar, element)));
  unsigned scaleSlot = slots.add(scalars.gradientScale);
  int64_t lanes = lanesOf(types);
  Value blocks = host.ceilDiv(elements->count, host.i64(blockThreads * lanes));
  unlessAbsent(function, *elements, [&] {
    return launchUnchecked(
        function, "adamw", slots, blockThreads, blocks, [&](Kernel &kernel) {
          CodeBuilder &code = kernel.code;
          Tensors sweep(kernel, pointerSlots, types, countSlot, lanes);
          AdamwScalars inner;
          for (auto [scalar, slot] : llvm::zip(inner.all(), scalarSlots))
            *scalar = kernel.slot(slot);
          Value scale = code.load(kernel.slot(scaleSlot), code.f64Type());
          inner.gradientScale = code.convertFloat(scale, element);
          // Then gradients are cleared, and nothing else changes.
          Value isLost = code.isNan(scale);
          Value first = code.mul(kernel.globalThread(), code.i64(lanes));
          sweep.visit(first, [&](Value at, int64_t width) {
            auto load = [&](unsigned i) { return sweep.load(i, at, width); };
            Value p = load(0), g = load(1), m = load(2), v = load(3);
            AdamwState state = emitAdamwStep(code, inner, {p, m, v}, g);
            auto keep = [&](Value before, Value now) {
              return code.select(isLost, before, now);
            };
            Value master = keep(p, state.master);
            sweep.store(master, 0, at, width);
            sweep.store(code.like(g, 0.0), 1, at, width);
            sweep.store(keep(m, state.m), 2, at, width);
            sweep.store(keep(v, state.v), 3, at, width);
            if (types.size() > 4)
              sweep.store(master, 4, at, width);
          });
        });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

LogicalResult CudaModule::lowerCast(FunctionLowering &function, CastOp op) {
  if (isFusedCast(op))
    return success();
  CodeBuilder &host = function.getCode();
  SmallVector<Type> types = {elementOf(op.getX()), elementOf(op.getResult())};
  FailureOr<Elements> elements =
      elementsOf(function, op, {op.getX(), op.getResult()});
  if (failed(elements))
    return failure();
  Slots slots;
  unsigned countSlot = slots.add(elements->count);
  SmallVector<unsigned> pointerSlots;
  for (Value pointer : elements->pointers)
    pointerSlots.push_back(slots.add(pointer));
  int64_t lanes = lanesOf(types);
  Value blocks = host.ceilDiv(elements->count, host.i64(blockThreads * lanes));
  unlessAbsent(function, *elements, [&] {
    return launchUnchecked(
        function, "cast", slots, blockThreads, blocks, [&](Kernel &kernel) {
          CodeBuilder &code = kernel.code;
          Tensors sweep(kernel, pointerSlots, types, countSlot, lanes);
          Value first = code.mul(kernel.globalThread(), code.i64(lanes));
          sweep.visit(first, [&](Value at, int64_t width) {
            Value value = sweep.load(0, at, width);
            sweep.store(code.convertFloat(value, getAccumulatorType(types[1])),
                        1, at, width);
          });
        });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Sum of squares
//===----------------------------------------------------------------------===//

/// Parts that the sum over a tensor is split into: by its size alone, as the
/// scratch memory is.
static int64_t squareParts(Value x) {
  // Blocks and chunks as passes/memory/Scratch.cpp counts them.
  constexpr int64_t blockElements = 1024, minimumBlocks = 32;
  int64_t blocks = llvm::divideCeil(typeOf(x).getNumElements(), blockElements);
  return std::min<int64_t>(llvm::divideCeil(blocks, minimumBlocks), sumParts);
}

LogicalResult CudaModule::lowerSumSquares(FunctionLowering &function,
                                          SumSquaresOp op) {
  FailureOr<PlaceAttr> scratch = function.scratchOf(op);
  if (failed(scratch))
    return failure();
  if (function.placeOf(op.getAccumulator()) != function.placeOf(op.getResult()))
    return op.emitOpError("expects its accumulator in the place of its result");
  CodeBuilder &host = function.getCode();
  FailureOr<Elements> elements = elementsOf(function, op, op.getX());
  if (failed(elements))
    return failure();
  SmallVector<Type> types = {elementOf(op.getX())};
  int64_t lanes = lanesOf(types), parts = squareParts(op.getX());
  Slots slots;
  unsigned countSlot = slots.add(elements->count);
  unsigned xSlot = slots.add(elements->pointers[0]);
  unsigned partsSlot = slots.add(function.address(*scratch));
  unsigned totalSlot = slots.add(function.address(op.getResult()));
  auto launchSums = [&] {
    return launchUnchecked(
        function, "squares", slots, blockThreads, host.i64(parts),
        [&](Kernel &kernel) {
          CodeBuilder &code = kernel.code;
          Type f64 = code.f64Type();
          Tensors sweep(kernel, {xSlot}, types, countSlot, lanes);
          Value shared =
              kernel.sharedMemory(blockThreads / warpThreads * sizeOf(f64));
          Value zero = code.constant(f64, 0.0);
          Value aligned = sweep.areAligned();
          // As many whole pieces as there are, then elements.
          Value whole = code.select(
              aligned, code.bitAnd(sweep.count, code.i64(-lanes)), code.i64(0));
          Value thread = kernel.globalThread();
          Value threads = code.mul(kernel.gridSize(), code.i64(blockThreads));
          auto add = [&](Value from, Value to, int64_t width, Value start) {
            return kernel.loop(
                code.add(from, code.mul(thread, code.i64(width))), to,
                code.mul(threads, code.i64(width)), start,
                [&](Value at, ValueRange carried) {
                  Value value =
                      code.convertFloat(sweep.load(0, at, width), f64);
                  Value square = code.horizontalSum(code.mul(value, value));
                  return SmallVector<Value>{code.add(carried[0], square)};
                })[0];
          };
          Value sum = add(code.i64(0), whole, lanes, zero);
          sum = add(whole, sweep.count, 1, sum);
          Value total = kernel.sumOfBlock(sum, shared)[0];
          code.ifThen(code.equal(kernel.thread(), code.i64(0)), [&] {
            code.store(total, code.offset(kernel.slot(partsSlot),
                                          kernel.blockIndex(), f64));
          });
        });
  };
  unlessAbsent(function, *elements, launchSums);
  unlessAbsent(function, *elements, [&] {
    return launchUnchecked(
        function, "total", slots, warpThreads, host.i64(1),
        [&](Kernel &kernel) {
          CodeBuilder &code = kernel.code;
          Type f64 = code.f64Type();
          code.ifThen(code.equal(kernel.thread(), code.i64(0)), [&] {
            Value total = kernel.slot(totalSlot);
            Value sum = code.load(total, f64);
            for (int64_t part = 0; part < parts; ++part)
              sum = code.add(
                  sum, code.loadField(kernel.slot(partsSlot), 8 * part, f64));
            code.store(sum, total);
          });
        });
  });
  return success();
}
