//===- LayerDeducer.cpp - Deduces the layouts of a layer's functions ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/deduce/LayerDeducer.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/deduce/Borders.h"

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::AxisParts;
using ::dyna::Layout;

//===----------------------------------------------------------------------===//
// Given layouts
//===----------------------------------------------------------------------===//

/// Returns the layout of a value between layers. Activations are split by
/// tokens; ids and the loss are equal on all ranks.
Layout LayerDeducer::borderLayout(Type type) const {
  Layout layout = Layout::replicated(cast<RankedTensorType>(type).getRank());
  if (isActivation(type))
    layout.dims.front() = tokens;
  return layout;
}

Layout LayerDeducer::gradientLayout(size_t parameter) const {
  Layout layout = parameters[parameter];
  layout.partial = gradientPartials[parameter].value_or(AxisParts());
  return layout;
}

Layout LayerDeducer::argumentLayout(FunctionOp function, unsigned index,
                                    std::map<Memory, size_t> &counts) {
  PlaceAttr place = function.getArgPlace(index);
  Memory memory = place.getMemory();
  if (memory == Memory::Parameter)
    return parameters[place.getIndex()];
  if (memory == Memory::Gradient)
    return gradientLayout(place.getIndex());
  if (isSaved(memory))
    return saved[memory].at(counts[memory]++);
  return borderLayout(function.getArgumentTypes()[index]);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Returns true if an op is linear in the operand and adds it to the gradient
/// of a parameter that is known to be partial.
bool LayerDeducer::addsToPartialGradient(OpOperand &use) const {
  auto op = dyn_cast<dist::LayoutRuleOpInterface>(use.getOwner());
  if (!op)
    return false;
  dist::FactorRule rule = op.getLayoutRule();
  if (!llvm::any_of(rule.linearIn, [&](const auto &set) {
        return llvm::is_contained(set, int(use.getOperandNumber()));
      }))
    return false;
  return llvm::any_of(rule.tied, [&](auto pair) {
    auto accumulator =
        dyn_cast<BlockArgument>(use.getOwner()->getOperand(pair.first));
    if (!accumulator)
      return false;
    FunctionOp function = backwardWeight;
    PlaceAttr place = function.getArgPlace(accumulator.getArgNumber());
    return place.getMemory() == Memory::Gradient &&
           !gradientPartials[place.getIndex()].value_or(AxisParts()).empty();
  });
}

/// Returns true if backward_weight adds this deferred value to a gradient to
/// which backward has added partial sums.
bool LayerDeducer::isAddedAsSum(size_t deferred) const {
  FunctionOp function = backwardWeight;
  if (!function)
    return false;
  for (BlockArgument argument : function.getBody().getArguments()) {
    PlaceAttr place = function.getArgPlace(argument.getArgNumber());
    if (place.getMemory() != Memory::Deferred || deferred-- > 0)
      continue;
    return llvm::any_of(argument.getUses(), [&](OpOperand &use) {
      return addsToPartialGradient(use);
    });
  }
  return false;
}

LogicalResult LayerDeducer::layOutResult(FunctionOp function, unsigned index,
                                         BlockDeducer &deducer,
                                         std::map<Memory, size_t> &counts) {
  OpOperand &use =
      function.getBody().front().getTerminator()->getOpOperand(index);
  Memory memory = function.getResultPlace(index).getMemory();
  if (memory == Memory::Output)
    return deducer.bring(use, borderLayout(use.get().getType()));
  if (!isSaved(memory))
    return success();
  std::vector<Layout> &tier = saved[memory];
  size_t number = counts[memory]++;
  if (number < tier.size())
    return deducer.bring(use, tier[number]);
  // Backward needs full sums in the end, so reduce them once, here. A deferred
  // value may be added to a gradient as a partial sum.
  if (memory != Memory::Deferred) {
    if (failed(deducer.settle(use)))
      return failure();
  } else if (!isAddedAsSum(number)) {
    deducer.preferWhole(use);
  }
  tier.push_back(deducer.layoutOfVersion(use.get()));
  return success();
}

void LayerDeducer::noteGradients(FunctionOp function, BlockDeducer &deducer) {
  for (BlockArgument argument : function.getBody().getArguments()) {
    PlaceAttr place = function.getArgPlace(argument.getArgNumber());
    bool isUsed = llvm::any_of(argument.getUsers(), [](Operation *user) {
      return !user->hasTrait<mlir::OpTrait::IsTerminator>();
    });
    if (place.getMemory() == Memory::Gradient && isUsed)
      gradientPartials[place.getIndex()] = deducer.layoutOf(argument).partial;
  }
}

ArrayAttr LayerDeducer::getGradients() const {
  SmallVector<Attribute> layouts;
  for (size_t i = 0; i < parameters.size(); ++i)
    layouts.push_back(attributeOf(gradientLayout(i)));
  return ArrayAttr::get(meshAttr.getContext(), layouts);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Lays out an optimizer function. It handles the rank's own elements one by
/// one and exchanges nothing. The plan has reduced gradients before, and gives
/// each element to one of the ranks that hold it. A rank may have no rows of a
/// tensor. So sums of squares are partial over all ranks.
LogicalResult LayerDeducer::layOutOptimizer(FunctionOp function) {
  Layout sum = Layout::replicated(1);
  sum.partial = {mesh.wholeAxis(0)};
  llvm::DenseMap<Value, Layout> layouts;
  int64_t perParameter = function.getRole() == Role::Update ? 3 : 1;
  SmallVector<Attribute> arguments, results;
  for (BlockArgument argument : function.getBody().getArguments()) {
    PlaceAttr place = function.getArgPlace(argument.getArgNumber());
    bool isSum = place.getMemory() == Memory::Output;
    int64_t parameter = place.getMemory() == Memory::Input
                            ? place.getIndex() / perParameter
                            : place.getIndex();
    layouts[argument] = isSum ? sum : parameters[parameter];
    arguments.push_back(attributeOf(layouts[argument]));
  }
  for (Operation &op : function.getBody().front().without_terminator()) {
    Layout layout = isa<SumSquaresOp>(op) ? sum : layouts[op.getOperand(0)];
    for (Value result : op.getResults())
      layouts[result] = layout;
    dist::kLayouts.set(
        &op, ArrayAttr::get(op.getContext(),
                            SmallVector<Attribute>(op.getNumResults(),
                                                   attributeOf(layout))));
  }
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    results.push_back(attributeOf(layouts[value]));
  Builder builder(function.getContext());
  dist::kArguments.set(function, builder.getArrayAttr(arguments));
  dist::kResults.set(function, builder.getArrayAttr(results));
  return success();
}

/// Writes what is known of a body's borders on its op.
static void writeBorders(Operation *op, Block &block, dist::MeshAttr mesh,
                         BlockDeducer &deducer) {
  Builder builder(op->getContext());
  auto attributesOf = [&](ValueRange values) {
    SmallVector<Attribute> attributes;
    for (Value value : values)
      if (isa<RankedTensorType>(value.getType()))
        attributes.push_back(
            dist::LayoutAttr::get(mesh, deducer.layoutOfVersion(value)));
      else
        attributes.push_back(builder.getUnitAttr());
    return builder.getArrayAttr(attributes);
  };
  dist::kArguments.set(op, attributesOf(block.getArguments()));
  dist::kResults.set(op, attributesOf(block.getTerminator()->getOperands()));
}

/// Moves the bias of a linear after the reduction if its input features are
/// split. Otherwise every rank would add the bias to its part of the sum.
static void splitOffBiases(Block &block,
                           llvm::function_ref<const Layout *(Value)> layoutOf) {
  for (auto linear : llvm::make_early_inc_range(block.getOps<LinearOp>())) {
    const Layout *layout = layoutOf(linear.getWeight());
    if (!linear.getBias() || !layout || layout->dims[1].empty())
      continue;
    OpBuilder builder(linear);
    Value product = LinearOp::create(builder, linear.getLoc(), linear.getX(),
                                     linear.getWeight(), Value());
    Value sum =
        BiasOp::create(builder, linear.getLoc(), product, linear.getBias());
    linear.getResult().replaceAllUsesWith(sum);
    linear.erase();
  }
}

LogicalResult LayerDeducer::deduce(LayerOp layer) {
  Block &block = layer.getBody().front();
  splitOffBiases(block, [&](Value value) -> const Layout * {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? &parameters[argument.getArgNumber()] : nullptr;
  });
  BlockDeducer deducer(block, meshAttr, tokens);
  for (BlockArgument argument : layer.getParameterArguments())
    deducer.setArgument(argument, parameters[argument.getArgNumber()],
                        /*isFixed=*/true);
  for (BlockArgument argument : layer.getInputArguments())
    if (isa<RankedTensorType>(argument.getType()))
      deducer.setArgument(argument, borderLayout(argument.getType()));
  if (failed(deducer.run()))
    return failure();
  for (OpOperand &output : block.getTerminator()->getOpOperands())
    if (failed(deducer.bring(output, borderLayout(output.get().getType()))))
      return failure();
  writeBorders(layer, block, meshAttr, deducer);
  return success();
}

LogicalResult LayerDeducer::deduce(FunctionOp function) {
  if (isOptimizer(function.getRole()))
    return layOutOptimizer(function);
  Block &block = function.getBody().front();
  splitOffBiases(block, [&](Value value) -> const Layout * {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return nullptr;
    PlaceAttr place = function.getArgPlace(argument.getArgNumber());
    return place.getMemory() == Memory::Parameter
               ? &parameters[place.getIndex()]
               : nullptr;
  });
  BlockDeducer deducer(block, meshAttr, tokens);
  std::map<Memory, size_t> counts;
  for (BlockArgument argument : block.getArguments()) {
    if (!isa<RankedTensorType>(argument.getType()))
      continue;
    unsigned index = argument.getArgNumber();
    PlaceAttr place = function.getArgPlace(index);
    bool isGradient = place.getMemory() == Memory::Gradient;
    deducer.setArgument(
        argument, argumentLayout(function, index, counts),
        /*isFixed=*/isGradient || place.getMemory() == Memory::Parameter,
        /*takesAnyPartial=*/isGradient && !gradientPartials[place.getIndex()]);
  }
  if (failed(deducer.run()))
    return failure();
  noteGradients(function, deducer);
  counts.clear();
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (failed(layOutResult(function, index, deducer, counts)))
      return failure();
  writeBorders(function, block, meshAttr, deducer);
  return success();
}
