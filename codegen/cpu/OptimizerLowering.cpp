//===- OptimizerLowering.cpp - Sweeps over parameters -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The optimizer, the global norm and casts run over the elements of one tensor
// of static size, in blocks. All are bound by memory: what is read once is
// written once, in one sweep. A tensor whose `data` is null is left out (a tied
// parameter that another layer updates).
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Lowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

/// Elements of a block, the unit that dyna_launch counts, and the fewest blocks
/// worth a chunk of their own.
static constexpr int64_t blockElements = 1024;
static constexpr int64_t minimumBlocks = 32;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Visits elements [begin, end) * blockElements of `count`: `sweep` gets the
/// first element and the number of a run of static length.
static void
emitBlocks(CodeBuilder &code, Value begin, Value end, int64_t count,
           function_ref<void(Value first, int64_t elements)> sweep) {
  int64_t whole = count / blockElements;
  code.forLoop(begin, code.min(end, code.i64(whole)), 1, [&](Value block) {
    sweep(code.mul(block, code.i64(blockElements)), blockElements);
  });
  if (count % blockElements == 0)
    return;
  code.ifThen(code.less(code.i64(whole), end), [&] {
    sweep(code.i64(whole * blockElements), count % blockElements);
  });
}

/// Launches over a tensor of `count` elements unless one of `pointers` is null.
static void launchElements(FunctionLowering &function, const Launch &launch,
                           int64_t count, ArrayRef<Value> pointers) {
  CodeBuilder &code = function.getCode();
  Value absent;
  for (Value pointer : pointers) {
    Value isNull = code.isNull(pointer);
    absent = absent ? code.bitOr(absent, isNull) : isNull;
  }
  int64_t blocks = (count + blockElements - 1) / blockElements;
  auto branch = scf::IfOp::create(code, TypeRange(code.i32Type()), absent,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(code, code.i32(DYNA_OK));
    code.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(code,
                         function.launchUnchecked(launch, code.i64(blocks)));
  }
  function.check(branch.getResult(0));
}

/// A piece of a flat tensor at `pointer`, which points at a block.
static Value loadPiece(CodeBuilder &code, Value pointer, Type element,
                       const Piece &piece) {
  return code.loadElements(code.offset(pointer, piece.column, element), element,
                           piece.width,
                           alignmentOf(piece, blockElements, element));
}

static void storePiece(CodeBuilder &code, Value value, Value pointer,
                       Type element, const Piece &piece) {
  code.storeElements(value, code.offset(pointer, piece.column, element),
                     element, alignmentOf(piece, blockElements, element));
}

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

/// The cast that makes the compute-type copy of the updated master, or null.
static CastOp castOf(AdamwOp op) {
  for (Operation *user : op.getNewMaster().getUsers())
    if (auto cast = dyn_cast<CastOp>(user))
      if (cast->getBlock() == op->getBlock())
        return cast;
  return CastOp();
}

bool mlir::dyna::cpu::isFusedCast(CastOp op) {
  auto adamw = op.getX().getDefiningOp<AdamwOp>();
  return adamw && castOf(adamw) == op;
}

namespace {
/// Scalars of the step that the sweep needs, in f64.
struct AdamwScalars {
  Value beta1, rest1, beta2, rest2, epsilon, decay, stepSize, inverseRoot2,
      gradientScale;
  SmallVector<Value *> all() {
    return {&beta1, &rest1,    &beta2,        &rest2,        &epsilon,
            &decay, &stepSize, &inverseRoot2, &gradientScale};
  }
};
} // namespace

static AdamwScalars emitAdamwScalars(FunctionLowering &function, bool decay) {
  CodeBuilder &code = function.getCode();
  auto field = [&](size_t offset) {
    return code.loadField(function.getContext(),
                          offsetof(dyna_context, optimizer) + offset,
                          code.f64Type());
  };
  Value one = code.constant(code.f64Type(), 1.0);
  AdamwScalars scalars;
  Value rate = field(offsetof(dyna_optimizer, learning_rate));
  scalars.beta1 = field(offsetof(dyna_optimizer, beta1));
  scalars.rest1 = code.sub(one, scalars.beta1);
  scalars.beta2 = field(offsetof(dyna_optimizer, beta2));
  scalars.rest2 = code.sub(one, scalars.beta2);
  scalars.epsilon = field(offsetof(dyna_optimizer, epsilon));
  scalars.decay = one;
  if (decay)
    scalars.decay = code.sub(
        one, code.mul(rate, field(offsetof(dyna_optimizer, weight_decay))));
  scalars.stepSize =
      code.div(rate, field(offsetof(dyna_optimizer, correction1)));
  scalars.inverseRoot2 =
      code.div(one, code.sqrt(field(offsetof(dyna_optimizer, correction2))));
  scalars.gradientScale = field(offsetof(dyna_optimizer, gradient_scale));
  return scalars;
}

