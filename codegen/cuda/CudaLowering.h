//===- CudaLowering.h - Converts layer functions to CUDA code ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Work that is no call of a kernel library (codegen/layers) becomes *kernels*:
// functions of a module inside the module, which the layer function launches.
//
//   module {
//     llvm.func @block.forward(context, params, ...) {
//       slots[0] = address of %x
//       slots[1] = tokens
//       dyna_launch_kernel(context, @dyna_device_code, 3, slots, 16, blocks)
//       ...
//     module @dyna_kernels {
//       llvm.func @block.forward.rows0(slots) attributes {nvvm.kernel, ...}
//
// A kernel has one parameter, a struct of 8-byte slots (pointers, numbers), by
// value. Blocks and threads are counted in one dimension. docs/cuda.md explains
// how threads share a sweep.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CUDA_CUDALOWERING_H
#define DYNA_CODEGEN_CUDA_CUDALOWERING_H

#include "codegen/layers/FunctionLowering.h"
#include "runtime/abi/Abi.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::dyna::cuda {

using namespace layers;

/// Name of the module of kernels.
inline constexpr llvm::StringLiteral kernelsName = "dyna_kernels";

inline constexpr int64_t warpThreads = 32;
/// Bytes that a thread reads or writes at once.
inline constexpr int64_t accessBytes = 16;
/// Bytes of shared memory that every block of every architecture can have.
inline constexpr int64_t sharedBytes = 48 << 10;
/// Slots of a kernel's struct, which may have 4 KiB.
inline constexpr int64_t mostSlots = 512;
/// Number of blocks that sums of squares are split into. It is fixed, so that
/// results do not depend on the device. Scratch memory has room for as many.
inline constexpr int64_t sumParts = DYNA_MAX_CHUNKS;

/// Rows of a block in which each warp has one row.
inline constexpr int64_t rowsPerBlock = 4;

/// Returns how many elements a thread can read or write at once. All of
/// `counts`, the widths and strides of the tensors, are multiples of this
/// number.
int64_t accessLanes(Type element, ArrayRef<int64_t> counts);

/// Builds the code of a kernel, as one thread sees it.
class Kernel {
public:
  Kernel(ModuleOp kernels, LLVM::LLVMFuncOp function, const Slots &slots,
         int64_t block)
      : code(function.getLoc(), function.getContext()), kernels(kernels),
        function(function), slots(slots), block(block) {}

  CodeBuilder code;

  Value slot(unsigned index) {
    return slots.load(code, function.getArgument(0), index);
  }
  Value arguments() { return function.getArgument(0); }
  int64_t blockThreads() const { return block; }
  /// Records the least bytes that the kernel moves per row
  /// (dialects/dyna/RowBytes.h).
  void setRowBytes(int64_t bytes);
  Value thread(); ///< in its block, i64
  Value blockIndex();
  Value gridSize();

  /// Returns the shared memory of the block, one piece of `bytes`; call this
  /// once.
  Value sharedMemory(int64_t bytes);
  /// Returns a constant array of f64.
  Value table(ArrayRef<double> values);

  void syncBlock();
  void syncWarp();
  /// Returns `value` (f32, f64, i32) of the lane with index xor `mask`.
  Value shuffleXor(Value value, int64_t mask);
  /// Returns the sum of a scalar over the warp, known to all its lanes.
  Value sumOfWarp(Value value);
  /// Returns the sums of scalars over the block, known to all its threads. Uses
  /// shared memory at `scratch`: `blockThreads() / 32` entries for each sum.
  SmallVector<Value> sumOfBlock(ArrayRef<Value> values, Value scratch);

  /// Emits `body` with the row of this warp, in a block of `rowsPerBlock`
  /// warps. A warp beyond the last row does nothing.
  void forRow(Value rows, function_ref<void(Value row)> body);
  /// Emits code in which the warp copies a row, or clears it if `from` is null.
  void copyRow(Value from, Value to, int64_t width, Type element,
               int64_t lanes);

  /// Emits a loop like CodeBuilder::forLoop, with a step that is known only at
  /// run time.
  SmallVector<Value>
  loop(Value begin, Value end, Value step, ValueRange carried,
       function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void loop(Value begin, Value end, Value step, function_ref<void(Value)> body);

private:
  Value special(Value &known, function_ref<Value(CodeBuilder &)> make);

  ModuleOp kernels;
  LLVM::LLVMFuncOp function;
  const Slots &slots;
  int64_t block;
  Value threadValue, blockValue, gridValue;
};

class CudaLowering : public ModuleLowering {
public:
  explicit CudaLowering(ModuleOp module);

  /// Makes a kernel with blocks of `block` threads, and launches `grid` of them
  /// (0: does not launch). Returns the status, unchecked.
  Value launchUnchecked(FunctionLowering &function, StringRef what,
                        const Slots &slots, int64_t block, Value grid,
                        function_ref<void(Kernel &)> emit);
  void launch(FunctionLowering &function, StringRef what, const Slots &slots,
              int64_t block, Value grid, function_ref<void(Kernel &)> emit) {
    function.check(launchUnchecked(function, what, slots, block, grid, emit));
  }

  LLVM::LLVMFuncOp getMatmul(Type input, Type output) override;
  bool takesEpilogues() const override { return false; }
  LogicalResult lowerRows(FunctionLowering &function, RowsOp op) override;
  LogicalResult lowerEmbedding(FunctionLowering &function,
                               EmbeddingOp op) override;
  LogicalResult lowerTableGradient(FunctionLowering &function, Operation *op,
                                   Value dy, Value accumulator, Value ids,
                                   ShardAttr shard) override;
  LogicalResult lowerAdamw(FunctionLowering &function, AdamwOp op) override;
  LogicalResult lowerSumSquares(FunctionLowering &function,
                                SumSquaresOp op) override;
  LogicalResult lowerCast(FunctionLowering &function, CastOp op) override;
  void copyRows(FunctionLowering &function, const RowsCopy &copy) override;

private:
  /// Returns the ops over parameters that one launch does: `first` and the ops
  /// of its kind directly after it, as far as they may run together. Returns
  /// none if an earlier launch has done `first`.
  template <typename Op>
  SmallVector<Op> takeRun(Op first, int64_t most,
                          function_ref<bool(Op before, Op op)> mayJoin);

  ModuleOp kernels;
  LLVM::GlobalOp deviceCode;
  int64_t count = 0;
  /// Ops that an earlier op's launch includes.
  DenseSet<Operation *> launched;
};

} // namespace mlir::dyna::cuda

#endif // DYNA_CODEGEN_CUDA_CUDALOWERING_H
