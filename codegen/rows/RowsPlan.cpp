//===- RowsPlan.cpp - Assigns the values of a sweep to passes -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/rows/RowsPlan.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::rows;

namespace {
class RowsPlanner {
public:
  RowsPlanner(RowsOp op, RowsPlan &plan) : rows(op), plan(plan) {}

  LogicalResult run() {
    for (Operation &op : rows.getBody().front().without_terminator())
      if (failed(visit(&op)))
        return failure();
    for (auto [index, value] :
         llvm::enumerate(rows.getBody().front().getTerminator()->getOperands()))
      if (isActivation(value.getType()))
        plan.yields[value].push_back(index);
    for (Operation &op : rows.getBody().front().without_terminator())
      readOperands(&op);
    for (const Statistic &statistic : plan.statistics)
      for (Value value : {statistic.x, statistic.dy})
        readAt(value, statistic.pass);
    return success();
  }

private:
  LogicalResult visit(Operation *op);
  LogicalResult checkWidth(Operation *op);
  int addStatistic(Statistic statistic);
  void readOperands(Operation *op);
  void readAt(Value value, int pass);
  int operandLevel(Operation *op);

  RowsOp rows;
  RowsPlan &plan;
};
} // namespace

int RowsPlanner::operandLevel(Operation *op) {
  int level = 0;
  for (Value operand : op->getOperands())
    level = std::max(level, plan.levelOf(operand));
  return level;
}

/// Adds a statistic (once) and the one it needs. Returns the first pass in
/// which it is known.
int RowsPlanner::addStatistic(Statistic statistic) {
  int pass = 0;
  for (Value value : {statistic.x, statistic.dy})
    if (value)
      pass = std::max(pass, plan.levelOf(value));
  if (statistic.kind == Statistic::Deviation ||
      statistic.kind == Statistic::CenteredDot)
    pass = std::max(pass, addStatistic({Statistic::Mean, statistic.x}));
  statistic.pass = pass;
  if (!plan.find(statistic))
    plan.statistics.push_back(statistic);
  plan.passes = std::max(plan.passes, pass + 1);
  return pass + 1;
}

/// Checks that all activations of a sweep have one width; the first one sets
/// it.
LogicalResult RowsPlanner::checkWidth(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  for (Value value : values) {
    if (!isActivation(value.getType()))
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    if (!plan.accumulator) {
      plan.width = type.getDimSize(1);
      plan.accumulator = getAccumulatorType(type.getElementType());
    }
    if (type.getDimSize(1) != plan.width)
      return op->emitOpError("expects rows of width ")
             << plan.width << " as the other ops of its 'dyna.rows', but got "
             << type.getDimSize(1);
  }
  return success();
}

/// Returns the statistics of a row that a norm needs.
static SmallVector<Statistic> statisticsOf(Operation *op) {
  using Statistics = SmallVector<Statistic>;
  auto deviation = [](auto op) -> Statistic {
    return {Statistic::Deviation, op.getX(), op.getEpsilon().convertToDouble()};
  };
  auto rootMean = [](auto op) -> Statistic {
    return {Statistic::RootMean, op.getX(), op.getEpsilon().convertToDouble()};
  };
  return llvm::TypeSwitch<Operation *, Statistics>(op)
      .Case<LayerNormOp, LayerNormGradWeightOp>(
          [&](auto op) { return Statistics{deviation(op)}; })
      .Case<RmsNormOp, RmsNormGradWeightOp>(
          [&](auto op) { return Statistics{rootMean(op)}; })
      .Case([&](LayerNormGradInputOp op) {
        return Statistics{
            deviation(op),
            {Statistic::Gradient, Value(), 0.0, op.getWeight(), op.getDy()},
            {Statistic::CenteredDot, op.getX(), 0.0, op.getWeight(),
             op.getDy()}};
      })
      .Case([&](RmsNormGradInputOp op) {
        return Statistics{
            rootMean(op),
            {Statistic::Dot, op.getX(), 0.0, op.getWeight(), op.getDy()}};
      })
      .Default([](Operation *) { return Statistics(); });
}

LogicalResult RowsPlanner::visit(Operation *op) {
  if (failed(checkWidth(op)))
    return failure();
  if (auto rotary = dyn_cast<RotaryOp>(op)) {
    if (rotary.getX().getParentBlock() == op->getBlock())
      return op->emitOpError("expects an operand from outside its "
                             "'dyna.rows': it needs whole rows");
    plan.rotaries.push_back(rotary);
    plan.levels[op->getResult(0)] = 0;
    return success();
  }
  int level = operandLevel(op);
  for (const Statistic &statistic : statisticsOf(op))
    level = std::max(level, addStatistic(statistic));
  mlir::dyna::Accumulations sums = accumulationsOf(op);
  for (auto [accumulator, result] : sums)
    plan.accumulations.push_back({result, accumulator, level});
  if (sums.empty())
    plan.levels[op->getResult(0)] = level;
  plan.passes = std::max(plan.passes, level + 1);
  return success();
}

void RowsPlanner::readOperands(Operation *op) {
  if (isa<RotaryOp>(op))
    return;
  int pass = plan.levelOf(op->getResult(0));
  for (const Accumulation &accumulation : plan.accumulations)
    if (accumulation.result.getOwner() == op)
      pass = accumulation.pass;
  for (Value operand : op->getOperands())
    readAt(operand, pass);
}

/// Notes that `pass` needs `value`: one made earlier must still be somewhere.
void RowsPlanner::readAt(Value value, int pass) {
  if (!value || !plan.levels.contains(value) ||
      (!value.getDefiningOp<RotaryOp>() && plan.levelOf(value) >= pass))
    return;
  plan.rereads.insert(value);
  if (!plan.yields.contains(value))
    plan.stashes.insert(value);
}

FailureOr<RowsPlan> mlir::dyna::rows::planRows(RowsOp op) {
  RowsPlan plan;
  plan.width = 0;
  if (failed(RowsPlanner(op, plan).run()))
    return failure();
  if (plan.width == 0)
    return op.emitOpError("has no row-wise op in its body");
  return plan;
}
