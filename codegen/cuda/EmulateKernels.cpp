//===- EmulateKernels.cpp - Turns kernels into code of the processor ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/EmulateKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna::cuda;

namespace {
class Emulation {
public:
  explicit Emulation(ModuleOp host)
      : host(host), i32(IntegerType::get(host.getContext(), 32)),
        i64(IntegerType::get(host.getContext(), 64)),
        pointer(LLVM::LLVMPointerType::get(host.getContext())) {}

  LogicalResult rewrite(Operation *op);

private:
  /// Replaces `op` by a call; `result` may be null.
  LogicalResult call(Operation *op, StringRef name, Type result,
                     ValueRange arguments);
  LogicalResult roundToBF16(LLVM::FPTruncOp op);
  /// Checks alignment. A GPU stops at an address that is no multiple of the
  /// stated alignment; the processor would continue.
  void checkAlignment(Operation *op, Value address,
                      std::optional<uint64_t> alignment);

  ModuleOp host;
  Type i32, i64, pointer;
};
} // namespace

LogicalResult Emulation::call(Operation *op, StringRef name, Type result,
                              ValueRange arguments) {
  auto callee = host.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!callee) {
    OpBuilder builder = OpBuilder::atBlockBegin(host.getBody());
    Type type = result ? result : LLVM::LLVMVoidType::get(host.getContext());
    callee = LLVM::LLVMFuncOp::create(
        builder, host.getLoc(), name,
        LLVM::LLVMFunctionType::get(type,
                                    llvm::to_vector(arguments.getTypes())));
  }
  OpBuilder builder(op);
  auto call = LLVM::CallOp::create(builder, op->getLoc(), callee, arguments);
  if (result)
    op->replaceAllUsesWith(call->getResults());
  op->erase();
  return success();
}

/// Rounds to nearest even; every NaN becomes the NaN that a GPU produces.
LogicalResult Emulation::roundToBF16(LLVM::FPTruncOp op) {
  ImplicitLocOpBuilder code(op.getLoc(), op);
  Value x = op.getArg();
  auto shaped = [&](Type element) -> Type {
    if (auto vector = dyn_cast<VectorType>(x.getType()))
      return VectorType::get(vector.getShape(), element);
    return element;
  };
  Type words = shaped(i32);
  auto constant = [&](int64_t value) -> Value {
    Attribute number = code.getI32IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(words))
      number = DenseElementsAttr::get(vector, number);
    return LLVM::ConstantOp::create(code, words, cast<TypedAttr>(number));
  };
  Value bits = LLVM::BitcastOp::create(code, words, x);
  Value high = LLVM::LShrOp::create(code, bits, constant(16));
  Value odd = LLVM::AndOp::create(code, high, constant(1));
  Value bias = LLVM::AddOp::create(code, odd, constant(0x7FFF));
  Value rounded = LLVM::AddOp::create(code, bits, bias);
  rounded = LLVM::LShrOp::create(code, rounded, constant(16));
  Value isNan = LLVM::FCmpOp::create(code, LLVM::FCmpPredicate::uno, x, x);
  Value result = LLVM::SelectOp::create(code, isNan, constant(0x7FFF), rounded);
  result = LLVM::TruncOp::create(code, shaped(code.getIntegerType(16)), result);
  result = LLVM::BitcastOp::create(code, op.getType(), result);
  op.replaceAllUsesWith(result);
  op.erase();
  return success();
}

void Emulation::checkAlignment(Operation *op, Value address,
                               std::optional<uint64_t> alignment) {
  constexpr uint64_t narrow =
      2; // single bf16 elements, of which there are many
  if (!alignment || *alignment <= narrow)
    return;
  ImplicitLocOpBuilder code(op->getLoc(), op);
  Value bytes = LLVM::ConstantOp::create(
      code, i32, code.getI32IntegerAttr(static_cast<int32_t>(*alignment)));
  // `call` replaces an op, so give it one without users.
  (void)call(LLVM::UndefOp::create(code, i32), "dyna_emulated_aligned", Type(),
             {address, bytes});
}

LogicalResult Emulation::rewrite(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](NVVM::ThreadIdXOp) {
        return call(op, "dyna_emulated_thread", i32, {});
      })
      .Case([&](NVVM::BlockIdXOp) {
        return call(op, "dyna_emulated_block", i32, {});
      })
      .Case([&](NVVM::GridDimXOp) {
        return call(op, "dyna_emulated_grid_size", i32, {});
      })
      .Case([&](NVVM::Barrier0Op) {
        return call(op, "dyna_emulated_barrier", Type(), {});
      })
      .Case([&](NVVM::SyncWarpOp) {
        return call(op, "dyna_emulated_warp_barrier", Type(), {});
      })
      .Case([&](NVVM::ShflOp shuffle) -> LogicalResult {
        if (shuffle.getKind() != NVVM::ShflKind::bfly)
          return op->emitOpError("is emulated as 'bfly' only");
        return call(op, "dyna_emulated_shuffle_xor", i32,
                    {shuffle.getVal(), shuffle.getOffset()});
      })
      .Case([&](LLVM::AddrSpaceCastOp spaceCast) -> LogicalResult {
        auto address = spaceCast.getArg().getDefiningOp<LLVM::AddressOfOp>();
        if (!address)
          return op->emitOpError("is emulated of shared memory only");
        auto global = SymbolTable::lookupNearestSymbolFrom<LLVM::GlobalOp>(
            op, address.getGlobalNameAttr());
        int64_t bytes =
            cast<LLVM::LLVMArrayType>(global.getType()).getNumElements();
        OpBuilder builder(op);
        Value size = LLVM::ConstantOp::create(builder, op->getLoc(), i64,
                                              builder.getI64IntegerAttr(bytes));
        if (failed(call(op, "dyna_emulated_shared", pointer, size)))
          return failure();
        address.erase();
        return success();
      })
      .Case([&](LLVM::FPTruncOp trunc) -> LogicalResult {
        if (getElementTypeOrSelf(trunc.getType()).isBF16())
          return roundToBF16(trunc);
        return success();
      })
      .Case([&](LLVM::LoadOp load) -> LogicalResult {
        checkAlignment(op, load.getAddr(), load.getAlignment());
        return success();
      })
      .Case([&](LLVM::StoreOp store) -> LogicalResult {
        checkAlignment(op, store.getAddr(), store.getAlignment());
        return success();
      })
      .Default([&](Operation *op) -> LogicalResult {
        if (isa<NVVM::NVVMDialect>(op->getDialect()))
          return op->emitOpError("is not emulated");
        return success();
      });
}

LogicalResult mlir::dyna::cuda::emulateKernels(ModuleOp kernels,
                                               ModuleOp host) {
  Emulation emulation(host);
  SmallVector<Operation *> ops;
  kernels.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    if (!isa<ModuleOp>(op) && failed(emulation.rewrite(op)))
      return failure();
  for (Operation &op : llvm::make_early_inc_range(*kernels.getBody())) {
    if (auto global = dyn_cast<LLVM::GlobalOp>(op))
      if (global.getAddrSpace() != 0) {
        global.erase(); // emulated shared memory is no global
        continue;
      }
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op)) {
      function.setLinkage(LLVM::Linkage::Internal);
      function.setPassthroughAttr(ArrayAttr::get(
          op.getContext(), {StringAttr::get(op.getContext(), "nounwind")}));
      function.removeArgAttrsAttr();
      for (NamedAttribute attribute : llvm::to_vector(op.getDiscardableAttrs()))
        op.removeDiscardableAttr(attribute.getName());
    }
    op.moveBefore(host.getBody(), host.getBody()->end());
  }
  return success();
}
