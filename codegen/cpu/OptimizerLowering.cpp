//===- OptimizerLowering.cpp - Sweeps over parameters -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The optimizer, the global norm and casts run over the elements of the rows of
// a parameter that the caller gives (all of them, or this rank's), in blocks.
// All are bound by memory: what is read once is written once, in one sweep. A
// tensor whose `data` is null is left out (a tied parameter that another layer
// updates).
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
/// first element and the number of a run, which is static: a block, a vector of
/// `lanes` or one element.
static void
emitBlocks(CodeBuilder &code, Value begin, Value end, Value count,
           int64_t lanes,
           function_ref<void(Value first, int64_t elements)> sweep) {
  Value first = code.mul(begin, code.i64(blockElements));
  Value last = code.min(code.mul(end, code.i64(blockElements)), count);
  for (int64_t run : {blockElements, lanes, int64_t(1)}) {
    // Runs are powers of two.
    Value whole = code.bitAnd(code.sub(last, first), code.i64(-run));
    Value stop = code.add(first, whole);
    code.forLoop(first, stop, run, [&](Value at) { sweep(at, run); });
    first = stop;
  }
}

namespace {
/// The tensors of one sweep, all with the same elements.
struct Elements {
  SmallVector<Value> pointers;
  Value count;   ///< in the rows given
  Value isValid; ///< whether the rows are those of a part of the parameter
};
} // namespace

/// Looks the tensors up in the arrays of the signature.
static FailureOr<Elements> elementsOf(FunctionLowering &function, Operation *op,
                                      ArrayRef<Value> tensors) {
  CodeBuilder &code = function.getCode();
  Elements elements;
  Value rows;
  for (Value tensor : tensors) {
    PlaceAttr place = function.placeOf(tensor);
    if (!place.isArrayEntry())
      return op->emitOpError("expects its tensors in arrays of the signature, "
                             "which say how many rows are given, but one lies "
                             "in ")
             << place;
    elements.pointers.push_back(function.address(place));
    Value given = function.rowsOf(place);
    if (rows) {
      Value isSame = code.equal(given, rows);
      elements.isValid = code.bitAnd(elements.isValid, isSame);
      continue;
    }
    rows = given;
    int64_t all = typeOf(tensor).getDimSize(0);
    elements.isValid = code.lessUnsigned(rows, code.i64(all + 1));
  }
  RankedTensorType type = typeOf(tensors.front());
  int64_t rowElements = type.getNumElements() / type.getDimSize(0);
  elements.count = code.mul(rows, code.i64(rowElements));
  return elements;
}

