//===- CollectiveLowering.cpp - Exchanges between ranks -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives become calls of the functions of runtime/abi/Collectives.h, which
// think in whole tensors: [outer, split, inner], of which a rank has some of
// `split`. How many tokens there are is known when the code runs.
//
//===----------------------------------------------------------------------===//

#include "codegen/layers/FunctionLowering.h"

#include "runtime/abi/Collectives.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::layers;

static int32_t elementCode(Value value) {
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  return element.isF64()    ? DYNA_ELEMENT_F64
         : element.isF32()  ? DYNA_ELEMENT_F32
         : element.isBF16() ? DYNA_ELEMENT_BF16
                            : DYNA_ELEMENT_I32;
}

/// Returns the product of the sizes of dimensions [first, last) of a value.
static Value sizeOf(FunctionLowering &function, Value value, int64_t first,
                    int64_t last) {
  CodeBuilder &code = function.getCode();
  auto type = cast<RankedTensorType>(value.getType());
  Value size;
  int64_t constant = 1;
  for (int64_t dim = first; dim < last; ++dim) {
    if (type.isDynamicDim(dim))
      size = function.getTokens(value);
    else
      constant *= type.getDimSize(dim);
  }
  return size ? code.mul(size, code.i64(constant)) : code.i64(constant);
}

namespace {

/// A struct that starts `base` bytes into what is built.
class Fields {
public:
  Fields(StructBuilder &builder, int64_t base) : builder(builder), base(base) {}
  void set(size_t offset, Value value) { builder.set(base + offset, value); }
  void setI32(size_t offset, int64_t value) {
    builder.setI32(base + offset, value);
  }

private:
  StructBuilder &builder;
  int64_t base;
};

} // namespace

/// Returns the name of the function: "dyna_all_reduce".
static std::string nameOf(dist::CollectiveOpInterface op) {
  return std::string("dyna_") + ::dyna::reshardKindName(op.getStep().kind);
}

/// Returns the DYNA_EXCHANGE_* of an op that moves data.
static int32_t exchangeCode(dist::CollectiveOpInterface op) {
  switch (op.getStep().kind) {
  case ::dyna::ReshardKind::AllReduce:
    return DYNA_EXCHANGE_ALL_REDUCE;
  case ::dyna::ReshardKind::AllGather:
    return DYNA_EXCHANGE_ALL_GATHER;
  case ::dyna::ReshardKind::ReduceScatter:
    return DYNA_EXCHANGE_REDUCE_SCATTER;
  case ::dyna::ReshardKind::AllToAll:
    return DYNA_EXCHANGE_ALL_TO_ALL;
  case ::dyna::ReshardKind::Slice:
    break;
  }
  llvm_unreachable("a slice moves nothing");
}

/// Fills the dyna_collective of any op but all_to_all; `result` has the place
/// of its result.
static void fillAlong(FunctionLowering &function, Fields fields,
                      dist::CollectiveOpInterface op, Value result) {
  ::dyna::ReshardStep step = op.getStep();
  bool gathers = step.kind == ::dyna::ReshardKind::AllGather;
  auto reduce = dyn_cast<dist::AllReduceOp>(*op);
  Value whole = gathers ? Value(op->getResult(0)) : op.getX();
  int64_t dim = std::max(step.dim, 0);
  int64_t rank = cast<RankedTensorType>(whole.getType()).getRank();
  fields.set(offsetof(dyna_collective, in), function.address(op.getX()));
  fields.set(offsetof(dyna_collective, out), function.address(result));
  fields.set(offsetof(dyna_collective, outer), sizeOf(function, whole, 0, dim));
  fields.set(offsetof(dyna_collective, split),
             sizeOf(function, whole, dim, dim + 1));
  fields.set(offsetof(dyna_collective, inner),
             sizeOf(function, whole, dim + 1, rank));
  fields.setI32(offsetof(dyna_collective, group), op.getGroup().getIndex());
  fields.setI32(offsetof(dyna_collective, element), elementCode(whole));
  fields.setI32(offsetof(dyna_collective, reduction),
                reduce && reduce.getMax() ? DYNA_REDUCE_MAX : DYNA_REDUCE_SUM);
  fields.setI32(offsetof(dyna_collective, reserved), 0);
}

