//===- ExecSteps.cpp - Verifies steps of several graphs -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/SwitchTranslation.h"

using namespace mlir;
using namespace mlir::exec;

/// Checks that the op's body has ops of one kind only, or of two kinds in
/// order.
template <typename First, typename Then>
static LogicalResult verifyList(Region &body, const char *whole,
                                const char *what) {
  Operation *last = nullptr;
  for (Operation &item : body.front()) {
    if (!isa<First, Then>(item))
      return item.emitOpError()
             << "is no part of " << whole << ", which lists " << what;
    if (last && isa<First>(item) && !isa<First>(last))
      return item.emitOpError()
             << "stands in the wrong place: " << whole << " lists " << what;
    last = &item;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// exec.orchestration, exec.turn
//===----------------------------------------------------------------------===//

LogicalResult OrchestrationOp::verifyRegions() {
  // ORCHESTRATION1
  if (failed(verifyList<TurnOp, TurnOp>(getBody(), "an exec.orchestration",
                                        "turns")))
    return failure();
  // ORCHESTRATION2
  llvm::SmallDenseSet<Attribute> seen;
  TurnOp last;
  for (auto turn : getOps<TurnOp>()) {
    if (!seen.insert(turn.getGraphAttr()).second)
      return turn.emitOpError()
             << "gives " << turn.getGraphAttr() << " a second turn";
    last = turn;
  }
  if (!last || last.getGraphAttr() != getHomeAttr())
    return emitOpError() << "expects the last turn to be that of home, "
                         << getHomeAttr();
  return success();
}

LogicalResult OrchestrationOp::verifySymbolUses(SymbolTableCollection &) {
  // ORCHESTRATION3
  for (Operation *other = (*this)->getPrevNode(); other;
       other = other->getPrevNode())
    if (isa<OrchestrationOp>(other)) {
      InFlightDiagnostic error = emitOpError("is the second of its module");
      error.attachNote(other->getLoc()) << "the first is here";
      return error;
    }
  return success();
}

LogicalResult TurnOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // TURN1
  if (!symbols.lookupNearestSymbolFrom<GraphOp>(*this, getGraphAttr()))
    return emitOpError() << "expects " << getGraphAttr()
                         << " to be an exec.graph";
  return success();
}

LogicalResult TurnOp::verify() {
  // TURN2
  const auto first = static_cast<int64_t>(getFirst());
  const auto last = static_cast<int64_t>(getLast().value_or(getFirst()));
  if (first < 0 || last < first)
    return emitOpError() << "expects lengths from 0 on, the longest last, but "
                            "got "
                         << first << " to " << last;
  return success();
}

//===----------------------------------------------------------------------===//
// exec.switch_plan
//===----------------------------------------------------------------------===//

LogicalResult SwitchPlanOp::verifyRegions() {
  // SWITCH2
  if (getGraphAttr() == getHomeAttr())
    return emitOpError() << "leads from " << getHomeAttr()
                         << " to itself, where nothing moves";
  if (getBehindAttr() &&
      (getBehindAttr() == getHomeAttr() || getBehindAttr() == getGraphAttr()))
    return emitOpError() << "expects 'behind' to be another graph than "
                         << getGraphAttr() << " and home, but got "
                         << getBehindAttr();
  if (getBehindAttr() && getMoved() == Moved::Gradients)
    return emitOpError("is of gradients, which go home whatever phase was "
                       "before: expects no 'behind'");
  // SWITCH3
  return verifyList<TensorOp, BucketOp>(getBody(), "an exec.switch_plan",
                                        "tensors, then buckets");
}

LogicalResult SwitchPlanOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // SWITCH1
  int64_t ranks = -1;
  for (FlatSymbolRefAttr name :
       {getHomeAttr(), getGraphAttr(), getBehindAttr()}) {
    if (!name)
      continue;
    auto graph = symbols.lookupNearestSymbolFrom<GraphOp>(*this, name);
    if (!graph)
      return emitOpError() << "expects " << name << " to be an exec.graph";
    const int64_t own = graph.getMesh().getMesh().size();
    if (ranks >= 0 && own != ranks)
      return emitOpError() << "expects graphs of equally many ranks, but "
                           << name << " has " << own << " and " << getHomeAttr()
                           << " has " << ranks;
    ranks = own;
  }
  // SWITCH4 to SWITCH8
  ::dyna::Status status = ::dyna::checkSwitch(
      exportTensors(*this), static_cast<int>(ranks), exportSwitch(*this));
  if (!status.isOk())
    return emitOpError() << status.message();
  return success();
}

