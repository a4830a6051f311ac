//===- Constraints.cpp - Checks that verifiers of dyna ops share ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Constraints.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::dyna;

int64_t check::sizeOf(Value tensor, unsigned index) {
  return cast<RankedTensorType>(tensor.getType()).getDimSize(index);
}

Type check::elementOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

LogicalResult check::expectSize(Operation *op, const Twine &what, int64_t size,
                                const Twine &whose, int64_t expected) {
  if (size == expected)
    return success();
  return op->emitOpError() << "expects " << what << " to be " << expected
                           << ", " << whose << ", but got " << size;
}

LogicalResult check::expectElement(Operation *op, const Twine &what,
                                   Value value, const Twine &whose,
                                   Value other) {
  if (elementOf(value) == elementOf(other))
    return success();
  return op->emitOpError() << "expects " << what << " to have element type "
                           << elementOf(other) << ", that of " << whose
                           << ", but got " << elementOf(value);
}

LogicalResult check::expectAccumulator(Operation *op, const Twine &what,
                                       Value value, const Twine &whose,
                                       Value source) {
  Type expected = getAccumulatorType(elementOf(source));
  if (elementOf(value) == expected)
    return success();
  return op->emitOpError() << "expects " << what << " to have element type "
                           << expected << ", in which gradients of "
                           << elementOf(source)
                           << " are accumulated (that is the type of " << whose
                           << "), but got " << elementOf(value);
}

LogicalResult check::expectGradientSum(Operation *op, const Twine &what,
                                       Value value, const Twine &whose,
                                       Value source) {
  Type element = elementOf(source);
  if (!element.isBF16())
    return expectAccumulator(op, what, value, whose, source);
  if (elementOf(value) == element ||
      elementOf(value) == getAccumulatorType(element))
    return success();
  return op->emitOpError() << "expects " << what << " to have element type "
                           << getAccumulatorType(element) << " or " << element
                           << ", in which gradients of " << element
                           << " are accumulated (that is the type of " << whose
                           << "), but got " << elementOf(value);
}

LogicalResult check::expectWidthOf(Operation *op, const Twine &what,
                                   Value vector, const Twine &whose, Value x) {
  return expectSize(op, "the size of " + what, sizeOf(vector, 0),
                    "the width of " + whose, sizeOf(x, 1));
}

LogicalResult check::expectPositive(Operation *op, StringRef name,
                                    const APFloat &value) {
  if (value.isFinite() && !value.isZero() && !value.isNegative())
    return success();
  return op->emitOpError() << "expects '" << name
                           << "' to be positive and finite, but got "
                           << value.convertToDouble();
}

LogicalResult check::expectTargetId(Operation *op, StringRef name,
                                    int64_t value) {
  if (llvm::isInt<32>(value))
    return success();
  return op->emitOpError() << "expects '" << name
                           << "' to fit in the 32 bits of a target, but got "
                           << value;
}

LogicalResult check::expectPart(Operation *op, const Twine &what, Value part,
                                ShardAttr shard) {
  if (!shard || sizeOf(part, 0) <= shard.getRows())
    return success();
  return op->emitOpError() << "expects " << what << " to have at most "
                           << shard.getRows()
                           << " rows, those of the whole table, but got "
                           << sizeOf(part, 0);
}

LogicalResult check::verifyAttention(Operation *op, Value query, Value key,
                                     Value value, int64_t heads,
                                     int64_t kvHeads, const APFloat &scale,
                                     int64_t number) {
  // ATTN1
  if (heads <= 0 || kvHeads <= 0 || heads % kvHeads != 0)
    return op->emitOpError()
           << "expects 'heads' to be a positive multiple of 'kv_heads', but "
              "got heads = "
           << heads << " and kv_heads = " << kvHeads;
  // ATTN2
  int64_t width = sizeOf(query, 1);
  if (width % heads != 0)
    return op->emitOpError()
           << "expects the width of 'query' to be a multiple of heads = "
           << heads << ", but got " << width;
  // ATTN3
  int64_t headDim = width / heads;
  for (auto [name, operand] : {std::pair<StringRef, Value>("key", key),
                               std::pair<StringRef, Value>("value", value)})
    if (sizeOf(operand, 1) != kvHeads * headDim)
      return op->emitOpError()
             << "expects the width of '" << name << "' to be "
             << kvHeads * headDim << ", kv_heads = " << kvHeads
             << " times the head size " << headDim << " of 'query', but got "
             << sizeOf(operand, 1);
  // ATTN4
  if (failed(expectElement(op, "'key'", key, "'query'", query)) ||
      failed(expectElement(op, "'value'", value, "'query'", query)))
    return failure();
  // ATTN5
  if (failed(expectPositive(op, "scale", scale)))
    return failure();
  // ATTN7
  if (number < 0)
    return op->emitOpError()
           << "expects 'number' not to be negative, but got " << number;
  return success();
}
