//===- CollectiveLowering.cpp - Exchanges between ranks -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collectives become calls of the functions of runtime/abi/Collectives.h, which
// think in whole tensors: [outer, split, inner], of which a rank has some of
// `split`. How many tokens there are is known when the code runs.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Lowering.h"

#include "runtime/abi/Collectives.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

static int32_t elementCode(Value value) {
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  return element.isF64()    ? DYNA_ELEMENT_F64
         : element.isF32()  ? DYNA_ELEMENT_F32
         : element.isBF16() ? DYNA_ELEMENT_BF16
                            : DYNA_ELEMENT_I32;
}

/// The product of the sizes of dimensions [first, last) of a value.
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

static void call(FunctionLowering &function, StringRef name, Value fields) {
  Type pointer = function.getCode().pointerType();
  function.call(function.getModule().declareKernel(name, {pointer, pointer}),
                {function.getContext(), fields});
}

/// An exchange along one dimension of `whole`, which is the operand or the
/// result of the op.
static LogicalResult lowerAlong(FunctionLowering &function, Operation *op,
                                StringRef name, Value whole, int64_t dim,
                                dist::GroupAttr group, int32_t reduction) {
  StructBuilder fields(function.getCode(), sizeof(dyna_collective));
  int64_t rank = cast<RankedTensorType>(whole.getType()).getRank();
  fields.set(offsetof(dyna_collective, in),
             function.address(op->getOperand(0)));
  fields.set(offsetof(dyna_collective, out),
             function.address(op->getResult(0)));
  fields.set(offsetof(dyna_collective, outer), sizeOf(function, whole, 0, dim));
  fields.set(offsetof(dyna_collective, split),
             sizeOf(function, whole, dim, dim + 1));
  fields.set(offsetof(dyna_collective, inner),
             sizeOf(function, whole, dim + 1, rank));
  fields.setI32(offsetof(dyna_collective, group), group.getIndex());
  fields.setI32(offsetof(dyna_collective, element), elementCode(whole));
  fields.setI32(offsetof(dyna_collective, reduction), reduction);
  fields.setI32(offsetof(dyna_collective, reserved), 0);
  call(function, name, fields.get());
  return success();
}

/// Dimension `dim` is whole in the result, `to` in the operand.
static LogicalResult lowerAllToAll(FunctionLowering &function,
                                   dist::AllToAllOp op) {
  int64_t dim = op.getDim(), to = op.getTo();
  int64_t first = std::min(dim, to), second = std::max(dim, to);
  Value x = op.getX(), result = op.getResult();
  auto wholeOf = [&](int64_t which) {
    return sizeOf(function, which == dim ? result : x, which, which + 1);
  };
  int64_t rank = op.getX().getType().getRank();
  StructBuilder fields(function.getCode(), sizeof(dyna_transposition));
  fields.set(offsetof(dyna_transposition, in), function.address(x));
  fields.set(offsetof(dyna_transposition, out), function.address(result));
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
  call(function, "dyna_all_to_all", fields.get());
  return success();
}

LogicalResult mlir::dyna::cpu::lowerCollective(FunctionLowering &function,
                                               Operation *op) {
  auto along = [&](StringRef name, Value whole, int64_t dim,
                   dist::GroupAttr group, int32_t reduction) {
    return lowerAlong(function, op, name, whole, dim, group, reduction);
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](dist::AllReduceOp sum) {
        return along("dyna_all_reduce", sum.getX(), 0, sum.getGroup(),
                     sum.getMax() ? DYNA_REDUCE_MAX : DYNA_REDUCE_SUM);
      })
      .Case([&](dist::AllGatherOp gather) {
        return along("dyna_all_gather", gather.getResult(), gather.getDim(),
                     gather.getGroup(), DYNA_REDUCE_SUM);
      })
      .Case([&](dist::ReduceScatterOp scatter) {
        return along("dyna_reduce_scatter", scatter.getX(), scatter.getDim(),
                     scatter.getGroup(), DYNA_REDUCE_SUM);
      })
      .Case([&](dist::SliceOp slice) {
        return along("dyna_slice", slice.getX(), slice.getDim(),
                     slice.getGroup(), DYNA_REDUCE_SUM);
      })
      .Case([&](dist::AllToAllOp exchange) {
        return lowerAllToAll(function, exchange);
      });
}
