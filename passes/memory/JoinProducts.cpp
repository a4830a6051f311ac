//===- JoinProducts.cpp - Puts products that can be one together ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "mlir/Pass/Pass.h"
#include "passes/memory/Passes.h"
#include "passes/memory/value/ProductRuns.h"
#include "passes/memory/value/TokenParts.h"
#include "passes/memory/value/Values.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_JOINPRODUCTS
#include "passes/memory/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

/// Returns true if the products use nothing that is made between the first of
/// them and themselves, except their own results.
static bool canMoveUp(const ProductRun &run, Operation *first) {
  return llvm::all_of(run.ops, [&](Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Operation *maker = operand.getDefiningOp();
      return !maker || maker->isBeforeInBlock(first);
    });
  });
}

/// Returns true if no op before the last of the products uses their results,
/// except the products.
static bool canMoveDown(const ProductRun &run, Operation *last) {
  DenseSet<Operation *> members(run.ops.begin(), run.ops.end());
  return llvm::all_of(run.ops, [&](Operation *op) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      Operation *outer = last->getBlock()->findAncestorOpInBlock(*user);
      return members.contains(outer) || last->isBeforeInBlock(outer);
    });
  });
}

static SmallVector<Operation *> inBlockOrder(const ProductRun &run) {
  SmallVector<Operation *> ops = run.ops;
  llvm::sort(ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ops;
}

/// Products of one x go behind the first, where x is fresh; gradients to the
/// last, when all that they read is there. False where that cannot be.
static bool bringTogether(const ProductRun &run) {
  SmallVector<Operation *> ops = inBlockOrder(run);
  if (isa<LinearOp>(ops.front())) {
    if (!canMoveUp(run, ops.front()))
      return false;
    for (size_t i = 1; i < ops.size(); ++i)
      ops[i]->moveAfter(ops[i - 1]);
    return true;
  }
  if (!canMoveDown(run, ops.back()))
    return false;
  for (size_t i = ops.size() - 1; i > 0; --i)
    ops[i - 1]->moveBefore(ops[i]);
  return true;
}

/// Returns the sweeps that ran in the epilogues of the products.
static SmallVector<RowsOp> epiloguesOf(const ProductRun &run) {
  SmallVector<RowsOp> sweeps;
  for (Operation *op : inBlockOrder(run))
    if (RowsOp rows = getEpilogue(op))
      sweeps.push_back(rows);
  return sweeps;
}

static int64_t widthOf(RowsOp rows) {
  for (Type type : rows->getResultTypes())
    if (auto tensor = cast<RankedTensorType>(type); tensor.getRank() == 2)
      return tensor.getDimSize(1);
  return 0;
}

/// Returns true if the sweep reads a result of another one.
static bool readsOneOf(RowsOp rows, ArrayRef<RowsOp> others) {
  bool reads = false;
  rows.walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      reads |= llvm::is_contained(others, operand.getDefiningOp<RowsOp>());
  });
  return reads;
}

/// Merges sweeps into one, at the place of the first.
static void merge(ArrayRef<RowsOp> sweeps) {
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (RowsOp rows : sweeps) {
    llvm::append_range(types, rows->getResultTypes());
    locations.push_back(rows.getLoc());
  }
  OpBuilder builder(sweeps.front());
  auto merged = RowsOp::create(builder, builder.getFusedLoc(locations), types);
  Block &body = merged.getBody().emplaceBlock();
  SmallVector<Value> yielded;
  unsigned result = 0;
  for (RowsOp rows : sweeps) {
    Block &from = rows.getBody().front();
    llvm::append_range(yielded, from.getTerminator()->getOperands());
    from.getTerminator()->erase();
    body.getOperations().splice(body.end(), from.getOperations());
    for (Value value : rows->getResults())
      value.replaceAllUsesWith(merged->getResult(result++));
  }
  builder.setInsertionPointToEnd(&body);
  YieldOp::create(builder, merged.getLoc(), yielded);
  for (RowsOp rows : sweeps)
    rows.erase();
}

/// Moves the sweeps after each product behind the last product. They become one
/// sweep if their rows have one width, so that it still runs while the rows are
/// in cache.
static void joinEpilogues(const ProductRun &run, ArrayRef<RowsOp> sweeps,
                          const TokenParts &parts) {
  if (sweeps.empty())
    return;
  Operation *after = run.last();
  for (RowsOp rows : sweeps) {
    if (readsOneOf(rows, sweeps))
      return;
    // A sweep may read values that are made between its product and the others.
    bool isReady = true;
    rows.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (Operation *maker = operand.getDefiningOp();
            maker && maker->getBlock() == after->getBlock())
          isReady &= maker == after || maker->isBeforeInBlock(after);
    });
    if (!isReady)
      return;
  }
  bool isOne = llvm::all_of(sweeps, [&](RowsOp rows) {
    return widthOf(rows) != 0 && widthOf(rows) == widthOf(sweeps.front()) &&
           parts.ofRows(rows) == parts.ofRows(sweeps.front());
  });
  // The last product's sweep comes first: it is the one that can be an
  // epilogue.
  for (RowsOp rows : sweeps)
    rows->moveAfter(after);
  if (isOne && sweeps.size() > 1)
    merge(SmallVector<RowsOp>(llvm::reverse(sweeps)));
}

namespace {

struct JoinProducts : mlir::dyna::impl::JoinProductsBase<JoinProducts> {
  void runOnOperation() override {
    TokenParts parts(getOperation());
    for (const ProductRun &run : findProductRuns(getOperation())) {
      bool isForward = isa<LinearOp>(run.ops.front());
      SmallVector<RowsOp> sweeps;
      if (isForward)
        sweeps = epiloguesOf(run);
      if (!bringTogether(run))
        continue;
      joinEpilogues(run, sweeps, parts);
      ++numRuns;
      numProducts += run.ops.size();
    }
  }
};

} // namespace
