//===- JointLayer.cpp - Joins a layer with its gradient ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/JointLayer.h"

#include "dialects/dyna/facts/LayerVariants.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "passes/differentiate/BackwardBuilder.h"

using namespace mlir;
using namespace mlir::dyna;

RankedTensorType mlir::dyna::getAccumulatorTensorType(Type parameter) {
  auto type = cast<RankedTensorType>(parameter);
  return type.clone(getAccumulatorType(type.getElementType()));
}

RankedTensorType mlir::dyna::getGradientTensorType(Type parameter,
                                                   Type gradientElement) {
  RankedTensorType type = getAccumulatorTensorType(parameter);
  return gradientElement ? type.clone(gradientElement) : type;
}

Location mlir::dyna::prefixName(StringRef prefix, Location location) {
  auto named = dyn_cast<NameLoc>(location);
  if (!named)
    return location;
  auto name = StringAttr::get(location.getContext(),
                              prefix + named.getName().getValue());
  return NameLoc::get(name, named.getChildLoc());
}

void mlir::dyna::simplifyLayer(LayerOp layer) {
  IRRewriter rewriter(layer.getContext());
  DominanceInfo dominance(layer);
  eliminateCommonSubExpressions(rewriter, dominance, layer);
}

/// Checks losses. The loss is differentiated in forward, so no op may use it
/// afterwards.
static LogicalResult checkLosses(LayerOp layer) {
  Operation *terminator = layer.getBody().front().getTerminator();
  for (auto loss : layer.getBody().getOps<LinearCrossEntropyOp>()) {
    Value value = loss.getLoss();
    if (!value.hasOneUse())
      return loss.emitOpError("expects its loss to be the layer's result and "
                              "nothing else, but it is used ")
             << llvm::range_size(value.getUses()) << " times";
    Operation *user = *value.user_begin();
    if (user != terminator)
      return loss.emitOpError("expects its loss to be the layer's result, but "
                              "it is used by '")
             << user->getName() << "'";
  }
  Operation *last = terminator->getOperands().back().getDefiningOp();
  if (layer.givesLoss() && !isa_and_nonnull<LinearCrossEntropyOp>(last))
    return terminator->emitOpError("expects the loss to be the result of "
                                   "'dyna.linear_cross_entropy'");
  return success();
}

/// Fails if an op has a region. The walk sees operands only, not what a region
/// reads.
static LogicalResult checkNoRegions(LayerOp layer) {
  for (Operation &op : layer.getBody().front())
    if (op.getNumRegions() > 0)
      return op.emitOpError("has no gradient; row-wise ops are fused after the "
                            "layer is differentiated");
  return success();
}

LogicalResult JointLayer::classifyArguments(LayerOp layer) {
  numParameters = layer.getNumParameters();
  numLayerArguments = layer.getArgumentTypes().size();
  hasLoss = layer.givesLoss();
  hasActivation = layer.givesActivation();
  for (BlockArgument input : clone->getInputArguments()) {
    if (isa<SegmentsType>(input.getType())) {
      if (segments)
        return layer.emitOpError("takes segments twice; one is enough");
      segments = input;
      continue;
    }
    if (isActivation(input.getType()) && !inputs.empty())
      return layer.emitOpError("takes an activation as input ")
             << inputs.size() << ", but only the first input may be one";
    inputs.push_back(input);
  }
  if (inputs.empty())
    return layer.emitOpError("takes neither an activation nor token ids");
  hasInputGradient = givesInputGradient(layer);
  return success();
}

/// Marks gradients of all values as wanted that depend on a value with a wanted
/// gradient.
static void propagateWanted(ArrayRef<Operation *> forwardOps,
                            BackwardBuilder &gradients) {
  for (Operation *op : forwardOps)
    if (llvm::any_of(op->getOperands(),
                     [&](Value value) { return gradients.wants(value); }))
      llvm::for_each(op->getResults(),
                     [&](Value result) { gradients.markWanted(result); });
}

/// Visits the forward ops from last to first.
static LogicalResult buildGradients(ArrayRef<Operation *> forwardOps,
                                    BackwardBuilder &gradients) {
  auto wants = [&](Value value) { return gradients.wants(value); };
  for (Operation *op : llvm::reverse(forwardOps)) {
    bool needed = isa<LinearCrossEntropyOp>(op) ||
                  llvm::any_of(op->getResults(), [&](Value result) {
                    return static_cast<bool>(gradients.gradientOf(result));
                  });
    if (!needed || llvm::none_of(op->getOperands(), wants))
      continue;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError("has no gradient, so it cannot stand in a layer "
                             "that is trained");
    differentiable.buildGradient(gradients);
    if (gradients.hasFailed())
      return failure();
  }
  return success();
}

LogicalResult JointLayer::differentiate(Type gradientElement) {
  Block &block = getBlock();
  Operation *terminator = block.getTerminator();
  SmallVector<Value> outputs = llvm::to_vector(terminator->getOperands());
  SmallVector<Operation *> forwardOps;
  for (Operation &op : block.without_terminator())
    forwardOps.push_back(&op);

  for (unsigned i = 0; i < numParameters; ++i)
    block.addArgument(
        getGradientTensorType(block.getArgument(i).getType(), gradientElement),
        prefixName("d_", block.getArgument(i).getLoc()));
  if (hasActivation)
    block.addArgument(
        outputs.front().getType(),
        NameLoc::get(StringAttr::get(clone->getContext(), "d_output"),
                     outputs.front().getLoc()));

  BackwardBuilder gradients(OpBuilder(terminator), getParameters(),
                            getAccumulators(), frozen);
  if (hasInputGradient)
    gradients.markWanted(getPrimaryInput());
  propagateWanted(forwardOps, gradients);
  SmallVector<Value> forwardAccumulators = gradients.getAccumulators();
  if (hasLoss) {
    // Only the layer's result uses the loss (`checkLosses`). Forward accumulates
    // the gradients that it adds to; the other ops follow in backward.
    Operation *loss = outputs.back().getDefiningOp();
    if (failed(buildGradients(loss, gradients)))
      return failure();
    forwardAccumulators = gradients.getAccumulators();
    llvm::erase(forwardOps, loss);
  }
  if (hasActivation)
    gradients.add(outputs.front(), getOutputGradient());
  if (failed(buildGradients(forwardOps, gradients)))
    return failure();

  SmallVector<Value> results = llvm::map_to_vector(
      outputs, [&](Value output) { return gradients.inForward(output); });
  llvm::append_range(results, forwardAccumulators);
  llvm::append_range(results, gradients.getAccumulators());
  if (hasInputGradient) {
    Value inputGradient = gradients.gradientOf(getPrimaryInput());
    if (!inputGradient)
      return clone->emitOpError("expects a result that depends on the first "
                                "input, so that the layer before can learn");
    results.push_back(inputGradient);
  }
  terminator->setOperands(results);
  return success();
}

FailureOr<JointLayer> JointLayer::create(LayerOp layer, ArrayRef<bool> frozen,
                                         Type gradientElement) {
  if (failed(checkLosses(layer)) || failed(checkNoRegions(layer)))
    return failure();
  JointLayer joint;
  joint.frozen.assign(frozen.begin(), frozen.end());
  joint.clone = cast<LayerOp>(layer->clone());
  if (failed(joint.classifyArguments(layer)))
    return failure();
  simplifyLayer(*joint.clone);
  if (failed(joint.differentiate(gradientElement)))
    return failure();
  simplifyLayer(*joint.clone);
  return joint;
}
