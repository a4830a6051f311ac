//===- Values.cpp - What places may be shared -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/Values.h"
#include "dialects/dist/Dist.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;

using Accumulations = SmallVector<std::pair<Value, OpResult>>;

/// Those of the ops in the body that leave the sweep.
static Accumulations accumulationsOfRows(RowsOp rows) {
  Accumulations pairs;
  Operation *yield = rows.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(yield->getOperands())) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != yield->getBlock())
      continue;
    for (auto [accumulator, result] : accumulationsOf(op))
      if (result == value)
        pairs.push_back({accumulator, rows->getResult(index)});
  }
  return pairs;
}

Accumulations mlir::dyna::accumulationsOf(Operation *op) {
  auto pair = [](Value accumulator, Value result) {
    return std::pair<Value, OpResult>(accumulator, cast<OpResult>(result));
  };
  return llvm::TypeSwitch<Operation *, Accumulations>(op)
      .Case<EmbeddingGradOp, PositionsGradOp, LinearGradWeightOp, BiasGradOp,
            RmsNormGradWeightOp, LinearCrossEntropyTrainOp, SumSquaresOp>(
          [&](auto add) -> Accumulations {
            return {pair(add.getAccumulator(), add.getResult())};
          })
      .Case([&](LinearGradInputOp add) -> Accumulations {
        if (!add.getAccumulator())
          return {};
        return {pair(add.getAccumulator(), add.getResult())};
      })
      .Case([&](LayerNormGradWeightOp add) -> Accumulations {
        return {pair(add.getWeightAccumulator(), add.getWeightResult()),
                pair(add.getBiasAccumulator(), add.getBiasResult())};
      })
      .Case([&](AdamwOp step) -> Accumulations {
        return {pair(step.getMaster(), step.getNewMaster()),
                pair(step.getGradient(), step.getNewGradient()),
                pair(step.getM(), step.getNewM()),
                pair(step.getV(), step.getNewV())};
      })
      .Case([](RowsOp rows) { return accumulationsOfRows(rows); })
      .Default([](Operation *) -> Accumulations { return {}; });
}

bool mlir::dyna::isRowProduct(Operation *op) {
  return isa_and_present<LinearOp, LinearGradInputOp>(op);
}

static bool usesInBody(RowsOp rows, Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return user->getBlock() == &rows.getBody().front();
  });
}

Operation *mlir::dyna::getEpilogueProduct(RowsOp rows) {
  Operation *before = rows->getPrevNode();
  if (!isRowProduct(before) || !usesInBody(rows, before->getResult(0)))
    return nullptr;
  return before;
}

bool mlir::dyna::isElementwise(Operation *op) {
  return isa<BiasOp, GeluOp, SiluOp, ReluOp, AddOp, MulOp, DropoutOp,
             GeluGradOp, SiluGradOp, ReluGradOp>(op);
}

/// Needs whole rows before it can give an element.
static bool needsWholeRows(Operation &op) {
  return !isElementwise(&op) && !isa<PositionsOp, BiasGradOp, YieldOp>(op);
}

/// The ops of the body on which `op` depends, and itself.
static DenseSet<Operation *> ancestorsOf(Operation *op) {
  DenseSet<Operation *> found;
  SmallVector<Operation *> work = {op};
  while (!work.empty()) {
    Operation *next = work.pop_back_val();
    if (!found.insert(next).second)
      continue;
    for (Value operand : next->getOperands())
      if (Operation *from = operand.getDefiningOp())
        if (from->getBlock() == op->getBlock())
          work.push_back(from);
  }
  return found;
}

bool mlir::dyna::mayReplace(RowsOp rows, Value operand, OpResult result) {
  Block &body = rows.getBody().front();
  Value yielded = body.getTerminator()->getOperand(result.getResultNumber());
  Operation *last = yielded.getDefiningOp();
  if (operand.getType() != result.getType() || !last ||
      last->getBlock() != &body)
    return false;

  // One pass over the row: each of its elements is read before one is stored.
  if (llvm::none_of(body, needsWholeRows))
    return true;
  SmallVector<Operation *> readers;
  for (OpOperand &use : operand.getUses())
    if (use.getOwner()->getBlock() == &body)
      readers.push_back(use.getOwner());
  // A pair of features is loaded before either is stored.
  if (isa<RotaryOp>(last) && readers == SmallVector<Operation *>{last})
    return true;
  DenseSet<Operation *> before = ancestorsOf(last);
  if (readers.size() != 1 || !before.contains(readers.front()))
    return false;
  // Every op on every path from the reader to the result.
  DenseSet<Operation *> seen;
  SmallVector<Operation *> path = {readers.front()};
  while (!path.empty()) {
    Operation *op = path.pop_back_val();
    if (!before.contains(op) || !seen.insert(op).second)
      continue;
    if (!isElementwise(op))
      return false;
    path.append(op->user_begin(), op->user_end());
  }
  return true;
}

/// Whether the result is the sum of `operand` over ranks, which nothing else in
/// the exchange reads.
static bool isOnlySum(dist::ExchangeOp exchange, Value operand,
                      OpResult result) {
  SmallVector<Operation *> collectives = exchange.getCollectives();
  auto reads = [&](Operation *op) { return op->getOperand(0) == operand; };
  Operation *maker = collectives[result.getResultNumber()];
  return isa<dist::AllReduceOp>(maker) && reads(maker) &&
         llvm::count_if(collectives, reads) == 1;
}

bool mlir::dyna::mayReplace(Operation *op, Value operand, OpResult result) {
  if (auto rows = dyn_cast<RowsOp>(op))
    return mayReplace(rows, operand, result);
  if (auto exchange = dyn_cast<dist::ExchangeOp>(op))
    return isOnlySum(exchange, operand, result);
  return isa<dist::AllReduceOp>(op);
}
