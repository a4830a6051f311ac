//===- BlockDeducer.cpp - Deduces the layouts of one block ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/BlockDeducer.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/deduce/LayoutRules.h"

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::Layout;

void BlockDeducer::setArgument(BlockArgument argument, const Layout &layout,
                               bool isFixed, bool takesAnyPartial) {
  infos[argument] = {{layout}, {argument}, isFixed, takesAnyPartial};
  versionLayouts[argument] = layout;
}

const Layout &BlockDeducer::layoutOfVersion(Value version) {
  return versionLayouts[version];
}

OperandState BlockDeducer::stateOf(Value value) {
  OperandState state;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return state;
  const Info &info = infos[value];
  state.versions = info.layouts;
  state.shape = type.getShape();
  state.elementBytes = (type.getElementTypeBitWidth() + 7) / 8;
  state.isFixed = info.isFixed;
  state.takesAnyPartial = info.takesAnyPartial;
  return state;
}

Value BlockDeducer::makeVersion(Operation *before, Value value, int source,
                                const Layout &wanted) {
  Info &info = infos[value];
  const Layout from = info.layouts[source];
  if (info.isFixed ||
      ::dyna::canonicalLayout(from) == ::dyna::canonicalLayout(wanted))
    return info.versions[source];
  // One op may use a value twice.
  for (auto [layout, version] : llvm::zip_equal(info.layouts, info.versions))
    if (::dyna::canonicalLayout(layout) == ::dyna::canonicalLayout(wanted))
      return version;
  OpBuilder builder(before);
  Value version =
      dist::ReshardOp::create(builder, before->getLoc(), info.versions[source],
                              dist::LayoutAttr::get(meshAttr, from),
                              dist::LayoutAttr::get(meshAttr, wanted));
  info.layouts.push_back(wanted);
  info.versions.push_back(version);
  versionLayouts[version] = wanted;
  return version;
}

LogicalResult BlockDeducer::visit(Operation *op) {
  FailureOr<dist::FactorRule> rule = getLayoutRule(op);
  if (failed(rule))
    return failure();
  std::vector<OperandState> states;
  for (Value operand : op->getOperands())
    states.push_back(stateOf(operand));
  auto choice = chooseSplit(mesh, *rule, states, tokens);
  if (!choice.isOk())
    return op->emitOpError()
           << "cannot be distributed: " << choice.status().message();

  for (OpOperand &operand : op->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    if (states[index].versions.empty())
      continue;
    Value value = operand.get();
    operand.set(makeVersion(op, value, choice->sources[index],
                            choice->operands[index]));
    // The first op that adds to an accumulator determines over which axes it is
    // partial.
    Info &info = infos[value];
    if (info.takesAnyPartial) {
      info.layouts[0] = versionLayouts[value] = choice->operands[index];
      info.takesAnyPartial = false;
    }
  }
  SmallVector<Attribute> attributes;
  for (auto [result, layout] :
       llvm::zip_equal(op->getResults(), choice->results)) {
    infos[result] = {{layout}, {result}};
    versionLayouts[result] = layout;
    attributes.push_back(dist::LayoutAttr::get(meshAttr, layout));
  }
  // The result of an addition to an accumulator is an accumulator.
  for (auto [operand, result] : rule->tied)
    if (operand < int(op->getNumOperands()) && states[operand].isFixed)
      infos[op->getResult(result)].isFixed = true;
  dist::kLayouts.set(op, ArrayAttr::get(op->getContext(), attributes));
  return success();
}

LogicalResult BlockDeducer::run() {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult BlockDeducer::bring(OpOperand &use, const Layout &wanted) {
  OperandState state = stateOf(use.get());
  std::optional<ReshardCost> least;
  int best = 0;
  for (auto [source, version] : llvm::enumerate(state.versions)) {
    auto cost =
        costOfReshard(mesh, version, wanted, state.shape, state.elementBytes);
    if (cost.isOk() && (!least || *cost < *least)) {
      least = *cost;
      best = source;
    }
  }
  if (!least)
    return use.getOwner()->emitOpError()
           << "cannot return a value laid out as "
           << describeLayout(mesh, state.versions.front()) << " as "
           << describeLayout(mesh, wanted);
  use.set(makeVersion(use.getOwner(), use.get(), best, wanted));
  return success();
}

void BlockDeducer::preferWhole(OpOperand &use) {
  const Info &info = infos[use.get()];
  for (auto [layout, version] : llvm::zip_equal(info.layouts, info.versions))
    if (layout.partial.empty())
      return use.set(version);
}

LogicalResult BlockDeducer::settle(OpOperand &use) {
  Value value = use.get();
  preferWhole(use);
  if (layoutOfVersion(use.get()).partial.empty())
    return success();
  Layout whole = layoutOf(value), split = whole;
  whole.partial.clear();
  split.partial.clear();
  split.dims.front() = tokens;
  OperandState state = stateOf(value);
  auto cost = [&](const Layout &wanted) {
    return costOfReshard(mesh, layoutOf(value), wanted, state.shape,
                         state.elementBytes);
  };
  auto costWhole = cost(whole), costSplit = cost(split);
  bool isSplitCheaper =
      costSplit.isOk() && costWhole.isOk() && *costSplit < *costWhole;
  return bring(use, isSplitCheaper ? split : whole);
}
