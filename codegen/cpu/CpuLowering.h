//===- CpuLowering.h - Converts layer functions to CPU code -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Work that is no call of a kernel (codegen/layers) becomes *bodies* on the
// CPU: functions over a range of rows, which `dyna_launch` runs in parallel. A
// body reads an array of 8-byte slots (pointers, numbers) that the layer
// function fills on its stack.
//
//   @block.forward(context, params, ...) {
//     slots[0] = address of %x
//     slots[1] = address of %y
//     dyna_launch(context, @block.forward.body0, slots, 16, tq, 48) -> status
//     ...
//   @block.forward.body0(slots, begin, end, chunk) {
//     for row in [begin, end)
//       for columns ...
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CPU_CPULOWERING_H
#define DYNA_CODEGEN_CPU_CPULOWERING_H

#include "codegen/layers/FunctionLowering.h"

namespace mlir::dyna::cpu {

using namespace layers;

struct LoweringOptions {
  /// Generates code for f32 products too; products of f64 are always generated.
  bool generatedMatmul = false;
  /// Bits of the vectors that loops work in.
  int64_t vectorBits = 512;
  /// Results with more bytes than this bypass the cache, because the next
  /// reader would find nothing of them there.
  int64_t streamingBytes = 128 << 20;
};

class CpuLowering : public ModuleLowering {
public:
  CpuLowering(ModuleOp module, const LoweringOptions &options)
      : ModuleLowering(module), options(options) {}

  const LoweringOptions &getOptions() const { return options; }
  /// Returns the elements of one vector of `type` (bf16: of its f32 values).
  int64_t vectorWidth(Type type) const {
    return options.vectorBits / (type.isF64() ? 64 : 32);
  }

  /// Makes a `dyna_rows_body` of that name; `emit` gets its slots, begin, end,
  /// chunk.
  LLVM::LLVMFuncOp createBody(
      StringRef name, Location location,
      function_ref<void(CodeBuilder &, Value, Value, Value, Value)> emit);
  /// Returns a constant array of f64 in the module.
  LLVM::GlobalOp getTable(ArrayRef<double> values);

  /// Runs a body over `rows` rows.
  void launch(FunctionLowering &function, const Launch &launch, Value rows);
  /// Runs a body and returns the status without checking it, for use inside a
  /// branch.
  Value launchUnchecked(FunctionLowering &function, const Launch &launch,
                        Value rows);

  LLVM::LLVMFuncOp getMatmul(Type input, Type output) override;
  bool takesEpilogues() const override { return true; }
  FailureOr<PreparedRows> prepareEpilogue(FunctionLowering &function,
                                          RowsOp op) override;
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
  SmallVector<Attribute> passthrough(OpBuilder &builder) override;

  LoweringOptions options;
  unsigned tables = 0;
};

/// Returns the smallest chunk of rows of `width` elements for which splitting a
/// sweep pays.
int64_t minimumRows(int64_t width);

/// Emits code that clears a row of `width` elements.
void emitZeros(CodeBuilder &code, Value to, int64_t width, Type element,
               int64_t lanes);
/// Emits code that copies a row of `width` elements.
void emitCopy(CodeBuilder &code, Value from, Value to, int64_t width,
              Type element, int64_t lanes);

/// Fills `function`, a `dyna_matmul_function`, with a product of `type`.
void emitGeneratedMatmul(CpuLowering &module, LLVM::LLVMFuncOp function,
                         Type type);

} // namespace mlir::dyna::cpu

#endif // DYNA_CODEGEN_CPU_CPULOWERING_H
