//===- FuseCollectives.cpp - Implements dyna-fuse-collectives -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_FUSECOLLECTIVES
#include "passes/distribute/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

static bool isExchange(Operation *op) {
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  return isa<dist::ExchangeOp>(op) || (collective && collective.isExchange());
}

static dist::GroupAttr groupOf(Operation *op) {
  if (auto exchange = dyn_cast<dist::ExchangeOp>(op))
    return exchange.getGroup();
  return cast<dist::CollectiveOpInterface>(op).getGroup();
}

/// Collects the ops from `first` on that `op` needs in its block. Returns false
/// if `first` is one of them.
static bool collectNeeds(Operation *op, Operation *first,
                         llvm::SetVector<Operation *> &needs) {
  SmallVector<Operation *> work = {op};
  while (!work.empty()) {
    // Regions use values from outside without operands.
    bool isApart = true;
    work.pop_back_val()->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *maker = operand.getDefiningOp();
        if (!maker || maker->getBlock() != first->getBlock() ||
            maker->isBeforeInBlock(first))
          continue;
        isApart &= maker != first;
        if (needs.insert(maker))
          work.push_back(maker);
      }
    });
    if (!isApart)
      return false;
  }
  return true;
}

/// Moves what `op` needs in front of `first`; false, and nothing moved, if that
/// cannot be or should not.
static bool bringNeeds(Operation *op, Operation *first) {
  llvm::SetVector<Operation *> needs;
  if (!collectNeeds(op, first, needs) || llvm::any_of(needs, isExchange))
    return false;
  SmallVector<Operation *> ordered = needs.takeVector();
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *need : ordered)
    need->moveBefore(first);
  return true;
}

/// Fuses the exchanges of `first` and `op` into one at the place of `first`.
static dist::ExchangeOp fuse(Operation *first, Operation *op) {
  SmallVector<Operation *> collectives = {first};
  if (auto exchange = dyn_cast<dist::ExchangeOp>(first))
    collectives = llvm::to_vector_of<Operation *>(exchange.getCollectives());
  collectives.push_back(op);
  SmallVector<Value> yielded, before(first->getResults());
  SmallVector<Location> locations;
  for (Operation *collective : collectives) {
    yielded.push_back(collective->getResult(0));
    locations.push_back(collective->getLoc());
  }
  before.push_back(op->getResult(0));

  OpBuilder builder(first);
  auto fused = dist::ExchangeOp::create(builder, builder.getFusedLoc(locations),
                                        TypeRange(ValueRange(yielded)));
  for (auto [value, result] : llvm::zip_equal(before, fused.getResults()))
    value.replaceAllUsesWith(result);
  Block &body = fused.getBody().emplaceBlock();
  for (Operation *collective : collectives)
    collective->moveBefore(&body, body.end());
  if (isa<dist::ExchangeOp>(first))
    first->erase();
  builder.setInsertionPointToEnd(&body);
  dist::YieldOp::create(builder, fused.getLoc(), yielded);
  return fused;
}

/// Joins `op` to the nearest of the exchanges before it that can take it.
static bool join(Operation *op, SmallVectorImpl<Operation *> &exchanges) {
  for (Operation *&earlier : llvm::reverse(exchanges)) {
    if (groupOf(earlier) != groupOf(op) || !bringNeeds(op, earlier))
      continue;
    earlier = fuse(earlier, op);
    return true;
  }
  return false;
}

namespace {

class FuseCollectives
    : public mlir::dyna::impl::FuseCollectivesBase<FuseCollectives> {
public:
  void runOnOperation() override;

private:
  void fuseIn(Block &block);
};

} // namespace

void FuseCollectives::fuseIn(Block &block) {
  SmallVector<Operation *> exchanges, found;
  for (Operation &op : block)
    if (isExchange(&op))
      found.push_back(&op);
  for (Operation *op : found)
    if (isa<dist::ExchangeOp>(op) || !join(op, exchanges))
      exchanges.push_back(op);
  for (Operation *op : exchanges)
    if (auto exchange = dyn_cast<dist::ExchangeOp>(op)) {
      ++numExchanges;
      numFused += exchange.getNumResults();
    }
}

void FuseCollectives::runOnOperation() {
  for (Operation &op : getOperation().getOps()) {
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (function && dist::kArguments.isOn(&op))
      fuseIn(function.getFunctionBody().front());
  }
}
