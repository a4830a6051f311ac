//===- DynaOps.cpp - Types and constraints of the model ops -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/Gradients.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::dyna;

/// `[?, width]` of `element`.
static RankedTensorType activation(int64_t width, Type element) {
  return RankedTensorType::get({ShapedType::kDynamic, width}, element);
}

/// Infers one result as `[?, size of dimension]` of an operand.
static LogicalResult inferRows(ValueRange operands, unsigned operand,
                               unsigned dimension,
                               SmallVectorImpl<Type> &results) {
  if (operands.size() <= operand)
    return failure();
  auto type = dyn_cast<RankedTensorType>(operands[operand].getType());
  if (!type || type.getRank() <= static_cast<int64_t>(dimension))
    return failure();
  results.push_back(
      activation(type.getDimSize(dimension), type.getElementType()));
  return success();
}

#define DYNA_INFER_ROWS(OP, OPERAND, DIMENSION)                                \
  LogicalResult OP::inferReturnTypes(MLIRContext *, std::optional<Location>,   \
                                     ValueRange operands, DictionaryAttr,      \
                                     OpaqueProperties, RegionRange,            \
                                     SmallVectorImpl<Type> &results) {         \
    return inferRows(operands, OPERAND, DIMENSION, results);                   \
  }

DYNA_INFER_ROWS(EmbeddingOp, 1, 1)
DYNA_INFER_ROWS(PositionsOp, 0, 1)
DYNA_INFER_ROWS(LinearOp, 1, 0)
DYNA_INFER_ROWS(BiasOp, 0, 1)
DYNA_INFER_ROWS(LayerNormOp, 0, 1)
DYNA_INFER_ROWS(RmsNormOp, 0, 1)
DYNA_INFER_ROWS(RotaryOp, 0, 1)
DYNA_INFER_ROWS(DropoutOp, 0, 1)
DYNA_INFER_ROWS(LinearGradInputOp, 1, 1)
#undef DYNA_INFER_ROWS

LogicalResult
AttentionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                              ValueRange operands, DictionaryAttr attributes,
                              OpaqueProperties properties, RegionRange,
                              SmallVectorImpl<Type> &results) {
  // While parsing, attributes are not yet properties.
  auto heads = attributes ? attributes.getAs<IntegerAttr>("heads") : nullptr;
  if (!heads && properties)
    heads = properties.as<Properties *>()->heads;
  auto query = operands.empty()
                   ? RankedTensorType()
                   : dyn_cast<RankedTensorType>(operands[0].getType());
  if (!heads || !query || query.getRank() != 2)
    return emitOptionalError(
        location, "expects a query of rank 2 and the attribute 'heads'");
  results.push_back(query);
  results.push_back(
      activation(heads.getInt(), getAccumulatorType(query.getElementType())));
  return success();
}

LogicalResult LinearOp::verify() { return success(); }
LogicalResult AttentionOp::verify() { return success(); }
LogicalResult BiasOp::verify() { return success(); }
LogicalResult LayerNormOp::verify() { return success(); }
LogicalResult RmsNormOp::verify() { return success(); }
LogicalResult RotaryOp::verify() { return success(); }
LogicalResult DropoutOp::verify() { return success(); }
LogicalResult LinearCrossEntropyOp::verify() { return success(); }
