//===- OptimizerLowering.cpp - Lowers sweeps over parameters --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers the optimizer, the global norm and casts. Every thread has a few
// elements. The first of a rank's rows may begin at any element. If all tensors
// of an op are aligned, as they are with all rows, a thread reads its elements
// in one access. Otherwise it reads them one by one.
//
// A layer has many tensors, most of them small. So consecutive ops of one kind
// are one launch. Its blocks are assigned to their tensors in order. Each block
// finds its tensor in a table, which is part of the kernel's struct:
//
//     table:  first block 0 | count | pointers      %w, 5 blocks
//             first block 5 | count | pointers      %b, 1 block
//             first block 6 | ...                   absent: no block
//             first block 6 | ...                   grid: 10 blocks
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaLowering.h"
#include "codegen/layers/Elements.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "runtime/abi/Kernels.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

static constexpr int64_t blockThreads = 256;
/// Sums of squares that the scratch memory of one has room for.
static constexpr int64_t squareSums = DYNA_MAX_CHUNKS;

//===----------------------------------------------------------------------===//
// Ops of one launch
//===----------------------------------------------------------------------===//

template <typename Op>
SmallVector<Op>
CudaLowering::takeRun(Op first, int64_t most,
                      function_ref<bool(Op before, Op op)> mayJoin) {
  if (launched.contains(first))
    return {};
  SmallVector<Op> run = {first};
  for (Operation *next = first->getNextNode();
       next && static_cast<int64_t>(run.size()) < most;
       next = next->getNextNode()) {
    // The update before the cast already writes its copy.
    if (auto copy = dyn_cast<CastOp>(next); copy && isFusedCast(copy))
      continue;
    auto op = dyn_cast<Op>(next);
    if (!op ||
        !llvm::all_of(run, [&](Op before) { return mayJoin(before, op); }))
      break;
    run.push_back(op);
    launched.insert(op);
  }
  return run;
}

static SmallVector<Value> tensorsOf(AdamwOp op) {
  SmallVector<Value> tensors(op.getOperands());
  if (CastOp copy = castOf(op))
    tensors.push_back(copy.getResult());
  return tensors;
}
static SmallVector<Value> tensorsOf(CastOp op) {
  return {op.getX(), op.getResult()};
}
static SmallVector<Value> tensorsOf(SumSquaresOp op) { return {op.getX()}; }

template <typename Op> static SmallVector<Type> typesOf(Op op) {
  return llvm::map_to_vector(tensorsOf(op),
                             [](Value tensor) { return elementOf(tensor); });
}

/// Returns true if no tensor of one op has the same place as one of the other.
/// They may then run in any order.
template <typename Op>
static bool areApart(FunctionLowering &function, Op a, Op b) {
  for (Value one : tensorsOf(a))
    for (Value other : tensorsOf(b))
      if (function.placeOf(one) == function.placeOf(other))
        return false;
  return true;
}

//===----------------------------------------------------------------------===//
// The table of their tensors
//===----------------------------------------------------------------------===//

namespace {

/// Table with an entry for each op: the number of its first block, its count of
/// elements, the addresses of its tensors and further arguments.
class TensorTable {
public:
  /// `words`: size of an entry beside its first block and count.
  TensorTable(FunctionLowering &function, Slots &slots, unsigned words)
      : function(function), slots(slots), words(2 + words) {
    CodeBuilder &host = function.getCode();
    blocks = host.i64(0);
    status = host.i32(DYNA_OK);
  }
  /// Entries for which a kernel's struct has room beside `others` slots.
  static int64_t room(unsigned words, int64_t others) {
    return (mostSlots - others) / (2 + words);
  }

