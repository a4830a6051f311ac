//===- FuseRows.cpp - Gathers row-wise ops into sweeps over the rows ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/memory/Passes.h"
#include "passes/memory/sweep/Epilogues.h"
#include "passes/memory/sweep/RowGroups.h"
#include "passes/memory/value/OpScratch.h"
#include "passes/memory/value/Target.h"
#include "passes/memory/value/TokenParts.h"
#include "passes/memory/value/Values.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_FUSEROWS
#include "passes/memory/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

static bool isRowWise(Operation &op) {
  return op.hasTrait<mlir::dyna::OpTrait::RowWise>();
}

//===----------------------------------------------------------------------===//
// Products with a bias or a sum
//===----------------------------------------------------------------------===//

static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && op.use_empty())
      op.erase();
}

/// Splits a bias: `linear x, w, b` -> `bias (linear x, w), b`.
static void splitBias(LinearOp linear) {
  OpBuilder builder(linear);
  auto product = LinearOp::create(builder, linear.getLoc(), linear.getType(),
                                  linear.getX(), linear.getWeight(),
                                  /*bias=*/Value());
  auto sum = BiasOp::create(builder, linear.getLoc(), linear.getType(),
                            product.getResult(), linear.getBias());
  linear.replaceAllUsesWith(sum.getResult());
  linear.erase();
}

/// Returns true if the product can be added to `value` in place. The value must
/// be made here, before the product, and for the sum alone. No sweep may be
/// able to add to it for free.
static bool canAddTo(LinearGradInputOp product, Value value) {
  Operation *maker = value.getDefiningOp();
  return maker && value.hasOneUse() && !isRowWise(*maker) &&
         maker->isBeforeInBlock(product);
}

/// Adds in a product: `add (linear_grad_input dy, w), z` -> `linear_grad_input
/// dy, w add z`. If both operands are such products, the later is added to the
/// earlier.
static void addInProduct(AddOp sum) {
  for (auto [operand, other] : {std::pair(sum.getLhs(), sum.getRhs()),
                                std::pair(sum.getRhs(), sum.getLhs())}) {
    auto product = operand.getDefiningOp<LinearGradInputOp>();
    if (!product || product.getAccumulator() || !operand.hasOneUse() ||
        !canAddTo(product, other))
      continue;
    OpBuilder builder(product);
    auto added =
        LinearGradInputOp::create(builder, sum.getLoc(), sum.getType(),
                                  product.getDy(), product.getWeight(), other);
    sum.replaceAllUsesWith(added.getResult());
    sum.erase();
    product.erase();
    return;
  }
}

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

/// Returns the feature size of the rows that an op works on.
static int64_t rowWidth(Operation &op) {
  auto widthOf = [](Value value) -> int64_t {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 2 && type.isDynamicDim(0)
               ? type.getDimSize(1)
               : 0;
  };
  int64_t width = 0;
  for (Value operand : op.getOperands())
    width = std::max(width, widthOf(operand));
  for (Value result : op.getResults())
    width = std::max(width, widthOf(result));
  return width;
}

static FusionNode describe(Operation &op, const TokenParts &parts,
                           const Target &target) {
  FusionNode node;
  if (isRowWise(op)) {
    node.kind = FusionNode::RowWise;
    node.width = rowWidth(op);
    // The rows are all tokens, or the tokens of this rank in a group.
    dist::GroupAttr group = parts.ofRows(&op);
    node.rows = group ? group.getIndex() : -1;
    // This op needs the whole row in memory.
    node.wholeRows = op.hasTrait<mlir::dyna::OpTrait::PairsFeatures>();
  } else if (isRowProduct(&op) &&
             target.epilogues == Target::Epilogues::AnySweep) {
    node.kind = FusionNode::RowProduct;
  }
  return node;
}

/// Describes the ops of the block, without the terminator, for the decision.
static FusionGraph describe(Block &block, const TokenParts &parts,
                            const Target &target,
                            SmallVector<Operation *> &ops) {
  FusionGraph graph;
  DenseMap<Value, int> numberOf;
  for (Value argument : block.getArguments())
    numberOf[argument] = graph.addArgument(parts.bytesOf(argument).tq);
  for (Operation &op : block.without_terminator()) {
    FusionNode node = describe(op, parts, target);
    // An exchange reads the operands of its collectives.
    op.walk([&](Operation *reader) {
      for (Value operand : reader->getOperands())
        if (operand.getParentBlock() == &block)
          node.operands.push_back(numberOf.lookup(operand));
    });
    std::vector<int64_t> bytes;
    for (Value result : op.getResults())
      bytes.push_back(parts.bytesOf(result).tq);
    int index = graph.addNode(std::move(node), bytes);
    for (auto [result, number] :
         llvm::zip_equal(op.getResults(), graph.nodes[index].results))
      numberOf[result] = number;
    ops.push_back(&op);
  }
  for (Value value : block.getTerminator()->getOperands())
    graph.values[numberOf.lookup(value)].returned = true;
  return graph;
}

/// Moves the ops into one `dyna.rows` before `end`.
static void makeSweep(ArrayRef<Operation *> ops, Operation *end) {
  DenseSet<Operation *> members(ops.begin(), ops.end());
  SmallVector<Value> leaving;
  SmallVector<Type> types;
  SmallVector<Location> locations;
  auto isOutside = [&](Operation *user) { return !members.contains(user); };
  for (Operation *op : ops) {
    locations.push_back(op->getLoc());
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), isOutside)) {
        leaving.push_back(result);
        types.push_back(result.getType());
      }
  }
  OpBuilder builder(end);
  auto rows = RowsOp::create(builder, builder.getFusedLoc(locations), types);
  for (auto [value, result] : llvm::zip_equal(leaving, rows.getResults()))
    value.replaceUsesWithIf(
        result, [&](OpOperand &use) { return isOutside(use.getOwner()); });
  Block &body = rows.getBody().emplaceBlock();
  for (Operation *op : ops)
    op->moveBefore(&body, body.end());
  builder.setInsertionPointToEnd(&body);
  YieldOp::create(builder, rows.getLoc(), leaving);
}

namespace {

struct FuseRows : mlir::dyna::impl::FuseRowsBase<FuseRows> {
  void runOnOperation() override {
    Block &block = getOperation().getBody().front();
    prepare(block);

    SmallVector<Operation *> ops;
    const Target &target = targetOf(getOperation());
    FusionGraph graph =
        describe(block, TokenParts(getOperation()), target, ops);
    int64_t steps = 0;
    std::vector<FusionUnit> units = planSweeps(graph, &steps);
    numSteps += static_cast<unsigned>(steps);
    assert(isLegal(graph, units) && "sweeps that cannot run");
    if (target.epilogues == Target::Epilogues::Described)
      takeDescribedEpilogues(ops, units);

    for (const FusionUnit &unit : units) {
      if (unit.leader >= 0)
        ops[unit.leader]->moveBefore(block.getTerminator());
      if (unit.rows.empty())
        continue;
      SmallVector<Operation *> members;
      for (int node : unit.rows)
        members.push_back(ops[node]);
      makeSweep(members, block.getTerminator());
      numRowWise += members.size();
      ++numSweeps;
      numEpilogues += unit.leader >= 0;
    }
  }

  static void prepare(Block &block) {
    eraseUnused(block);
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto linear = dyn_cast<LinearOp>(op); linear && linear.getBias())
        splitBias(linear);
    for (Operation &op : llvm::make_early_inc_range(block))
      if (auto sum = dyn_cast<AddOp>(op))
        addInProduct(sum);
  }
};

} // namespace
