//===- RowsPlan.cpp - In which pass over a row what is computed -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/rows/RowsPlan.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::rows;

static bool isActivation(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2 && type.isDynamicDim(0);
}

namespace {
class Planner {
public:
  Planner(RowsOp op, RowsPlan &plan) : rows(op), plan(plan) {}

  LogicalResult run() {
    for (Operation &op : rows.getBody().front().without_terminator())
      if (failed(visit(&op)))
        return failure();
    for (auto [index, value] :
         llvm::enumerate(rows.getBody().front().getTerminator()->getOperands()))
      if (isActivation(value))
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
  void addAccumulations(Operation *op, ValueRange accumulators, int pass);
  void readOperands(Operation *op);
  void readAt(Value value, int pass);
  int operandLevel(Operation *op);
  void setLevel(Operation *op, int level) {
    plan.levels[op->getResult(0)] = level;
    plan.passes = std::max(plan.passes, level + 1);
  }

  RowsOp rows;
  RowsPlan &plan;
};
} // namespace

int Planner::operandLevel(Operation *op) {
  int level = 0;
  for (Value operand : op->getOperands())
    level = std::max(level, plan.levelOf(operand));
  return level;
}

/// Adds a statistic (once) and the one it needs. Returns the first pass in
/// which it is known.
int Planner::addStatistic(Statistic statistic) {
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

void Planner::addAccumulations(Operation *op, ValueRange accumulators,
                               int pass) {
  for (auto [result, accumulator] : llvm::zip(op->getResults(), accumulators))
    plan.accumulations.push_back({result, accumulator, pass});
  plan.passes = std::max(plan.passes, pass + 1);
}

/// All activations of a sweep have one width; it is set by the first.
LogicalResult Planner::checkWidth(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  for (Value value : values) {
    if (!isActivation(value))
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

LogicalResult Planner::visit(Operation *op) {
  if (failed(checkWidth(op)))
    return failure();
  int level = operandLevel(op);
  auto norm = [&](ArrayRef<Statistic> statistics) {
    for (const Statistic &statistic : statistics)
      level = std::max(level, addStatistic(statistic));
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](RotaryOp op) -> LogicalResult {
        if (op.getX().getParentBlock() == op->getBlock())
          return op.emitOpError("expects an operand from outside its "
                                "'dyna.rows': it needs whole rows");
        plan.rotaries.push_back(op);
        setLevel(op, 0);
        return success();
      })
      .Case([&](LayerNormOp op) {
        norm({{Statistic::Deviation, op.getX(),
               op.getEpsilon().convertToDouble()}});
        setLevel(op, level);
        return success();
      })
      .Case([&](RmsNormOp op) {
        norm({{Statistic::RootMean, op.getX(),
               op.getEpsilon().convertToDouble()}});
        setLevel(op, level);
        return success();
      })
      .Case([&](LayerNormGradInputOp op) {
        norm({{Statistic::Deviation, op.getX(),
               op.getEpsilon().convertToDouble()},
              {Statistic::Gradient, Value(), 0.0, op.getWeight(), op.getDy()},
              {Statistic::CenteredDot, op.getX(), 0.0, op.getWeight(),
               op.getDy()}});
        setLevel(op, level);
        return success();
      })
      .Case([&](RmsNormGradInputOp op) {
        norm({{Statistic::RootMean, op.getX(),
               op.getEpsilon().convertToDouble()},
              {Statistic::Dot, op.getX(), 0.0, op.getWeight(), op.getDy()}});
        setLevel(op, level);
        return success();
      })
      .Case([&](LayerNormGradWeightOp op) {
        norm({{Statistic::Deviation, op.getX(),
               op.getEpsilon().convertToDouble()}});
        addAccumulations(
            op, {op.getWeightAccumulator(), op.getBiasAccumulator()}, level);
        return success();
      })
      .Case([&](RmsNormGradWeightOp op) {
        norm({{Statistic::RootMean, op.getX(),
               op.getEpsilon().convertToDouble()}});
        addAccumulations(op, op.getAccumulator(), level);
        return success();
      })
      .Case([&](BiasGradOp op) {
        addAccumulations(op, op.getAccumulator(), level);
        return success();
      })
      .Default([&](Operation *op) {
        setLevel(op, level);
        return success();
      });
}

void Planner::readOperands(Operation *op) {
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
void Planner::readAt(Value value, int pass) {
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
  if (failed(Planner(op, plan).run()))
    return failure();
  if (plan.width == 0)
    return op.emitOpError("has no row-wise op in its body");
  return plan;
}