  /// Adds an op with the blocks that it has for so many elements, none for none.
  LogicalResult add(Operation *op, ArrayRef<Value> tensors,
                    function_ref<Value(Value count)> blocksOf,
                    ArrayRef<Value> others = {}) {
    CodeBuilder &host = function.getCode();
    FailureOr<Elements> elements = elementsOf(function, op, tensors);
    if (failed(elements))
      return failure();
    Value absent = isAbsent(host, *elements);
    status = host.select(host.bitOr(absent, elements->isValid), status,
                         host.i32(DYNA_INVALID_ARGUMENT));
    Value count = host.select(absent, host.i64(0), elements->count);
    SmallVector<Value> entry = {blocks, count};
    llvm::append_range(entry, elements->pointers);
    llvm::append_range(entry, others);
    assert(entry.size() == words);
    for (Value word : entry)
      types.push_back(word.getType());
    unsigned at = slots.append(entry.front());
    if (entries++ == 0)
      begin = at;
    for (Value word : llvm::drop_begin(entry))
      slots.append(word);
    blocks = host.add(blocks, blocksOf(count));
    return success();
  }

  /// Returns the blocks of all ops together. Leaves the layer function if rows
  /// of one op are not valid.
  Value gridSize() {
    function.check(status);
    return blocks;
  }
  int64_t size() const { return entries; }

  /// Returns a word of an entry, in the kernel.
  Value word(Kernel &kernel, Value entry, unsigned number) {
    CodeBuilder &code = kernel.code;
    Value at = code.offset(kernel.arguments(), code.mul(entry, code.i64(words)),
                           code.i64Type());
    return code.loadField(at, 8 * (begin + number), types[number]);
  }
  Value firstBlock(Kernel &kernel, Value entry) {
    return word(kernel, entry, 0);
  }
  Value count(Kernel &kernel, Value entry) { return word(kernel, entry, 1); }
  /// Returns the address of a tensor, or further words of its entry.
  Value value(Kernel &kernel, Value entry, unsigned number) {
    return word(kernel, entry, 2 + number);
  }
  /// Finds the entry of this block: the last one that begins at or before it.
  Value find(Kernel &kernel) {
    CodeBuilder &code = kernel.code;
    Value found = code.i64(0), last = code.i64(entries - 1);
    for (int64_t step = llvm::PowerOf2Ceil(entries) / 2; step > 0; step /= 2) {
      Value later = code.min(code.add(found, code.i64(step)), last);
      Value isBehind =
          code.less(kernel.blockIndex(), firstBlock(kernel, later));
      found = code.select(isBehind, found, later);
    }
    return found;
  }

private:
  FunctionLowering &function;
  Slots &slots;
  const unsigned words;
  unsigned begin = 0;
  int64_t entries = 0;
  SmallVector<Type> types; ///< of the words of all entries, all alike
  Value blocks, status;
};

/// The tensors of this block, as the kernel sees them.
struct Tensors {
  Kernel &kernel;
  CodeBuilder &code;
  SmallVector<Value> pointers;
  SmallVector<Type> types;
  Value count;
  int64_t lanes;

  Tensors(Kernel &kernel, TensorTable &table, Value entry, ArrayRef<Type> types,
          int64_t lanes)
      : kernel(kernel), code(kernel.code), types(types),
        count(table.count(kernel, entry)), lanes(lanes) {
    for (unsigned i = 0; i < types.size(); ++i)
      pointers.push_back(table.value(kernel, entry, i));
  }

