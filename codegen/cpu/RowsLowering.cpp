//===- RowsLowering.cpp - Lowers sweeps over rows ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lowers a `dyna.rows` (codegen/rows) to a body that `dyna_launch` or a product
// runs. Its arguments are slots, its memory is the stack, and columns are
// vectors, one after another.
//
// Results that sum over rows (gradients of vectors) are added up per chunk,
// each chunk in its own row of the scratch memory. A second launch, over
// columns, adds these in the order of the chunks. Chunks depend on the number
// of rows alone, so the sums are equal for any number of threads.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuLowering.h"
#include "codegen/layers/RowsSlots.h"

#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

namespace {
/// The slots of a sweep's body, and one that says whether to bypass the cache.
struct CpuRowsSlots : RowsSlots {
  std::optional<unsigned> streaming;
};

class CpuRows : public RowsTarget {
public:
  CpuRows(CpuLowering &module, const CpuRowsSlots &slots, CodeBuilder &code,
          Value args, Type accumulator)
      : module(module), slots(slots), builder(code), args(args),
        lanes(module.vectorWidth(accumulator)) {}

  void emit(RowsOp op, const RowsPlan &plan, Value begin, Value end,
            Value chunk);

private:
  CodeBuilder &code() override { return builder; }
  Value argument(unsigned number) override {
    return slots.slots.load(builder, args, number);
  }
  Value takeMemory(int64_t bytes) override { return builder.stack(bytes); }
  Value table(ArrayRef<double> values) override {
    LLVM::GlobalOp global = module.getTable(values);
    return LLVM::AddressOfOp::create(builder, global);
  }
  /// Prefetches. Arithmetic heavier than a few operations leaves too few loads
  /// in flight to keep the memory busy.
  void prefetch(Value row, const Piece &piece, Type element) override;
  SmallVector<Value>
  sumColumns(int64_t count, int64_t unroll, unsigned sums, Type type,
             function_ref<SmallVector<Value>(ArrayRef<Piece>)> body) override {
    return builder.sumColumns(count, lanes, unroll, sums, type, body);
  }
  void
  turnHeads(int64_t half, int64_t heads, Type type,
            function_ref<Angles(const Piece &)> angles,
            function_ref<void(Value, const Piece &, function_ref<Angles()>)>
                turn) override;

  CpuLowering &module;
  const CpuRowsSlots &slots;
  CodeBuilder &builder;
  Value args;
  int64_t lanes;
};
} // namespace

void CpuRows::prefetch(Value row, const Piece &piece, Type element) {
  constexpr int32_t distance = 2048;
  if (piece.width < lanes)
    return;
  Value ahead = LLVM::GEPOp::create(
      builder, builder.pointerType(), builder.getIntegerType(8),
      builder.offset(row, piece.column, element),
      ArrayRef<LLVM::GEPArg>{distance}); // may be past the end of the tensor
  LLVM::Prefetch::create(builder, ahead, /*rw=*/0, /*hint=*/3, /*cache=*/1);
}

/// Computes all angles of the row first, on the stack, then turns head by head.
void CpuRows::turnHeads(
    int64_t half, int64_t heads, Type type,
    function_ref<Angles(const Piece &)> angles,
    function_ref<void(Value, const Piece &, function_ref<Angles()>)> turn) {
  Value cosines = takeMemory(half * sizeOf(type));
  Value sines = takeMemory(half * sizeOf(type));
  auto at = [&](Value base, const Piece &piece) {
    return builder.offset(base, piece.column, type);
  };
  forColumns(half, 1, [&](ArrayRef<Piece> pieces) {
    for (const Piece &piece : pieces) {
      auto [sine, cosine] = angles(piece);
      int64_t alignment = alignmentOf(piece, half, type);
      builder.storeElements(sine, at(sines, piece), type, alignment);
      builder.storeElements(cosine, at(cosines, piece), type, alignment);
    }
  });
  builder.forLoop(
      builder.i64(0), builder.i64(heads * 2 * half), 2 * half, [&](Value head) {
        forColumns(half, 1, [&](ArrayRef<Piece> pieces) {
          for (const Piece &piece : pieces)
            turn(head, piece, [&]() -> Angles {
              auto load = [&](Value base) {
                return builder.loadElements(at(base, piece), type, piece.width,
                                            alignmentOf(piece, half, type));
              };
              Value sine = load(sines), cosine = load(cosines);
              return {sine, cosine};
            });
        });
      });
}

void CpuRows::emit(RowsOp op, const RowsPlan &plan, Value begin, Value end,
                   Value chunk) {
  RowsEmitter emitter(*this, op, plan, slots.arguments);
  emitter.begin(chunk);
  if (!slots.streaming)
    return emitter.emitRows(begin, end, /*streams=*/false);
  Value yes = builder.equal(argument(*slots.streaming), builder.i64(1));
  builder.ifThenElse(
      yes,
      [&] {
        emitter.emitRows(begin, end, /*streams=*/true);
        // Streaming stores may become visible after the chunk is reported done.
        LLVM::FenceOp::create(builder, LLVM::AtomicOrdering::seq_cst);
      },
      [&] { emitter.emitRows(begin, end, /*streams=*/false); });
}

//===----------------------------------------------------------------------===//
// The layer function's side
//===----------------------------------------------------------------------===//

