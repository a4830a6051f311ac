//===- Values.cpp - States which values may share a place -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/value/Values.h"
#include "dialects/dist/Dist.h"
#include "passes/memory/value/Target.h"

using namespace mlir;
using namespace mlir::dyna;

static bool usesInBody(RowsOp rows, Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return user->getBlock() == &rows.getBody().front();
  });
}

static bool takesAnySweep(RowsOp rows) {
  return targetOf(rows).epilogues == Target::Epilogues::AnySweep;
}

Operation *mlir::dyna::getEpilogueProduct(RowsOp rows) {
  Operation *before = rows->getPrevNode();
  if (!isRowProduct(before) || !usesInBody(rows, before->getResult(0)))
    return nullptr;
  return takesAnySweep(rows) || !describedEpilogues(rows).empty() ? before
                                                                  : nullptr;
}

RowsOp mlir::dyna::getEpilogue(Operation *product) {
  auto rows = dyn_cast_if_present<RowsOp>(product->getNextNode());
  return rows && getEpilogueProduct(rows) == product ? rows : RowsOp();
}

static bool isElementwise(Operation *op) {
  return op->hasTrait<mlir::dyna::OpTrait::Elementwise>();
}

/// Returns the ops of the body on which `op` depends, and `op` itself.
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
  // A described epilogue runs while the product is computed, or after the
  // product was written to the place of its result. The product itself has no
  // memory then.
  if (!takesAnySweep(rows)) {
    SmallVector<DescribedEpilogue> epilogues = describedEpilogues(rows);
    auto isOf = [&](const DescribedEpilogue &epilogue) {
      return epilogue.product == operand.getDefiningOp();
    };
    if (!epilogues.empty() && llvm::none_of(epilogues, isOf))
      return false;
  }

  // With one pass over the row, each element is read before it is stored.
  if (llvm::all_of(body.without_terminator(),
                   [](Operation &op) { return isElementwise(&op); }))
    return true;
  SmallVector<Operation *> readers;
  for (OpOperand &use : operand.getUses())
    if (use.getOwner()->getBlock() == &body)
      readers.push_back(use.getOwner());
  if (last->hasTrait<mlir::dyna::OpTrait::PairsFeatures>() &&
      readers == SmallVector<Operation *>{last})
    return true;
  DenseSet<Operation *> before = ancestorsOf(last);
  if (readers.size() != 1 || !before.contains(readers.front()))
    return false;
  // Check every op on every path from the reader to the result.
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

/// Returns true if the result is the sum of `operand` over ranks, and nothing
/// else in the exchange reads it.
static bool isOnlySum(dist::ExchangeOp exchange, Value operand,
                      OpResult result) {
  SmallVector<dist::CollectiveOpInterface> collectives =
      exchange.getCollectives();
  auto reads = [&](dist::CollectiveOpInterface op) {
    return op.getX() == operand;
  };
  dist::CollectiveOpInterface maker = collectives[result.getResultNumber()];
  return isa<dist::AllReduceOp>(*maker) && reads(maker) &&
         llvm::count_if(collectives, reads) == 1;
}

bool mlir::dyna::mayReplace(Operation *op, Value operand, OpResult result) {
  if (auto rows = dyn_cast<RowsOp>(op))
    return mayReplace(rows, operand, result);
  if (auto exchange = dyn_cast<dist::ExchangeOp>(op))
    return isOnlySum(exchange, operand, result);
  return isa<dist::AllReduceOp>(op);
}
