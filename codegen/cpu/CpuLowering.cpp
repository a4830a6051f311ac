//===- CpuLowering.cpp - Converts layer functions to CPU code -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuLowering.h"

#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

int64_t mlir::dyna::cpu::minimumRows(int64_t width) {
  // 16 K elements take some microseconds, ten times a launch. The sweep may be
  // the epilogue of a matrix product, whose tiles need a multiple of 32.
  int64_t rows = (16384 + width - 1) / width;
  return std::max<int64_t>((rows + 31) / 32 * 32, 32);
}

LLVM::LLVMFuncOp CpuLowering::createBody(
    StringRef name, Location location,
    function_ref<void(CodeBuilder &, Value, Value, Value, Value)> emit) {
  CodeBuilder code(location, getModule().getContext());
  LLVM::LLVMFuncOp body = createFunction(
      name, location, LLVM::LLVMVoidType::get(getModule().getContext()),
      {code.pointerType(), code.i64Type(), code.i64Type(), code.i64Type()},
      /*isPublic=*/false);
  code.setInsertionPointToStart(&body.getBody().front());
  emit(code, body.getArgument(0), body.getArgument(1), body.getArgument(2),
       body.getArgument(3));
  LLVM::ReturnOp::create(code, ValueRange());
  return body;
}

LLVM::LLVMFuncOp CpuLowering::getMatmul(Type input, Type output) {
  MLIRContext *context = getModule().getContext();
  Type pointer = LLVM::LLVMPointerType::get(context);
  if (input.isBF16())
    return declareKernel(output.isBF16() ? "dyna_matmul_bf16"
                                         : "dyna_matmul_bf16_f32",
                         {pointer, pointer});
  if (input.isF32() && !options.generatedMatmul)
    return declareKernel("dyna_matmul_f32", {pointer, pointer});
  StringRef name =
      input.isF64() ? "dyna_generated_matmul_f64" : "dyna_generated_matmul_f32";
  if (auto function = getModule().lookupSymbol<LLVM::LLVMFuncOp>(name))
    return function;
  LLVM::LLVMFuncOp function =
      createFunction(name, getModule().getLoc(), IntegerType::get(context, 32),
                     {pointer, pointer}, /*isPublic=*/false);
  emitGeneratedMatmul(*this, function, input);
  return function;
}

LLVM::GlobalOp CpuLowering::getTable(ArrayRef<double> values) {
  OpBuilder builder = OpBuilder::atBlockBegin(getModule().getBody());
  auto type = RankedTensorType::get(values.size(), builder.getF64Type());
  auto contents = DenseElementsAttr::get(type, values);
  for (auto global : getModule().getOps<LLVM::GlobalOp>())
    if (global.getValueOrNull() == contents)
      return global;
  return LLVM::GlobalOp::create(
      builder, getModule().getLoc(),
      LLVM::LLVMArrayType::get(builder.getF64Type(), values.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal,
      "dyna_table" + std::to_string(tables++), contents, /*alignment=*/64);
}

Value CpuLowering::launchUnchecked(FunctionLowering &function,
                                   const Launch &launch, Value rows) {
  CodeBuilder &code = function.getCode();
  LLVM::LLVMFuncOp kernel =
      declareKernel("dyna_launch",
                    {code.pointerType(), code.pointerType(), code.pointerType(),
                     code.i64Type(), code.i64Type(), code.i64Type()});
  Value body = LLVM::AddressOfOp::create(code, launch.body);
  return LLVM::CallOp::create(code, kernel,
                              ValueRange{function.getContext(), body,
                                         launch.slots,
                                         code.i64(launch.slotsBytes), rows,
                                         code.i64(launch.minRows)})
      .getResult();
}

void CpuLowering::launch(FunctionLowering &function, const Launch &launch,
                         Value rows) {
  function.check(launchUnchecked(function, launch, rows));
}

void CpuLowering::copyRows(FunctionLowering &function, const RowsCopy &copy) {
  CodeBuilder &code = function.getCode();
  Type element = copy.element;
  int64_t width = copy.width, lanes = vectorWidth(code.getF32Type());
  Slots slots;
  unsigned source = slots.add(copy.from), destination = slots.add(copy.to);
  LLVM::LLVMFuncOp body = createBody(
      function.bodyName("copy"), code.getLoc(),
      [&](CodeBuilder &code, Value args, Value begin, Value end, Value) {
        Value from = slots.load(code, args, source);
        Value to = slots.load(code, args, destination);
        code.forLoop(begin, end, 1, [&](Value row) {
          auto rowOf = [&](Value base, int64_t stride) {
            return code.offset(base, code.mul(row, code.i64(stride)), element);
          };
          emitCopy(code, rowOf(from, copy.fromStride), rowOf(to, copy.toStride),
                   width, element, lanes);
        });
      });
  launch(function, {body, slots.store(code), slots.bytes(), minimumRows(width)},
         function.getTokens(copy.activation));
}

SmallVector<Attribute> CpuLowering::passthrough(OpBuilder &builder) {
  // Without this, LLVM halves 512-bit vectors on the CPUs that prefer 256.
  std::string bits = std::to_string(options.vectorBits);
  return {builder.getStrArrayAttr({"prefer-vector-width", bits}),
          builder.getStringAttr("nounwind")};
}

void mlir::dyna::cpu::emitZeros(CodeBuilder &code, Value to, int64_t width,
                                Type element, int64_t lanes) {
  Type bits = code.getIntegerType(element.getIntOrFloatBitWidth());
  code.forColumns(width, lanes, 4, [&](ArrayRef<Piece> pieces) {
    for (const Piece &piece : pieces)
      code.store(code.constant(VectorType::get(piece.width, bits), int64_t(0)),
                 code.offset(to, piece.column, element),
                 alignmentOf(piece, width, element));
  });
}

void mlir::dyna::cpu::emitCopy(CodeBuilder &code, Value from, Value to,
                               int64_t width, Type element, int64_t lanes) {
  Type bits = code.getIntegerType(element.getIntOrFloatBitWidth());
  code.forColumns(width, lanes, 4, [&](ArrayRef<Piece> pieces) {
    SmallVector<Value> values;
    auto at = [&](Value base, const Piece &piece) {
      return code.offset(base, piece.column, element);
    };
    for (const Piece &piece : pieces)
      values.push_back(code.load(at(from, piece),
                                 VectorType::get(piece.width, bits),
                                 alignmentOf(piece, width, element)));
    for (auto [piece, value] : llvm::zip(pieces, values))
      code.store(value, at(to, piece), alignmentOf(piece, width, element));
  });
}