/// One step for one vector of elements.
static void emitAdamwPiece(CodeBuilder &code, const AdamwScalars &scalars,
                           Type element, ArrayRef<Value> pointers,
                           Type copyType, const Piece &piece) {
  auto splat = [&](Value scalar) { return code.splat(scalar, piece.width); };
  Value p = loadPiece(code, pointers[0], element, piece);
  Value g = loadPiece(code, pointers[1], element, piece);
  Value m = loadPiece(code, pointers[2], element, piece);
  Value v = loadPiece(code, pointers[3], element, piece);
  g = code.mul(g, splat(scalars.gradientScale));
  m = code.fma(m, splat(scalars.beta1), code.mul(g, splat(scalars.rest1)));
  v = code.fma(v, splat(scalars.beta2),
               code.mul(code.mul(g, g), splat(scalars.rest2)));
  Value root = code.fma(code.sqrt(v), splat(scalars.inverseRoot2),
                        splat(scalars.epsilon));
  Value step = code.div(code.mul(m, splat(scalars.stepSize)), root);
  p = code.sub(code.mul(p, splat(scalars.decay)), step);
  storePiece(code, p, pointers[0], element, piece);
  storePiece(code, code.like(g, 0.0), pointers[1], element, piece);
  storePiece(code, m, pointers[2], element, piece);
  storePiece(code, v, pointers[3], element, piece);
  if (copyType)
    storePiece(code, p, pointers[4], copyType, piece);
}

LogicalResult mlir::dyna::cpu::lowerAdamw(FunctionLowering &function,
                                          AdamwOp op) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    if (function.placeOf(operand) != function.placeOf(op->getResult(index)))
      return op.emitOpError("expects operand ")
             << index << " in the place of result " << index;
  CodeBuilder &code = function.getCode();
  ModuleLowering &module = function.getModule();
  RankedTensorType type = typeOf(op.getMaster());
  Type element = type.getElementType();
  int64_t lanes = module.vectorWidth(element);
  CastOp copy = castOf(op);
  Type copyType = copy ? typeOf(copy.getResult()).getElementType() : Type();

  SmallVector<Value> pointers;
  for (Value operand : op.getOperands())
    pointers.push_back(function.address(operand));
  if (copy)
    pointers.push_back(function.address(copy.getResult()));
  AdamwScalars scalars = emitAdamwScalars(function, op.getDecay());
  Slots slots;
  SmallVector<unsigned> pointerSlots, scalarSlots;
  for (Value pointer : pointers)
    pointerSlots.push_back(slots.add(pointer));
  for (Value *scalar : scalars.all())
    scalarSlots.push_back(slots.add(*scalar));

  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("adamw"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        AdamwScalars inner;
        for (auto [scalar, slot] : llvm::zip(inner.all(), scalarSlots))
          *scalar = code.convertFloat(slots.load(code, args, slot), element);
        SmallVector<Value> bases;
        for (unsigned slot : pointerSlots)
          bases.push_back(slots.load(code, args, slot));
        auto sweep = [&](Value first, int64_t elements) {
          SmallVector<Value> starts;
          for (auto [index, base] : llvm::enumerate(bases))
            starts.push_back(
                code.offset(base, first, index == 4 ? copyType : element));
          code.forColumns(elements, lanes, 2, [&](ArrayRef<Piece> pieces) {
            for (const Piece &piece : pieces)
              emitAdamwPiece(code, inner, element, starts, copyType, piece);
          });
        };
        emitBlocks(code, begin, end, type.getNumElements(), sweep);
      });
  launchElements(function,
                 {body, slots.store(code), slots.bytes(), minimumBlocks},
                 type.getNumElements(), pointers);
  return success();
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

