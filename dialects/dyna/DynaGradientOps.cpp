//===- DynaGradientOps.cpp - Verifies the gradient ops ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Constraints.h"
#include "dialects/dyna/Dyna.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::check;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingGradOp::verify() {
  // EMBGRAD1
  if (failed(expectSize(*this, "the width of 'accumulator'",
                        sizeOf(getAccumulator(), 1), "the width of 'dy'",
                        sizeOf(getDy(), 1))))
    return failure();
  // EMBGRAD2
  if (failed(expectGradientSum(*this, "'accumulator'", getAccumulator(), "'dy'",
                               getDy())))
    return failure();
  // EMBGRAD3
  return expectPart(*this, "'accumulator'", getAccumulator(), getShardAttr());
}

LogicalResult PositionsGradOp::verify() {
  // POSGRAD1
  if (failed(expectSize(*this, "the width of 'accumulator'",
                        sizeOf(getAccumulator(), 1), "the width of 'dy'",
                        sizeOf(getDy(), 1))))
    return failure();
  // POSGRAD2
  return expectGradientSum(*this, "'accumulator'", getAccumulator(), "'dy'",
                           getDy());
}

//===----------------------------------------------------------------------===//
// Matrix products and attention
//===----------------------------------------------------------------------===//

LogicalResult LinearGradInputOp::verify() {
  // LGI1
  if (failed(expectSize(*this, "the 'out' size of 'weight'",
                        sizeOf(getWeight(), 0), "the width of 'dy'",
                        sizeOf(getDy(), 1))) ||
      failed(expectElement(*this, "'weight'", getWeight(), "'dy'", getDy())))
    return failure();
  // LGI2
  if (Value accumulator = getAccumulator())
    if (accumulator.getType() != getResult().getType())
      return emitOpError() << "expects 'accumulator' to have type "
                           << getResult().getType()
                           << ", that of the result, but got "
                           << accumulator.getType();
  // LGI3: by type inference.
  return success();
}

LogicalResult LinearGradWeightOp::verify() {
  // LGW1
  if (failed(expectSize(*this, "the first size of 'accumulator'",
                        sizeOf(getAccumulator(), 0), "the width of 'dy'",
                        sizeOf(getDy(), 1))) ||
      failed(expectSize(*this, "the second size of 'accumulator'",
                        sizeOf(getAccumulator(), 1), "the width of 'x'",
                        sizeOf(getX(), 1))))
    return failure();
  // LGW2
  if (failed(expectElement(*this, "'x'", getX(), "'dy'", getDy())))
    return failure();
  // LGW3
  return expectGradientSum(*this, "'accumulator'", getAccumulator(), "'dy'",
                           getDy());
}

LogicalResult AttentionGradOp::verify() {
  // ATTNGRAD1
  if (failed(verifyAttention(*this, getQuery(), getKey(), getValue(),
                             getHeads(), getKvHeads(), getScale(),
                             getNumber())))
    return failure();
  // ATTNGRAD2
  if (failed(expectSize(*this, "the width of 'lse'", sizeOf(getLse(), 1),
                        "the number of heads", getHeads())))
    return failure();
  return expectAccumulator(*this, "'lse'", getLse(), "'query'", getQuery());
}

//===----------------------------------------------------------------------===//
// Row-wise ops
//===----------------------------------------------------------------------===//

LogicalResult BiasGradOp::verify() {
  // BIASGRAD1
  if (failed(expectWidthOf(*this, "'accumulator'", getAccumulator(), "'dy'",
                           getDy())))
    return failure();
  // BIASGRAD2
  return expectGradientSum(*this, "'accumulator'", getAccumulator(), "'dy'",
                           getDy());
}

LogicalResult LayerNormGradInputOp::verify() {
  // LNGI1
  if (failed(expectWidthOf(*this, "'weight'", getWeight(), "'x'", getX())) ||
      failed(expectElement(*this, "'weight'", getWeight(), "'x'", getX())))
    return failure();
  // LNGI2
  return expectPositive(*this, "epsilon", getEpsilon());
}

