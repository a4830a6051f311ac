//===- RowsSlots.cpp - Collects the arguments of a sweep's code -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/layers/RowsSlots.h"

#include "codegen/rows/VectorMath.h"
#include "passes/memory/value/Target.h"
#include "runtime/abi/Kernels.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::layers;

/// Adds the operands of the ops of the body, and the keys of dropouts.
static void addOperands(FunctionLowering &function, Operation &inner,
                        const RowsPlan &plan, RowsSlots &result) {
  CodeBuilder &code = function.getCode();
  for (Value operand : inner.getOperands()) {
    bool inside = operand.getParentBlock() == inner.getBlock();
    bool isSum = llvm::any_of(plan.accumulations, [&](auto &accumulation) {
      return accumulation.accumulator == operand;
    });
    if (inside || isSum || !isa<RankedTensorType>(operand.getType()))
      continue;
    result.arguments.operands[operand] =
        result.slots.add(function.address(operand));
    if (isActivation(operand.getType()))
      result.arguments.strides[operand] = function.strideOf(operand);
  }
  if (auto dropout = dyn_cast<DropoutOp>(inner)) {
    auto field = [&](size_t offset) {
      return code.loadField(function.getContext(), offset, code.i64Type());
    };
    Value key = emitRandomOpKey(code, field(offsetof(dyna_context, seed)),
                                field(offsetof(dyna_context, step)),
                                field(offsetof(dyna_context, layer)),
                                dropout.getInstance());
    result.arguments.keys[dropout] = result.slots.add(key);
    if (auto group = dist::kFeatures.of(dropout))
      result.arguments.features[dropout] = result.slots.add(
          function.firstFeature(group, dropout.getType().getDimSize(1)));
  }
}

/// Adds a row of partial sums per accumulation, in the scratch memory.
static LogicalResult addSums(FunctionLowering &function, RowsOp op,
                             const RowsPlan &plan, RowsSlots &result) {
  if (plan.accumulations.empty())
    return success();
  FailureOr<PlaceAttr> scratch = function.scratchOf(op);
  if (failed(scratch))
    return failure();
  Value base = function.address(*scratch);
  int64_t bytes = dyna_align_block(targetOf(op).partialSums * plan.width *
                                   sizeOf(plan.accumulator));
  for (size_t i = 0; i < plan.accumulations.size(); ++i)
    result.arguments.partials.push_back(
        result.slots.add(function.getCode().offsetBytes(base, i * bytes)));
  return success();
}

FailureOr<RowsSlots>
mlir::dyna::layers::collectSlots(FunctionLowering &function, RowsOp op,
                                 const RowsPlan &plan) {
  CodeBuilder &code = function.getCode();
  RowsSlots result;
  bool takesSegments = false;
  for (Operation &inner : op.getBody().front().without_terminator()) {
    addOperands(function, inner, plan, result);
    takesSegments |=
        llvm::any_of(inner.getOperandTypes(), llvm::IsaPred<SegmentsType>);
  }
  for (auto lookup : op.getBody().front().getOps<PositionsOp>())
    function.checkPositions(op, function.getTokens(op),
                            lookup.getTable().getType().getDimSize(0));
  if (!result.arguments.keys.empty()) {
    Value samples =
        code.loadField(function.getSegments(),
                       offsetof(dyna_segments, row_sample), code.pointerType());
    result.arguments.samples = result.slots.add(
        code.offset(samples, function.getFirstToken(op), code.i64Type()));
  }
  if (takesSegments)
    result.arguments.positions = result.slots.add(function.getPositions(op));
  for (auto &[value, results] : plan.yields)
    for (unsigned index : results) {
      Value leaving = op.getResult(index);
      result.arguments.results[index] =
          result.slots.add(function.address(leaving));
      result.arguments.strides[leaving] = function.strideOf(leaving);
    }
  if (failed(addSums(function, op, plan, result)))
    return failure();
  return result;
}

LogicalResult mlir::dyna::layers::checkSums(FunctionLowering &function,
                                            RowsOp op, const RowsPlan &plan) {
  for (const Accumulation &sum : plan.accumulations)
    for (OpOperand &use : sum.result.getUses()) {
      if (!isa<YieldOp>(use.getOwner()))
        return op.emitOpError("expects a sum over rows to be yielded only");
      Value result = op.getResult(use.getOperandNumber());
      if (function.placeOf(result) != function.placeOf(sum.accumulator))
        return op.emitOpError("expects result ")
               << use.getOperandNumber()
               << " in the place of the accumulator it adds to";
    }
  return success();
}