  /// Returns true if pieces of all tensors can be read in one access.
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
  /// Emits `piece` for the `lanes` elements of this thread, of which the entry's
  /// first block has the first.
  void visit(Value firstBlock,
             function_ref<void(Value at, int64_t width)> piece) {
    Value block = code.sub(kernel.blockIndex(), firstBlock);
    Value thread =
        code.add(code.mul(block, code.i64(blockThreads)), kernel.thread());
    Value first = code.mul(thread, code.i64(lanes));
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

/// Blocks of a sweep in which a thread has `lanes` elements.
static auto blocksOfSweep(CodeBuilder &host, int64_t lanes) {
  return [&host, lanes](Value count) {
    return host.ceilDiv(count, host.i64(blockThreads * lanes));
  };
}

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

/// Updates a few elements. If the factor of the gradients is NaN, these are
/// cleared, and nothing else changes.
static void emitAdamw(Tensors &sweep, const AdamwScalars &scalars, Value isLost,
                      Value at, int64_t width) {
  CodeBuilder &code = sweep.code;
  auto load = [&](unsigned i) { return sweep.load(i, at, width); };
  Value p = load(0), g = load(1), m = load(2), v = load(3);
  AdamwState state = emitAdamwStep(code, scalars, {p, m, v}, g);
  auto keep = [&](Value before, Value now) {
    return code.select(isLost, before, now);
  };
  Value master = keep(p, state.master);
  sweep.store(master, 0, at, width);
  sweep.store(code.like(g, 0.0), 1, at, width);
  sweep.store(keep(m, state.m), 2, at, width);
  sweep.store(keep(v, state.v), 3, at, width);
  if (sweep.types.size() > 4)
    sweep.store(master, 4, at, width);
}

LogicalResult CudaLowering::lowerAdamw(FunctionLowering &function, AdamwOp op) {
  for (auto [index, operand] : llvm::enumerate(op.getOperands()))
    if (function.placeOf(operand) != function.placeOf(op->getResult(index)))
      return op.emitOpError("expects operand ")
             << index << " in the place of result " << index;
  CodeBuilder &host = function.getCode();
  SmallVector<Type> types = typesOf(op);
  const unsigned tensors = types.size();
  // Each row of the table has the tensors and the factor of decay. Scalars are
  // apart.
  const unsigned words = tensors + 1;
  SmallVector<AdamwOp> run = takeRun<AdamwOp>(
      op, TensorTable::room(words, AdamwScalars().all().size() + 1),
      [&](AdamwOp before, AdamwOp op) {
        return typesOf(op) == types && areApart(function, before, op);
      });
  if (run.empty())
    return success();
  Type element = types.front();
  int64_t lanes = lanesOf(types);
  AdamwScalars scalars = emitAdamwScalars(function, /*decay=*/true);
  Slots slots;
  SmallVector<unsigned> scalarSlots;
  for (Value *scalar : scalars.all())
    scalarSlots.push_back(
        slots.add(*scalar = host.convertFloat(*scalar, element)));
  unsigned scaleSlot = slots.add(scalars.gradientScale);
  Value one = host.constant(element, 1.0);
  TensorTable table(function, slots, words);
  for (AdamwOp op : run)
    if (failed(table.add(op, tensorsOf(op), blocksOfSweep(host, lanes),
                         op.getDecay() ? scalars.decay : one)))
      return failure();
  launch(function, "adamw", slots, blockThreads, table.gridSize(),
         [&](Kernel &kernel) {
           CodeBuilder &code = kernel.code;
           Value entry = table.find(kernel);
           Tensors sweep(kernel, table, entry, types, lanes);
           AdamwScalars inner;
           for (auto [scalar, slot] : llvm::zip(inner.all(), scalarSlots))
             *scalar = kernel.slot(slot);
           inner.decay = table.value(kernel, entry, tensors);
           Value scale = code.load(kernel.slot(scaleSlot), code.f64Type());
           inner.gradientScale = code.convertFloat(scale, element);
           Value isLost = code.isNan(scale);
           sweep.visit(table.firstBlock(kernel, entry),
                       [&](Value at, int64_t width) {
                         emitAdamw(sweep, inner, isLost, at, width);
                       });
         });
  return success();
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

LogicalResult CudaLowering::lowerCast(FunctionLowering &function, CastOp op) {
  if (isFusedCast(op))
    return success();
  SmallVector<Type> types = typesOf(op);
  const unsigned words = types.size();
  SmallVector<CastOp> run = takeRun<CastOp>(
      op, TensorTable::room(words, 0), [&](CastOp before, CastOp op) {
        return typesOf(op) == types && areApart(function, before, op);
      });
  if (run.empty())
    return success();
  int64_t lanes = lanesOf(types);
  Slots slots;
  TensorTable table(function, slots, words);
  for (CastOp op : run)
    if (failed(table.add(op, tensorsOf(op),
                         blocksOfSweep(function.getCode(), lanes))))
      return failure();
  launch(function, "cast", slots, blockThreads, table.gridSize(),
         [&](Kernel &kernel) {
           CodeBuilder &code = kernel.code;
           Value entry = table.find(kernel);
           Tensors sweep(kernel, table, entry, types, lanes);
           sweep.visit(
               table.firstBlock(kernel, entry), [&](Value at, int64_t width) {
                 Value value = sweep.load(0, at, width);
                 Type type = getAccumulatorType(types[1]);
                 sweep.store(code.convertFloat(value, type), 1, at, width);
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
  // Count blocks and chunks as passes/memory/value/OpScratch.cpp does.
  constexpr int64_t blockElements = 1024, minimumBlocks = 32;
  int64_t blocks = llvm::divideCeil(typeOf(x).getNumElements(), blockElements);
  return std::min<int64_t>(llvm::divideCeil(blocks, minimumBlocks), squareSums);
}

/// Returns true if the partial sums of two ops have separate memory, so that
/// both can exist together.
static bool haveTheirParts(FunctionLowering &function, SumSquaresOp a,
                           SumSquaresOp b) {
  FailureOr<PlaceAttr> one = function.scratchOf(a),
                       other = function.scratchOf(b);
  if (failed(one) || failed(other))
    return false;
  auto isFixed = [](PlaceAttr place) {
    return place.getTq() == 0 && place.getTkv() == 0 && place.getS() == 0;
  };
  return isFixed(*one) && isFixed(*other) &&
         std::abs(one->getConstant() - other->getConstant()) >= 8 * squareSums;
}

/// Words of the table behind the tensor: its parts, unless it is absent, and where
/// their sums go.
enum SquaresWord : unsigned { PartCountWord = 1, PartsWord = 2 };

/// Emits the sum of a block over its share of a tensor, which goes to its place
/// among the parts.
static void emitSquares(Kernel &kernel, TensorTable &table,
                        ArrayRef<Type> types) {
  CodeBuilder &code = kernel.code;
  Type f64 = code.f64Type();
  const int64_t lanes = lanesOf(types);
  Value entry = table.find(kernel);
  Tensors sweep(kernel, table, entry, types, lanes);
  Value shared = kernel.sharedMemory(blockThreads / warpThreads * sizeOf(f64));
  Value zero = code.constant(f64, 0.0);
  // Handle whole pieces first, then single elements.
  Value whole =
      code.select(sweep.areAligned(),
                  code.bitAnd(sweep.count, code.i64(-lanes)), code.i64(0));
  Value part = code.sub(kernel.blockIndex(), table.firstBlock(kernel, entry));
  Value thread =
      code.add(code.mul(part, code.i64(blockThreads)), kernel.thread());
  Value threads = code.mul(table.value(kernel, entry, PartCountWord),
                           code.i64(blockThreads));
  auto add = [&](Value from, Value to, int64_t width, Value start) {
    return kernel.loop(
        code.add(from, code.mul(thread, code.i64(width))), to,
        code.mul(threads, code.i64(width)), start,
        [&](Value at, ValueRange carried) {
          Value value = code.convertFloat(sweep.load(0, at, width), f64);
          Value square = code.horizontalSum(code.mul(value, value));
          return SmallVector<Value>{code.add(carried[0], square)};
        })[0];
  };
  Value sum = add(code.i64(0), whole, lanes, zero);
  sum = add(whole, sweep.count, 1, sum);
  Value total = kernel.sumOfBlock(sum, shared)[0];
  Value parts = table.value(kernel, entry, PartsWord);
  code.ifThen(code.equal(kernel.thread(), code.i64(0)),
              [&] { code.store(total, code.offset(parts, part, f64)); });
}

/// Emits the total. One block adds the parts of all tensors to the value at
/// `total`, in order. Its threads read the parts side by side, and then one
/// thread adds them.
static void emitTotal(Kernel &kernel, TensorTable &table, Value total) {
  CodeBuilder &code = kernel.code;
  Type f64 = code.f64Type();
  const int64_t places = table.size() * squareSums;
  Value shared = kernel.sharedMemory(places * sizeOf(f64));
  code.forLoop(kernel.thread(), code.i64(places), blockThreads, [&](Value at) {
    Value entry = code.shiftRight(at, llvm::Log2_64(squareSums));
    Value part = code.bitAnd(at, code.i64(squareSums - 1));
    Value to = code.offset(shared, at, f64);
    Value none = code.i64(0);
    Value parts = code.select(code.equal(table.count(kernel, entry), none),
                              none, table.value(kernel, entry, PartCountWord));
    // Adding 0 does not change a sum of squares.
    code.ifThenElse(
        code.less(part, parts),
        [&] {
          Value parts = table.value(kernel, entry, PartsWord);
          code.store(code.load(code.offset(parts, part, f64), f64), to);
        },
        [&] { code.store(code.constant(f64, 0.0), to); });
  });
  kernel.syncBlock();
  code.ifThen(code.equal(kernel.thread(), code.i64(0)), [&] {
    Value sum = code.load(total, f64);
    sum = code.forLoop(code.i64(0), code.i64(places), squareSums, sum,
                       [&](Value at, ValueRange carried) {
                         Value first = code.offset(shared, at, f64);
                         Value sum = carried[0];
                         for (int64_t i = 0; i < squareSums; ++i)
                           sum =
                               code.add(sum, code.loadField(first, 8 * i, f64));
                         return SmallVector<Value>{sum};
                       })[0];
    code.store(sum, total);
  });
}

LogicalResult CudaLowering::lowerSumSquares(FunctionLowering &function,
                                            SumSquaresOp op) {
  if (function.placeOf(op.getAccumulator()) != function.placeOf(op.getResult()))
    return op.emitOpError("expects its accumulator in the place of its result");
  CodeBuilder &host = function.getCode();
  SmallVector<Type> types = typesOf(op);
  constexpr unsigned words = PartsWord + 1;
  constexpr int64_t sharedRoom = sharedBytes / (8 * squareSums);
  SmallVector<SumSquaresOp> run = takeRun<SumSquaresOp>(
      op, std::min(TensorTable::room(words, 1), sharedRoom),
      [&](SumSquaresOp before, SumSquaresOp op) {
        return typesOf(op) == types &&
               function.placeOf(op.getResult()) ==
                   function.placeOf(before.getResult()) &&
               haveTheirParts(function, before, op);
      });
  if (run.empty())
    return success();
  Slots slots;
  unsigned totalSlot = slots.add(function.address(op.getResult()));
  TensorTable table(function, slots, words);
  for (SumSquaresOp op : run) {
    FailureOr<PlaceAttr> scratch = function.scratchOf(op);
    if (failed(scratch))
      return failure();
    Value none = host.i64(0), parts = host.i64(squareParts(op.getX()));
    auto blocksOf = [&](Value count) {
      return host.select(host.equal(count, none), none, parts);
    };
    if (failed(table.add(op, tensorsOf(op), blocksOf,
                         {parts, function.address(*scratch)})))
      return failure();
  }
  Value blocks = table.gridSize();
  launch(function, "squares", slots, blockThreads, blocks,
         [&](Kernel &kernel) { emitSquares(kernel, table, types); });
  launch(function, "total", slots, blockThreads, host.min(blocks, host.i64(1)),
         [&](Kernel &kernel) {
           emitTotal(kernel, table, kernel.slot(totalSlot));
         });
  return success();
}