LogicalResult mlir::dyna::cpu::lowerCast(FunctionLowering &function,
                                         CastOp op) {
  if (isFusedCast(op))
    return success();
  CodeBuilder &code = function.getCode();
  ModuleLowering &module = function.getModule();
  RankedTensorType type = typeOf(op.getX());
  Type from = type.getElementType();
  Type to = typeOf(op.getResult()).getElementType();
  SmallVector<Value> pointers = {function.address(op.getX()),
                                 function.address(op.getResult())};
  Slots slots;
  unsigned fromSlot = slots.add(pointers[0]), toSlot = slots.add(pointers[1]);
  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("cast"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        Value source = slots.load(code, args, fromSlot);
        Value result = slots.load(code, args, toSlot);
        auto sweep = [&](Value first, int64_t elements) {
          Value sourceStart = code.offset(source, first, from);
          Value resultStart = code.offset(result, first, to);
          code.forColumns(
              elements, module.vectorWidth(from), 4,
              [&](ArrayRef<Piece> pieces) {
                for (const Piece &piece : pieces) {
                  Value value = loadPiece(code, sourceStart, from, piece);
                  value = code.convertFloat(value, getAccumulatorType(to));
                  storePiece(code, value, resultStart, to, piece);
                }
              });
        };
        emitBlocks(code, begin, end, type.getNumElements(), sweep);
      });
  launchElements(function,
                 {body, slots.store(code), slots.bytes(), minimumBlocks},
                 type.getNumElements(), pointers);
  return success();
}

//===----------------------------------------------------------------------===//
// Sum of squares
//===----------------------------------------------------------------------===//

/// The body: leaves the sum of chunk `chunk` in partial[chunk].
static LLVM::LLVMFuncOp emitSumSquaresBody(FunctionLowering &function,
                                           SumSquaresOp op, const Slots &slots,
                                           unsigned xSlot,
                                           unsigned partialSlot) {
  RankedTensorType type = typeOf(op.getX());
  Type element = type.getElementType();
  int64_t lanes = function.getModule().vectorWidth(element);
  return function.getModule().createBody(
      function.bodyName("squares"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value chunk) {
        Type f64 = code.f64Type();
        Value x = slots.load(code, args, xSlot);
        Value partial =
            code.offset(slots.load(code, args, partialSlot), chunk, f64);
        code.store(code.constant(f64, 0.0), partial);
        emitBlocks(
            code, begin, end, type.getNumElements(),
            [&](Value first, int64_t elements) {
              Value start = code.offset(x, first, element);
              SmallVector<Value> sum = code.sumColumns(
                  elements, lanes, 2, 1, f64, [&](ArrayRef<Piece> pieces) {
                    SmallVector<Value> squares;
                    for (const Piece &piece : pieces) {
                      Value value = code.convertFloat(
                          loadPiece(code, start, element, piece), f64);
                      squares.push_back(code.mul(value, value));
                    }
                    return squares;
                  });
              code.store(code.add(code.load(partial, f64), sum[0]), partial);
            });
      });
}

LogicalResult mlir::dyna::cpu::lowerSumSquares(FunctionLowering &function,
                                               SumSquaresOp op) {
  FailureOr<PlaceAttr> scratch = function.scratchOf(op);
  if (failed(scratch))
    return failure();
  if (function.placeOf(op.getAccumulator()) != function.placeOf(op.getResult()))
    return op.emitOpError("expects its accumulator in the place of its result");
  CodeBuilder &code = function.getCode();
  int64_t count = typeOf(op.getX()).getNumElements();
  Value x = function.address(op.getX());
  Value total = function.address(op.getResult());
  Value partials = function.address(*scratch);
  Slots slots;
  unsigned xSlot = slots.add(x), partialSlot = slots.add(partials);
  LLVM::LLVMFuncOp body =
      emitSumSquaresBody(function, op, slots, xSlot, partialSlot);

  // An absent tensor leaves the partial sums as they are: make them zero.
  int64_t blocks = (count + blockElements - 1) / blockElements;
  int64_t chunks = dyna_chunk_count(blocks, minimumBlocks);
  Type f64 = code.f64Type();
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    code.storeField(code.constant(f64, 0.0), partials, 8 * chunk);
  launchElements(function,
                 {body, slots.store(code), slots.bytes(), minimumBlocks}, count,
                 x);
  Value sum = code.load(total, f64);
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    sum = code.add(sum, code.loadField(partials, 8 * chunk, f64));
  code.store(sum, total);
  return success();
}