/// Launches over the elements, unless there are none or one tensor is null.
static void launchElements(CpuModule &module, FunctionLowering &function,
                           const Launch &launch, const Elements &elements) {
  CodeBuilder &code = function.getCode();
  Value isAbsent = code.equal(elements.count, code.i64(0));
  for (Value pointer : elements.pointers)
    isAbsent = code.bitOr(isAbsent, code.isNull(pointer));
  Value blocks = code.ceilDiv(elements.count, code.i64(blockElements));
  auto choose = [&](Value condition, function_ref<Value()> yes,
                    function_ref<Value()> no) -> Value {
    auto branch = scf::IfOp::create(code, TypeRange(code.i32Type()), condition,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(code, yes());
    code.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(code, no());
    return branch.getResult(0);
  };
  function.check(choose(
      isAbsent, [&] { return code.i32(DYNA_OK); },
      [&] {
        return choose(
            elements.isValid,
            [&] { return module.launchUnchecked(function, launch, blocks); },
            [&] { return code.i32(DYNA_INVALID_ARGUMENT); });
      }));
}

/// A piece of a flat tensor at `pointer`. The first of a rank's rows may begin
/// anywhere, so nothing but an element's alignment is known.
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

/// The cast that makes the compute-type copy of the updated master, or null.
static CastOp castOf(AdamwOp op) {
  for (Operation *user : op.getNewMaster().getUsers())
    if (auto cast = dyn_cast<CastOp>(user))
      if (cast->getBlock() == op->getBlock())
        return cast;
  return CastOp();
}

static bool isFusedCast(CastOp op) {
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
                           ArrayRef<Value> pointers, ArrayRef<Type> types,
                           const Piece &piece) {
  auto splat = [&](Value scalar) { return code.splat(scalar, piece.width); };
  auto load = [&](unsigned i) {
    return loadPiece(code, pointers[i], types[i], piece);
  };
  auto store = [&](Value value, unsigned i) {
    storePiece(code, value, pointers[i], types[i], piece);
  };
  Value p = load(0), g = load(1), m = load(2), v = load(3);
  g = code.mul(g, splat(scalars.gradientScale));
  m = code.fma(m, splat(scalars.beta1), code.mul(g, splat(scalars.rest1)));
  v = code.fma(v, splat(scalars.beta2),
               code.mul(code.mul(g, g), splat(scalars.rest2)));
  Value root = code.fma(code.sqrt(v), splat(scalars.inverseRoot2),
                        splat(scalars.epsilon));
  Value step = code.div(code.mul(m, splat(scalars.stepSize)), root);
  p = code.sub(code.mul(p, splat(scalars.decay)), step);
  store(p, 0);
  store(code.like(g, 0.0), 1);
  store(m, 2);
  store(v, 3);
  if (pointers.size() > 4)
    store(p, 4);
}

LogicalResult CpuModule::lowerAdamw(FunctionLowering &function, AdamwOp op) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    if (function.placeOf(operand) != function.placeOf(op->getResult(index)))
      return op.emitOpError("expects operand ")
             << index << " in the place of result " << index;
  CodeBuilder &code = function.getCode();
  Type element = typeOf(op.getMaster()).getElementType();
  int64_t lanes = vectorWidth(element);
  SmallVector<Value> tensors(op.getOperands());
  if (CastOp copy = castOf(op))
    tensors.push_back(copy.getResult());
  auto types = llvm::map_to_vector(
      tensors, [](Value tensor) { return typeOf(tensor).getElementType(); });
  FailureOr<Elements> elements = elementsOf(function, op, tensors);
  if (failed(elements))
    return failure();
  AdamwScalars scalars = emitAdamwScalars(function, op.getDecay());
  Slots slots;
  SmallVector<unsigned> pointerSlots, scalarSlots;
  unsigned countSlot = slots.add(elements->count);
  for (Value pointer : elements->pointers)
    pointerSlots.push_back(slots.add(pointer));
  for (Value *scalar : scalars.all())
    scalarSlots.push_back(slots.add(*scalar));

  LLVM::LLVMFuncOp body = createBody(
      function.bodyName("adamw"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        AdamwScalars inner;
        for (auto [scalar, slot] : llvm::zip(inner.all(), scalarSlots))
          *scalar = code.convertFloat(slots.load(code, args, slot), element);
        SmallVector<Value> bases;
        for (unsigned slot : pointerSlots)
          bases.push_back(slots.load(code, args, slot));
        auto sweep = [&](Value first, int64_t run) {
          SmallVector<Value> starts;
          for (auto [index, base] : llvm::enumerate(bases))
            starts.push_back(code.offset(base, first, types[index]));
          code.forColumns(run, lanes, 2, [&](ArrayRef<Piece> pieces) {
            for (const Piece &piece : pieces)
              emitAdamwPiece(code, inner, starts, types, piece);
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
// Casts
//===----------------------------------------------------------------------===//

LogicalResult CpuModule::lowerCast(FunctionLowering &function, CastOp op) {
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

/// The body: leaves the sum of chunk `chunk` in partial[chunk].
static LLVM::LLVMFuncOp emitSumSquaresBody(CpuModule &module,
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

LogicalResult CpuModule::lowerSumSquares(FunctionLowering &function,
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

  // Fewer rows than all have fewer chunks, an absent tensor has none; those
  // that do not run leave their partial sums as they are: make them zero.
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
