//===- CudaLowering.cpp - Converts layer functions to CUDA code -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/CudaLowering.h"

#include "codegen/cuda/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

CudaLowering::CudaLowering(ModuleOp module) : ModuleLowering(module) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  kernels = ModuleOp::create(builder, module.getLoc(), kernelsName);
  Type pointer = LLVM::LLVMPointerType::get(module.getContext());
  Type i64 = builder.getI64Type();
  // The fields are images, their number, functions and their number.
  deviceCode = LLVM::GlobalOp::create(
      builder, module.getLoc(),
      LLVM::LLVMStructType::getLiteral(module.getContext(),
                                       {pointer, i64, pointer, i64}),
      /*isConstant=*/true, LLVM::Linkage::External, codeName, Attribute());
}

Value CudaLowering::launchUnchecked(FunctionLowering &function, StringRef what,
                                    const Slots &slots, int64_t block,
                                    Value grid,
                                    function_ref<void(Kernel &)> emit) {
  CodeBuilder &host = function.getCode();
  MLIRContext *context = getModule().getContext();
  OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
  std::string name = function.bodyName(what);
  // PTX has no dots in names.
  std::replace(name.begin(), name.end(), '.', '_');
  auto kernel = LLVM::LLVMFuncOp::create(
      builder, host.getLoc(), name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                  {host.pointerType()}));
  int64_t words = std::max<int64_t>(slots.bytes() / 8, 1);
  auto parameter = LLVM::LLVMArrayType::get(host.i64Type(), words);
  kernel.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(parameter));
  kernel.setArgAttr(0, LLVM::LLVMDialect::getAlignAttrName(),
                    builder.getI64IntegerAttr(8));
  kernel.setArgAttr(0, NVVM::NVVMDialect::getGridConstantAttrName(),
                    builder.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                  builder.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                  builder.getDenseI32ArrayAttr({static_cast<int32_t>(block)}));
  kernel.addEntryBlock(builder);

  Kernel state(kernels, kernel, slots, block);
  state.code.setTraits({/*roundsToBF16=*/true, /*hasLibm=*/false});
  // The first block computes what is needed once, because later code may
  // branch.
  state.code.setInsertionPointToStart(&kernel.getBody().front());
  LLVM::ReturnOp::create(state.code, ValueRange());
  state.code.setInsertionPoint(kernel.getBody().front().getTerminator());
  emit(state);

  LLVM::LLVMFuncOp launcher =
      declareKernel("dyna_launch_kernel",
                    {host.pointerType(), host.pointerType(), host.i64Type(),
                     host.pointerType(), host.i64Type(), host.i64Type()});
  Value code = LLVM::AddressOfOp::create(host, deviceCode);
  Value number = host.i64(count++);
  Value arguments = slots.store(host);
  return LLVM::CallOp::create(host, launcher,
                              ValueRange{function.getContext(), code, number,
                                         arguments, host.i64(8 * words), grid})
      .getResult();
}

LLVM::LLVMFuncOp CudaLowering::getMatmul(Type input, Type output) {
  Type pointer = LLVM::LLVMPointerType::get(getModule().getContext());
  StringRef name = input.isF64()     ? "dyna_matmul_f64"
                   : input.isF32()   ? "dyna_matmul_f32"
                   : output.isBF16() ? "dyna_matmul_bf16"
                                     : "dyna_matmul_bf16_f32";
  return declareKernel(name, {pointer, pointer});
}

void CudaLowering::copyRows(FunctionLowering &function, const RowsCopy &copy) {
  CodeBuilder &host = function.getCode();
  Slots slots;
  unsigned from = slots.add(copy.from), to = slots.add(copy.to);
  Value rows = function.getTokens(copy.activation);
  unsigned rowsSlot = slots.add(rows);
  int64_t lanes =
      accessLanes(copy.element, {copy.width, copy.fromStride, copy.toStride});
  launch(
      function, "copy", slots, rowsPerBlock * warpThreads,
      host.ceilDiv(rows, host.i64(rowsPerBlock)), [&](Kernel &kernel) {
        CodeBuilder &code = kernel.code;
        kernel.setRowBytes(2 * copy.width * sizeOf(copy.element));
        kernel.forRow(kernel.slot(rowsSlot), [&](Value row) {
          auto rowOf = [&](unsigned slot, int64_t stride) {
            return code.offset(kernel.slot(slot),
                               code.mul(row, code.i64(stride)), copy.element);
          };
          kernel.copyRow(rowOf(from, copy.fromStride), rowOf(to, copy.toStride),
                         copy.width, copy.element, lanes);
        });
      });
}
