//===- Kernel.cpp - Emits what threads of a kernel share ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaLowering.h"

#include "dialects/dyna/RowBytes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numeric>

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

void Kernel::setRowBytes(int64_t bytes) {
  kRowBytes.set(function, code.getI64IntegerAttr(bytes));
}

/// Reads a special register once, at the beginning of the kernel.
Value Kernel::special(Value &known, function_ref<Value(CodeBuilder &)> make) {
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(code);
  code.setInsertionPointToStart(&function.getBody().front());
  return known = code.zeroExtend(make(code), code.i64Type());
}

Value Kernel::thread() {
  return special(threadValue, [](CodeBuilder &code) -> Value {
    return NVVM::ThreadIdXOp::create(code, code.i32Type());
  });
}

Value Kernel::blockIndex() {
  return special(blockValue, [](CodeBuilder &code) -> Value {
    return NVVM::BlockIdXOp::create(code, code.i32Type());
  });
}

Value Kernel::gridSize() {
  return special(gridValue, [](CodeBuilder &code) -> Value {
    return NVVM::GridDimXOp::create(code, code.i32Type());
  });
}

Value Kernel::sharedMemory(int64_t bytes) {
  OpBuilder builder = OpBuilder::atBlockBegin(kernels.getBody());
  constexpr unsigned sharedSpace = 3;
  auto global = LLVM::GlobalOp::create(
      builder, function.getLoc(),
      LLVM::LLVMArrayType::get(builder.getI8Type(), bytes),
      /*isConstant=*/false, LLVM::Linkage::Internal,
      (function.getName() + ".shared").str(), Attribute(), DYNA_BLOCK_ALIGNMENT,
      sharedSpace);
  OpBuilder::InsertionGuard guard(code);
  code.setInsertionPointToStart(&function.getBody().front());
  Value address = LLVM::AddressOfOp::create(code, global);
  return LLVM::AddrSpaceCastOp::create(code, code.pointerType(), address);
}

Value Kernel::table(ArrayRef<double> values) {
  OpBuilder builder = OpBuilder::atBlockBegin(kernels.getBody());
  auto type = RankedTensorType::get(values.size(), builder.getF64Type());
  auto contents = DenseElementsAttr::get(type, values);
  LLVM::GlobalOp global;
  int64_t tables = 0;
  for (auto known : kernels.getOps<LLVM::GlobalOp>()) {
    if (known.getValueOrNull() == contents)
      global = known;
    tables += bool(known.getValueOrNull());
  }
  if (!global)
    global = LLVM::GlobalOp::create(
        builder, kernels.getLoc(),
        LLVM::LLVMArrayType::get(builder.getF64Type(), values.size()),
        /*isConstant=*/true, LLVM::Linkage::Internal,
        "dyna_table" + std::to_string(tables), contents, DYNA_BLOCK_ALIGNMENT);
  return LLVM::AddressOfOp::create(code, global);
}

//===----------------------------------------------------------------------===//
// Between threads
//===----------------------------------------------------------------------===//

void Kernel::syncBlock() { NVVM::Barrier0Op::create(code); }

void Kernel::syncWarp() { NVVM::SyncWarpOp::create(code, code.i32(-1)); }

Value Kernel::shuffleXor(Value value, int64_t mask) {
  Type i32 = code.i32Type(), i64 = code.i64Type();
  auto shuffle = [&](Value bits) -> Value {
    return NVVM::ShflOp::create(code, i32, code.i32(-1), bits, code.i32(mask),
                                code.i32(warpThreads - 1), NVVM::ShflKind::bfly,
                                UnitAttr());
  };
  Type type = value.getType();
  if (type == i32)
    return shuffle(value);
  if (type.isF32())
    return code.bitcast(shuffle(code.bitcast(value, i32)), type);
  Value bits = code.bitcast(value, i64);
  Value low = shuffle(code.truncate(bits, i32));
  Value high = shuffle(code.truncate(code.shiftRight(bits, 32), i32));
  bits = code.bitOr(code.shiftLeft(code.zeroExtend(high, i64), 32),
                    code.zeroExtend(low, i64));
  return code.bitcast(bits, type);
}

Value Kernel::sumOfWarp(Value value) {
  // All lanes add the same numbers in the same tree.
  for (int64_t mask = warpThreads / 2; mask >= 1; mask /= 2)
    value = code.add(value, shuffleXor(value, mask));
  return value;
}

SmallVector<Value> Kernel::sumOfBlock(ArrayRef<Value> values, Value scratch) {
  int64_t warps = block / warpThreads;
  SmallVector<Value> sums;
  for (Value value : values)
    sums.push_back(sumOfWarp(value));
  if (warps == 1)
    return sums;
  Value lane = code.bitAnd(thread(), code.i64(warpThreads - 1));
  Value warp = code.shiftRight(thread(), 5);
  auto entry = [&](size_t sum, Value index) {
    Type type = sums[sum].getType();
    Value first = code.add(index, code.i64(static_cast<int64_t>(sum) * warps));
    return code.offset(scratch, first, type);
  };
  // Other threads may still read the old contents.
  syncBlock();
  code.ifThen(code.equal(lane, code.i64(0)), [&] {
    for (size_t i = 0; i < sums.size(); ++i)
      code.store(sums[i], entry(i, warp));
  });
  syncBlock();
  for (size_t i = 0; i < sums.size(); ++i) {
    Type type = sums[i].getType();
    Value total = code.load(entry(i, code.i64(0)), type);
    for (int64_t other = 1; other < warps; ++other)
      total = code.add(total, code.load(entry(i, code.i64(other)), type));
    sums[i] = total;
  }
  return sums;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

int64_t mlir::dyna::cuda::accessLanes(Type element, ArrayRef<int64_t> counts) {
  int64_t lanes = accessBytes / sizeOf(element);
  for (int64_t count : counts)
    lanes = std::gcd(lanes, count);
  return lanes;
}

void Kernel::forRow(Value rows, function_ref<void(Value row)> body) {
  Value first = code.mul(blockIndex(), code.i64(rowsPerBlock));
  Value row = code.add(first, code.shiftRight(thread(), 5));
  code.ifThen(code.less(row, rows), [&] { body(row); });
}

void Kernel::copyRow(Value from, Value to, int64_t width, Type element,
                     int64_t lanes) {
  Value lane = code.bitAnd(thread(), code.i64(warpThreads - 1));
  Type bits = code.getIntegerType(element.getIntOrFloatBitWidth());
  Type vector = VectorType::get(lanes, bits);
  int64_t alignment = lanes * sizeOf(element);
  code.forLoop(code.mul(lane, code.i64(lanes)), code.i64(width),
               warpThreads * lanes, [&](Value column) {
                 Value value =
                     from ? code.load(code.offset(from, column, element),
                                      vector, alignment)
                          : code.constant(vector, int64_t(0));
                 code.store(value, code.offset(to, column, element), alignment);
               });
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

SmallVector<Value>
Kernel::loop(Value begin, Value end, Value step, ValueRange carried,
             function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(code, begin, end, step, carried);
  OpBuilder::InsertionGuard guard(code);
  // A loop without carried values already has a terminator, so remove that.
  if (!loop.getBody()->empty())
    loop.getBody()->back().erase();
  code.setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(code, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

void Kernel::loop(Value begin, Value end, Value step,
                  function_ref<void(Value)> body) {
  loop(begin, end, step, {}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}