/// Lets the body choose between ordinary and streaming stores. The latter can
/// be faster if the sweep stands alone, adds nothing up, and writes whole cache
/// lines that it has not just read.
static void addStreamingSlot(CpuLowering &module, FunctionLowering &function,
                             RowsOp op, const RowsPlan &plan,
                             CpuRowsSlots &slots) {
  int64_t rowBytes = 0;
  for (auto &[value, results] : plan.yields)
    for (unsigned result : results) {
      int64_t bytes = plan.width * sizeOf(elementOf(value));
      if (bytes % DYNA_BLOCK_ALIGNMENT != 0)
        return;
      rowBytes += bytes;
      for (auto [operand, slot] : slots.arguments.operands)
        if (function.placeOf(operand) == function.placeOf(op.getResult(result)))
          return;
    }
  if (!plan.accumulations.empty() || !plan.rotaries.empty())
    return;
  CodeBuilder &code = function.getCode();
  Value bytes = code.mul(function.getTokens(op), code.i64(rowBytes));
  Value limit = code.i64(module.getOptions().streamingBytes);
  Value large = code.less(limit, bytes);
  slots.streaming =
      slots.slots.add(code.select(large, code.i64(1), code.i64(0)));
}

namespace {
/// The body that adds the chunks' partial sums, rows of `from`, to the
/// accumulator, of type `element`. The sum is rounded to a narrower type once.
struct PartialSums {
  CodeBuilder &code;
  int64_t width, lanes;
  Type type, element;
  Value from, to, count;

  /// Columns of the partial sums of `chunk` go to `target`.
  void addRow(Value chunk, Value target, Type targetType, Value first,
              int64_t columns) {
    Value start = code.add(code.mul(chunk, code.i64(width)), first);
    Value source = code.offset(from, start, type);
    target = code.offset(target, first, targetType);
    code.forColumns(columns, lanes, 4, [&](ArrayRef<Piece> pieces) {
      for (const Piece &piece : pieces) {
        auto load = [&](Value base, Type stored) {
          return code.loadElements(code.offset(base, piece.column, stored),
                                   stored, piece.width,
                                   alignmentOf(piece, width, stored));
        };
        Value sum = code.add(load(target, targetType), load(source, type));
        code.storeElements(sum, code.offset(target, piece.column, targetType),
                           targetType, alignmentOf(piece, width, targetType));
      }
    });
  }

  void addBlock(Value first, int64_t columns) {
    if (element == type) {
      code.forLoop(code.i64(0), count, 1, [&](Value chunk) {
        addRow(chunk, to, type, first, columns);
      });
      return;
    }
    // Add one chunk together with the first one, then the others at once.
    code.forLoop(code.i64(1), count, 1, [&](Value chunk) {
      addRow(chunk, from, type, first, columns);
    });
    code.ifThen(code.less(code.i64(0), count),
                [&] { addRow(code.i64(0), to, element, first, columns); });
  }
};
} // namespace

/// Adds the partial sums to the accumulator, a launch over columns.
static void addPartials(CpuLowering &module, FunctionLowering &function,
                        const RowsPlan &plan, Value partials, Value accumulator,
                        Type element, Value chunks) {
  CodeBuilder &code = function.getCode();
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
        PartialSums sums = {code, width, lanes, type, element, from, to, count};
        code.forLoop(begin, code.min(end, code.i64(whole)), 1,
                     [&](Value index) {
                       sums.addBlock(code.mul(index, code.i64(block)), block);
                     });
        if (width % block != 0)
          code.ifThen(code.less(code.i64(whole), end), [&] {
            sums.addBlock(code.i64(whole * block), width % block);
          });
      });
  module.launch(function,
                {body, slots.store(code), slots.bytes(), /*minRows=*/16},
                code.i64((width + block - 1) / block));
}

static FailureOr<PreparedRows> prepareRows(CpuLowering &module,
                                           FunctionLowering &function,
                                           RowsOp op, bool isEpilogue) {
  FailureOr<RowsPlan> plan = planRows(op);
  if (failed(plan))
    return failure();
  FailureOr<RowsSlots> collected = collectSlots(function, op, *plan);
  if (failed(collected))
    return failure();
  CpuRowsSlots slots = {*collected, std::nullopt};
  if (!isEpilogue)
    addStreamingSlot(module, function, op, *plan, slots);
  if (failed(checkSums(function, op, *plan)))
    return failure();

  LLVM::LLVMFuncOp body = module.createBody(
      function.bodyName("rows"), op.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value chunk) {
        CpuRows(module, slots, code, args, plan->accumulator)
            .emit(op, *plan, begin, end, chunk);
      });
  CodeBuilder &code = function.getCode();
  int64_t minRows = minimumRows(plan->width);
  PreparedRows prepared;
  prepared.launch = {body, slots.slots.store(code), slots.slots.bytes(),
                     minRows};
  prepared.finish = [&module, &function, op, plan = *plan, slots, minRows] {
    if (plan.accumulations.empty())
      return;
    CodeBuilder &code = function.getCode();
    Value rows = function.getTokens(op);
    // Compute the same as dyna_chunk_rows and dyna_chunk_count.
    Value even = code.ceilDiv(rows, code.i64(DYNA_MAX_CHUNKS));
    Value chunks = code.ceilDiv(rows, code.max(even, code.i64(minRows)));
    for (auto [index, sum] : llvm::enumerate(plan.accumulations))
      addPartials(module, function, plan,
                  slots.slots.get(slots.arguments.partials[index]),
                  function.address(sum.accumulator), elementOf(sum.accumulator),
                  chunks);
  };
  return prepared;
}

FailureOr<PreparedRows> CpuLowering::prepareEpilogue(FunctionLowering &function,
                                                     RowsOp op) {
  return prepareRows(*this, function, op, /*isEpilogue=*/true);
}

LogicalResult CpuLowering::lowerRows(FunctionLowering &function, RowsOp op) {
  FailureOr<PreparedRows> prepared =
      prepareRows(*this, function, op, /*isEpilogue=*/false);
  if (failed(prepared))
    return failure();
  launch(function, prepared->launch, function.getTokens(op));
  prepared->finish();
  return success();
}
