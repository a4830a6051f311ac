//===- DynaOps.cpp - Infers types of model ops and verifies them ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Constraints.h"
#include "dialects/dyna/Dyna.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::check;

//===----------------------------------------------------------------------===//
// Type inference
//===----------------------------------------------------------------------===//

/// Returns the type `[?, width]` of `element`.
static RankedTensorType activation(int64_t width, Type element) {
  return RankedTensorType::get({ShapedType::kDynamic, width}, element);
}

/// Infers one result as `[?, size of dimension]` of an operand. Runs before
/// the operands are verified.
static LogicalResult inferRows(StringRef op, std::optional<Location> location,
                               ValueRange operands, unsigned operand,
                               unsigned dimension,
                               SmallVectorImpl<Type> &results) {
  if (operands.size() <= operand)
    return emitOptionalError(location, "'", op, "' op expects at least ",
                             operand + 1, " operands, but got ",
                             operands.size());
  Type type = operands[operand].getType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 2)
    return emitOptionalError(location, "'", op, "' op expects operand #",
                             operand, " to be a tensor of rank 2, but got ",
                             type);
  if (tensor.isDynamicDim(dimension))
    return emitOptionalError(location, "'", op, "' op expects operand #",
                             operand, " to have a static dimension ", dimension,
                             ", but got ", type);
  results.push_back(
      activation(tensor.getDimSize(dimension), tensor.getElementType()));
  return success();
}

#define DYNA_INFER_ROWS(OP, OPERAND, DIMENSION)                                \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *, std::optional<Location> location, ValueRange operands,    \
      DictionaryAttr, OpaqueProperties, RegionRange,                           \
      SmallVectorImpl<Type> &results) {                                        \
    return inferRows(getOperationName(), location, operands, OPERAND,          \
                     DIMENSION, results);                                      \
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
                              OpaqueProperties properties, RegionRange regions,
                              SmallVectorImpl<Type> &results) {
  // While parsing, attributes are not yet properties.
  auto heads = attributes ? attributes.getAs<IntegerAttr>("heads") : nullptr;
  if (!heads && properties)
    heads = properties.as<Properties *>()->heads;
  if (!heads || !heads.getType().isSignlessInteger(64) || heads.getInt() <= 0)
    return emitOptionalError(location, "'", getOperationName(),
                             "' op expects a positive attribute 'heads' of "
                             "i64, but got ",
                             heads ? Attribute(heads) : Attribute());
  if (failed(inferRows(getOperationName(), location, operands, 0, 1, results)))
    return failure();
  Type element = cast<RankedTensorType>(results.front()).getElementType();
  results.push_back(activation(heads.getInt(), getAccumulatorType(element)));
  return success();
}

//===----------------------------------------------------------------------===//
// Tokens in
//===----------------------------------------------------------------------===//

// EMBEDDING1, POSITIONS1: by type inference.

LogicalResult EmbeddingOp::verify() {
  // EMBEDDING2
  return expectPart(*this, "'table'", getTable(), getShardAttr());
}

//===----------------------------------------------------------------------===//
// Matrix products and attention
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  // LINEAR1
  if (failed(expectSize(*this, "the 'in' size of 'weight'",
                        sizeOf(getWeight(), 1), "the width of 'x'",
                        sizeOf(getX(), 1))))
    return failure();
  // LINEAR2
  if (getBias() &&
      failed(expectSize(*this, "the size of 'bias'", sizeOf(getBias(), 0),
                        "the 'out' size of 'weight'", sizeOf(getWeight(), 0))))
    return failure();
  // LINEAR3
  if (failed(expectElement(*this, "'weight'", getWeight(), "'x'", getX())))
    return failure();
  if (getBias() &&
      failed(expectElement(*this, "'bias'", getBias(), "'x'", getX())))
    return failure();
  // LINEAR4: by type inference.
  return success();
}

LogicalResult AttentionOp::verify() {
  // ATTN1 to ATTN5; ATTN6 by type inference.
  return verifyAttention(*this, getQuery(), getKey(), getValue(), getHeads(),
                         getKvHeads(), getScale(), getNumber());
}

//===----------------------------------------------------------------------===//
// Row-wise ops
//===----------------------------------------------------------------------===//

LogicalResult BiasOp::verify() {
  // BIAS1
  if (failed(expectWidthOf(*this, "'bias'", getBias(), "'x'", getX())))
    return failure();
  return expectElement(*this, "'bias'", getBias(), "'x'", getX());
}

LogicalResult LayerNormOp::verify() {
  // LN1: the bias has the type of the weight.
  if (failed(expectWidthOf(*this, "'weight'", getWeight(), "'x'", getX())) ||
      failed(expectElement(*this, "'weight'", getWeight(), "'x'", getX())))
    return failure();
  // LN2
  return expectPositive(*this, "epsilon", getEpsilon());
}

LogicalResult RmsNormOp::verify() {
  // RMS1
  if (failed(expectWidthOf(*this, "'weight'", getWeight(), "'x'", getX())) ||
      failed(expectElement(*this, "'weight'", getWeight(), "'x'", getX())))
    return failure();
  // RMS2
  return expectPositive(*this, "epsilon", getEpsilon());
}

LogicalResult RotaryOp::verify() {
  // ROTARY1
  int64_t headDim = getHeadDim(), width = sizeOf(getX(), 1);
  if (headDim <= 0 || headDim % 2 != 0 || width % headDim != 0)
    return emitOpError() << "expects 'head_dim' to be positive, even and a "
                            "divisor of the width of 'x', "
                         << width << ", but got " << headDim;
  // ROTARY2
  return expectPositive(*this, "theta", getTheta());
}

LogicalResult ScaleOp::verify() {
  // SCALE1
  return expectPositive(*this, "factor", getFactor());
}

LogicalResult DropoutOp::verify() {
  // DROPOUT1: written so that NaN fails.
  double probability = getProbability().convertToDouble();
  if (!(probability >= 0 && probability < 1))
    return emitOpError() << "expects 'probability' to lie in [0, 1), but got "
                         << probability;
  // DROPOUT2
  if (!llvm::isUInt<32>(getInstance()))
    return emitOpError() << "expects 'instance' to lie in [0, 2^32), but got "
                         << static_cast<int64_t>(getInstance());
  return success();
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

LogicalResult LinearCrossEntropyOp::verify() {
  // LCE1
  if (failed(expectSize(*this, "the 'in' size of 'weight'",
                        sizeOf(getWeight(), 1), "the width of 'x'",
                        sizeOf(getX(), 1))) ||
      failed(expectElement(*this, "'weight'", getWeight(), "'x'", getX())))
    return failure();
  // LCE2
  if (failed(expectTargetId(*this, "ignore_index", getIgnoreIndex())))
    return failure();
  // LCE3
  return expectPart(*this, "'weight'", getWeight(), getShardAttr());
}