/// Verifies TENSOR1.
static LogicalResult verifyBox(Operation *op, ArrayRef<int64_t> box) {
  for (int dim : {0, 1})
    if (box[2 * dim] < 0 || box[2 * dim + 1] < box[2 * dim] ||
        box[2 * dim + 1] > std::numeric_limits<int32_t>::max())
      return op->emitOpError()
             << "expects rows and columns from 0 to 2147483647, the end not "
                "before the begin, but got "
             << box[2 * dim] << ":" << box[2 * dim + 1];
  return success();
}

LogicalResult TensorOp::verify() {
  // TENSOR1
  for (ArrayRef<int64_t> boxes : {getFrom(), getTo()}) {
    if (boxes.size() % 5 != 0)
      return emitOpError() << "expects five numbers for each box, but got "
                           << boxes.size() << " in all";
    for (; !boxes.empty(); boxes = boxes.drop_front(5)) {
      if (boxes[0] < 0 || boxes[0] > std::numeric_limits<int32_t>::max())
        return emitOpError() << "expects ranks from 0 on, but got " << boxes[0];
      if (failed(verifyBox(*this, boxes.slice(1, 4))))
        return failure();
    }
  }
  // TENSOR2
  if (static_cast<int64_t>(getElementBytes()) < 1)
    return emitOpError() << "expects 'element_bytes' to be 1 at least, but got "
                         << static_cast<int64_t>(getElementBytes());
  // TENSOR3
  const Moved moved = cast<SwitchPlanOp>((*this)->getParentOp()).getMoved();
  if ((getPart() == ParameterPart::Gradient) != (moved == Moved::Gradients))
    return emitOpError() << "is the " << stringifyParameterPart(getPart())
                         << " of a parameter, but the switch is of "
                         << stringifyMoved(moved);
  return success();
}

LogicalResult BucketOp::verifyRegions() {
  // BUCKET1
  return verifyList<TransferOp, TransferOp>(getBody(), "an exec.bucket",
                                            "transfers");
}

LogicalResult TransferOp::verify() {
  // TRANSFER1
  if (getBox().size() != 4)
    return emitOpError() << "expects four numbers for its box, but got "
                         << getBox().size();
  if (failed(verifyBox(*this, getBox())))
    return failure();
  // TRANSFER2
  if (getTarget() == SwitchPlace::Old)
    return emitOpError("has the target 'old', but expects 'new' or 'passing'");
  return success();
}

//===----------------------------------------------------------------------===//
// exec.step
//===----------------------------------------------------------------------===//

LogicalResult StepOp::verifyRegions() {
  // STEP1
  if (failed(verifyList<PhaseOp, PhaseOp>(getBody(), "an exec.step", "phases")))
    return failure();
  if (getOps<PhaseOp>().empty())
    return emitOpError("expects a phase at least");
  return success();
}

LogicalResult StepOp::verifySymbolUses(SymbolTableCollection &) {
  // STEP2
  llvm::SmallDenseSet<Attribute> seen;
  auto add = [&](StepOp step) -> PhaseOp {
    for (auto phase : step.getOps<PhaseOp>())
      if (!seen.insert(phase.getPlanAttr()).second)
        return phase;
    return {};
  };
  for (Operation *other = (*this)->getPrevNode(); other;
       other = other->getPrevNode())
    if (auto step = dyn_cast<StepOp>(other))
      add(step);
  if (PhaseOp phase = add(*this))
    return phase.emitOpError()
           << "is of " << phase.getPlanAttr() << ", as another phase is";
  return success();
}

LogicalResult PhaseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // PHASE1
  auto plan = symbols.lookupNearestSymbolFrom<PlanOp>(*this, getPlanAttr());
  if (!plan)
    return emitOpError() << "expects " << getPlanAttr()
                         << " to be an exec.plan";
  // PHASE2
  if (plan.getLengths() && plan.getLengths()->size() != getSamples().size())
    return emitOpError() << "has " << getSamples().size() << " samples, but "
                         << getPlanAttr() << " says lengths of "
                         << plan.getLengths()->size();
  return success();
}

LogicalResult PhaseOp::verify() {
  // PHASE3
  for (int64_t sample : getSamples())
    if (sample < 0)
      return emitOpError() << "expects samples not to be negative, but got "
                           << sample;
  return success();
}
