//===- DynaOpFacts.cpp - Implements the interfaces of dyna ops ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The facts that phases ask ops for (DynaInterfaces.td), as far as they are no
// traits. Only meaning stands here: what a kernel needs, or how ranks share the
// op, is said by the phases that know kernels and ranks.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"

using namespace mlir;
using namespace mlir::dyna;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

MatrixProduct LinearOp::getProduct() {
  return {.a = getX(), .b = getWeight(), .c = getResult(), .transposeB = true};
}

MatrixProduct LinearGradInputOp::getProduct() {
  return {.a = getDy(),
          .b = getWeight(),
          .c = getResult(),
          .accumulator = getAccumulator()};
}

MatrixProduct LinearGradWeightOp::getProduct() {
  return {.a = getDy(),
          .b = getX(),
          .c = getResult(),
          .transposeA = true,
          .accumulator = getAccumulator()};
}

static int64_t elementsOf(Value matrix) {
  return cast<ShapedType>(matrix.getType()).getNumElements();
}

Work mlir::dyna::workOf(const MatrixProduct &product) {
  return {.perToken = 2 * elementsOf(product.matrix())};
}

/// Returns the work of `products` for each pair of a query and a key, over all
/// features of the heads.
template <typename Op> static Work attentionWork(Op op, int64_t products) {
  int64_t flops = 2 * products * int64_t(op.getHeads()) * op.getHeadDim();
  return op.getCausal() ? Work{.perCausalPair = flops} : Work{.perPair = flops};
}

/// Returns the work of scores, and of the weighted values.
Work AttentionOp::getWork() { return attentionWork(*this, kAttentionProducts); }

/// Scores again, then the gradients of values, scores, queries and keys.
Work AttentionGradOp::getWork() {
  return attentionWork(*this, kAttentionGradProducts);
}

Work LinearCrossEntropyOp::getWork() {
  return {.perTarget = 2 * elementsOf(getWeight())};
}

/// Returns the work of logits, and of their gradients by the weight and by x.
Work LinearCrossEntropyTrainOp::getWork() {
  return {.perTarget = 3 * 2 * elementsOf(getWeight())};
}

/// Returns the work of logits, and of their gradient by x.
Work LinearCrossEntropyInputOp::getWork() {
  return {.perTarget = 2 * 2 * elementsOf(getWeight())};
}

Work mlir::dyna::workIn(Operation *op) {
  Work work;
  op->walk([&](ProductOpInterface product) { work += product.getWork(); });
  return work;
}

//===----------------------------------------------------------------------===//
// Other ranks, and the rows of a micro-batch
//===----------------------------------------------------------------------===//

/// Returns the exchanges of the softmax over a vocabulary that is split over
/// ranks, in f64. The first is the largest logit of every row. The second has
/// its sum of exponentials and its target's logit.
static InnerExchanges softmaxExchanges(ShardAttr shard) {
  constexpr int64_t number = sizeof(double);
  if (!shard)
    return {};
  return {{shard.getGroup(), number}, {shard.getGroup(), 2 * number}};
}

InnerExchanges LinearCrossEntropyOp::getInnerExchanges() {
  return softmaxExchanges(getShardAttr());
}
InnerExchanges LinearCrossEntropyTrainOp::getInnerExchanges() {
  return softmaxExchanges(getShardAttr());
}

InnerExchanges LinearCrossEntropyInputOp::getInnerExchanges() {
  return softmaxExchanges(getShardAttr());
}

BatchTable AttentionOp::getBatchTable() { return BatchTable::Offsets; }
BatchTable AttentionGradOp::getBatchTable() { return BatchTable::Offsets; }
BatchTable EmbeddingGradOp::getBatchTable() { return BatchTable::TokenRuns; }
BatchTable PositionsGradOp::getBatchTable() { return BatchTable::PositionRuns; }
BatchTable LinearCrossEntropyOp::getBatchTable() {
  return BatchTable::TargetRows;
}
BatchTable LinearCrossEntropyTrainOp::getBatchTable() {
  return BatchTable::TargetRows;
}
BatchTable LinearCrossEntropyInputOp::getBatchTable() {
  return BatchTable::TargetRows;
}

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

Accumulations LinearGradInputOp::getAccumulations() {
  if (!getAccumulator())
    return {};
  return {accumulation(getAccumulator(), getResult())};
}

Accumulations LayerNormGradWeightOp::getAccumulations() {
  return {accumulation(getWeightAccumulator(), getWeightResult()),
          accumulation(getBiasAccumulator(), getBiasResult())};
}

Accumulations AdamwOp::getAccumulations() {
  return {accumulation(getMaster(), getNewMaster()),
          accumulation(getGradient(), getNewGradient()),
          accumulation(getM(), getNewM()), accumulation(getV(), getNewV())};
}

/// Returns the accumulations of ops in the body whose results leave the sweep.
Accumulations RowsOp::getAccumulations() {
  Accumulations pairs;
  Operation *yield = getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != yield->getBlock())
      continue;
    for (auto [accumulator, result] : accumulationsOf(op))
      if (result == value)
        pairs.push_back(accumulation(accumulator, getResult(index)));
  }
  return pairs;
}