LogicalResult LayerNormGradWeightOp::verify() {
  // LNGW1: the bias accumulator has the type of the weight accumulator.
  if (failed(expectWidthOf(*this, "'weight_accumulator'",
                           getWeightAccumulator(), "'x'", getX())))
    return failure();
  // LNGW2
  if (failed(expectPositive(*this, "epsilon", getEpsilon())))
    return failure();
  // LNGW3
  return expectGradientSum(*this, "'weight_accumulator'",
                           getWeightAccumulator(), "'x'", getX());
}

LogicalResult RmsNormGradInputOp::verify() {
  // RMSGI1
  if (failed(expectWidthOf(*this, "'weight'", getWeight(), "'x'", getX())) ||
      failed(expectElement(*this, "'weight'", getWeight(), "'x'", getX())))
    return failure();
  // RMSGI2
  return expectPositive(*this, "epsilon", getEpsilon());
}

LogicalResult RmsNormGradWeightOp::verify() {
  // RMSGW1
  if (failed(expectWidthOf(*this, "'accumulator'", getAccumulator(), "'x'",
                           getX())))
    return failure();
  // RMSGW2
  if (failed(expectPositive(*this, "epsilon", getEpsilon())))
    return failure();
  // RMSGW3
  return expectGradientSum(*this, "'accumulator'", getAccumulator(), "'x'",
                           getX());
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

LogicalResult LinearCrossEntropyTrainOp::verify() {
  // LCET1
  if (failed(expectSize(*this, "the 'in' size of 'weight'",
                        sizeOf(getWeight(), 1), "the width of 'x'",
                        sizeOf(getX(), 1))) ||
      failed(expectElement(*this, "'weight'", getWeight(), "'x'", getX())))
    return failure();
  // LCET2
  auto weightShape = getWeight().getType().getShape();
  auto shape = getAccumulator().getType().getShape();
  if (weightShape != shape)
    return emitOpError() << "expects 'accumulator' to have shape ["
                         << weightShape << "], that of 'weight', but got ["
                         << shape << "]";
  // LCET3
  if (failed(expectGradientSum(*this, "'accumulator'", getAccumulator(), "'x'",
                               getX())))
    return failure();
  // LCET4
  if (failed(expectTargetId(*this, "ignore_index", getIgnoreIndex())))
    return failure();
  // LCET5
  return expectPart(*this, "'weight'", getWeight(), getShardAttr());
}

LogicalResult LinearCrossEntropyInputOp::verify() {
  // LCEI1
  if (failed(expectSize(*this, "the 'in' size of 'weight'",
                        sizeOf(getWeight(), 1), "the width of 'x'",
                        sizeOf(getX(), 1))) ||
      failed(expectElement(*this, "'weight'", getWeight(), "'x'", getX())))
    return failure();
  // LCEI2
  if (failed(expectTargetId(*this, "ignore_index", getIgnoreIndex())))
    return failure();
  // LCEI3
  return expectPart(*this, "'weight'", getWeight(), getShardAttr());
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

LogicalResult AdamwOp::verify() {
  // ADAMW1
  Type element = elementOf(getMaster());
  if (!element.isF64() && !element.isF32())
    return emitOpError() << "expects f64 or f32 tensors, since updates are "
                            "too small for narrower types, but got "
                         << element;
  // ADAMW2
  auto expected = cast<RankedTensorType>(getMaster().getType());
  Type gradient = getGradient().getType();
  Type narrow = expected.clone(BFloat16Type::get(getContext()));
  if (gradient == expected || (element.isF32() && gradient == narrow))
    return success();
  InFlightDiagnostic diagnostic =
      emitOpError("expects 'gradient' to have type ");
  diagnostic << expected << ", that of 'master'";
  if (element.isF32())
    diagnostic << ", or " << narrow;
  return diagnostic << ", but got " << gradient;
}

LogicalResult CastOp::verify() {
  // CAST1
  auto shape = getX().getType().getShape();
  auto resultShape = getResult().getType().getShape();
  if (shape != resultShape)
    return emitOpError() << "expects result shape [" << shape
                         << "], that of 'x', but got [" << resultShape << "]";
  return success();
}
