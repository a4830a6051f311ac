//===- OpScratch.cpp - Computes bytes of tensors and scratch of ops -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/value/OpScratch.h"
#include "passes/memory/value/Target.h"
#include "passes/memory/value/Values.h"
#include "runtime/abi/Kernels.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::dyna;

LinearBytes mlir::dyna::stridedBytes(const LinearBytes &alone, int64_t rowBytes,
                                     int64_t stride) {
  LinearBytes bytes = alone;
  // Round as TokenParts does, for parts of the tokens.
  bytes.tq = llvm::divideCeil(alone.tq * stride, rowBytes);
  bytes.tq += bytes.tq % 2;
  return bytes;
}

LinearBytes mlir::dyna::bytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return {};
  int64_t bytes = tensor.getElementTypeBitWidth() / 8;
  for (int64_t size : tensor.getShape())
    if (!ShapedType::isDynamic(size))
      bytes *= size;
  if (tensor.hasStaticShape())
    return {0, 0, 0, dyna_align_block(bytes)};
  return {bytes, 0, 0, 0};
}

static LinearBytes fromAbi(const dyna_linear_bytes &bytes) {
  return {bytes.tq, bytes.tkv, bytes.s, bytes.constant};
}

static int64_t elementBytes(Value value) {
  return getElementTypeOrSelf(value).getIntOrFloatBitWidth() / 8;
}

/// Returns the partial sums of every vector that the sweep adds to.
static std::optional<LinearBytes> scratchOfRows(RowsOp rows) {
  int64_t bytes = 0;
  for (auto [accumulator, result] : accumulationsOf(rows)) {
    auto type = cast<RankedTensorType>(result.getType());
    // Sums use the accumulator type even if the result is narrower.
    Type sum = getAccumulatorType(type.getElementType());
    bytes +=
        dyna_align_block(targetOf(rows).partialSums * type.getNumElements() *
                         sum.getIntOrFloatBitWidth() / 8);
  }
  if (bytes == 0)
    return std::nullopt;
  return LinearBytes{0, 0, 0, bytes};
}

template <typename HeadOp> static LinearBytes scratchOfHead(HeadOp head) {
  auto type = cast<RankedTensorType>(head.getWeight().getType());
  const Target &target = targetOf(head);
  int64_t chunk = target.headChunkRows;
  LinearBytes bytes = fromAbi(dyna_head_chunk_workspace(
      elementBytes(head.getX()), type.getDimSize(1), type.getDimSize(0), chunk,
      target.hasNarrowLogits(getElementTypeOrSelf(head.getX()),
                             head.getShardAttr())));
  if (head.getShardAttr())
    bytes.constant += dyna_head_chunk_exchange_workspace(chunk);
  return bytes;
}

/// Returns the scratch of a table's gradient. A table that is narrower than the
/// sums of its rows gets every row added once. For this the tokens of each row
/// are linked. The links are 32-bit indices: the first of every row and the
/// next of every token.
template <typename TableGradOp>
static std::optional<LinearBytes> scratchOfTable(TableGradOp grad) {
  auto type = cast<RankedTensorType>(grad.getAccumulator().getType());
  if (!type.getElementType().isBF16())
    return std::nullopt;
  return LinearBytes{4, 0, 0, dyna_align_block(4 * type.getDimSize(0))};
}

std::optional<LinearBytes> mlir::dyna::scratchOf(Operation *op) {
  using Result = std::optional<LinearBytes>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([](AttentionGradOp grad) -> Result {
        return fromAbi(dyna_attention_grad_workspace(
            elementBytes(grad.getQuery()), grad.getHeads(), grad.getKvHeads(),
            grad.getHeadDim()));
      })
      .Case<LinearCrossEntropyOp, LinearCrossEntropyInputOp>(
          [](auto head) -> Result { return scratchOfHead(head); })
      .Case([](LinearCrossEntropyTrainOp head) -> Result {
        LinearBytes bytes = scratchOfHead(head);
        auto type = cast<RankedTensorType>(head.getAccumulator().getType());
        if (type.getElementType().isBF16())
          bytes.constant +=
              dyna_head_sum_workspace(type.getDimSize(1), type.getDimSize(0));
        return bytes;
      })
      .Case<EmbeddingGradOp, PositionsGradOp>(
          [](auto grad) { return scratchOfTable(grad); })
      .Case([](RowsOp rows) { return scratchOfRows(rows); })
      .Case([](SumSquaresOp) -> Result {
        return LinearBytes{0, 0, 0, dyna_align_block(DYNA_MAX_CHUNKS * 8)};
      })
      .Default([](Operation *) -> Result { return std::nullopt; });
}
