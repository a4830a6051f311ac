//===- KeyStore.cpp - Assigns columns of key stores to attentions ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/place/KeyStore.h"

#include "mlir/IR/BuiltinOps.h"
#include "runtime/abi/Kernels.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;

static int64_t bytesOf(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

int64_t KeyStore::getRowBytes() const {
  return columns.empty()
             ? 0
             : stride * bytesOf(columns.begin()->second.second.element);
}

int64_t KeyStore::getGradientRowBytes() const {
  return columns.empty()
             ? 0
             : gradientStride * bytesOf(getAccumulatorType(
                                    columns.begin()->second.second.element));
}

LogicalResult KeyStore::add(Operation *op, int64_t number, const Shape &shape) {
  auto [entry, isNew] = columns.insert({number, {Columns(), shape}});
  if (isNew || entry->second.second == shape)
    return success();
  const Shape &other = entry->second.second;
  return op->emitOpError("has number ")
         << number << " in its layer, " << shape.kvHeads
         << " key/value heads of " << shape.headDim << " elements of type "
         << shape.element << "; another function of the layer has "
         << other.kvHeads << " of " << other.headDim << " elements of type "
         << other.element << " there";
}

LogicalResult KeyStore::addFunction(FunctionOp function) {
  // A function may have each attention forward and backward.
  DenseSet<int64_t> forward, backward;
  auto addOp = [&](auto op, DenseSet<int64_t> &numbers) -> LogicalResult {
    const auto number = static_cast<int64_t>(op.getNumber());
    if (!numbers.insert(number).second)
      return op.emitOpError("has number ")
             << number
             << ", as another attention of its function has; number the "
                "attentions of a layer from 0, as --dyna-differentiate does";
    return add(op, number,
               {static_cast<int64_t>(op.getKvHeads()), op.getHeadDim(),
                getElementTypeOrSelf(op.getKey())});
  };
  WalkResult result = function.walk([&](Operation *op) {
    LogicalResult added =
        llvm::TypeSwitch<Operation *, LogicalResult>(op)
            .Case([&](AttentionOp o) { return addOp(o, forward); })
            .Case([&](AttentionGradOp o) { return addOp(o, backward); })
            .Default(success());
    return failed(added) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void KeyStore::place() {
  for (auto &[number, entry] : columns) {
    auto &[column, shape] = entry;
    const int64_t width = shape.kvHeads * shape.headDim;
    const int64_t padded = shape.kvHeads * dyna_padded_head_dim(shape.headDim);
    column = {stride, stride + width, gradientStride, gradientStride + padded};
    stride += 2 * width;
    gradientStride += 2 * padded;
  }
}

FailureOr<KeyStore> KeyStore::create(Operation *module, StringRef layer) {
  KeyStore store;
  for (Operation &op : module->getRegion(0).front()) {
    auto function = dyn_cast<FunctionOp>(op);
    if (function && function.getLayer() == layer &&
        failed(store.addFunction(function)))
      return failure();
  }
  store.place();
  return store;
}