/// Fills the dyna_transposition; `placed` has the place of the result.
/// Dimension `dim` is whole in the result, `to` in the operand.
static void fillAllToAll(FunctionLowering &function, Fields fields,
                         dist::AllToAllOp op, Value placed) {
  int64_t dim = op.getDim(), to = op.getTo();
  int64_t first = std::min(dim, to), second = std::max(dim, to);
  Value x = op.getX(), result = op.getResult();
  auto wholeOf = [&](int64_t which) {
    return sizeOf(function, which == dim ? result : x, which, which + 1);
  };
  int64_t rank = op.getX().getType().getRank();
  fields.set(offsetof(dyna_transposition, in), function.address(x));
  fields.set(offsetof(dyna_transposition, out), function.address(placed));
  fields.set(offsetof(dyna_transposition, outer),
             sizeOf(function, x, 0, first));
  fields.set(offsetof(dyna_transposition, first), wholeOf(first));
  fields.set(offsetof(dyna_transposition, middle),
             sizeOf(function, x, first + 1, second));
  fields.set(offsetof(dyna_transposition, second), wholeOf(second));
  fields.set(offsetof(dyna_transposition, inner),
             sizeOf(function, x, second + 1, rank));
  fields.setI32(offsetof(dyna_transposition, group), op.getGroup().getIndex());
  fields.setI32(offsetof(dyna_transposition, element), elementCode(x));
  fields.setI32(offsetof(dyna_transposition, second_to_first), dim > to);
  fields.setI32(offsetof(dyna_transposition, reserved), 0);
}

/// Lowers a fused exchange to one call, with an array of structs on the stack.
static void lowerExchange(FunctionLowering &function, dist::ExchangeOp op) {
  CodeBuilder &code = function.getCode();
  SmallVector<dist::CollectiveOpInterface> collectives = op.getCollectives();
  StructBuilder builder(code, sizeof(dyna_exchange) * collectives.size());
  for (auto [index, collective] : llvm::enumerate(collectives)) {
    int64_t base = sizeof(dyna_exchange) * index;
    Fields fields(builder, base);
    fields.setI32(offsetof(dyna_exchange, reserved), 0);
    Value result = op->getResult(index);
    fields.setI32(offsetof(dyna_exchange, kind), exchangeCode(collective));
    if (auto turn = dyn_cast<dist::AllToAllOp>(*collective)) {
      fillAllToAll(
          function,
          Fields(builder, base + offsetof(dyna_exchange, transposition)), turn,
          result);
      continue;
    }
    fillAlong(function,
              Fields(builder, base + offsetof(dyna_exchange, collective)),
              collective, result);
  }
  Type pointer = code.pointerType();
  function.call(function.getModule().declareKernel(
                    "dyna_exchange_all", {pointer, pointer, code.i64Type()}),
                {function.getContext(), builder.get(),
                 code.i64(static_cast<int64_t>(collectives.size()))});
}

static void call(FunctionLowering &function, StringRef name, Value fields) {
  Type pointer = function.getCode().pointerType();
  function.call(function.getModule().declareKernel(name, {pointer, pointer}),
                {function.getContext(), fields});
}

LogicalResult mlir::dyna::layers::lowerCollective(FunctionLowering &function,
                                                  Operation *op) {
  CodeBuilder &code = function.getCode();
  if (auto exchange = dyn_cast<dist::ExchangeOp>(op)) {
    lowerExchange(function, exchange);
  } else if (auto turn = dyn_cast<dist::AllToAllOp>(op)) {
    StructBuilder builder(code, sizeof(dyna_transposition));
    fillAllToAll(function, Fields(builder, 0), turn, turn.getResult());
    call(function, nameOf(cast<dist::CollectiveOpInterface>(op)),
         builder.get());
  } else {
    StructBuilder builder(code, sizeof(dyna_collective));
    auto collective = cast<dist::CollectiveOpInterface>(op);
    fillAlong(function, Fields(builder, 0), collective, op->getResult(0));
    call(function, nameOf(collective), builder.get());
  }
  return success();
}
