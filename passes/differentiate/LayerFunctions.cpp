//===- LayerFunctions.cpp - Cuts out the layer functions of all roles -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/differentiate/LayerFunctions.h"

#include "dialects/dyna/facts/LayerVariants.h"
#include "passes/differentiate/FunctionCut.h"

using namespace mlir;
using namespace mlir::dyna;

bool mlir::dyna::hasRole(LayerOp layer, Role role, ArrayRef<bool> frozen) {
  const bool learns =
      frozen.empty() || llvm::is_contained(frozen, /*trained*/ false);
  switch (role) {
  case Role::Evaluate:
  case Role::Forward:
    return true;
  case Role::RecomputeSelective:
  case Role::RecomputeFull:
    // Forward of a loss also adds to gradients, so it cannot run again. Plans keep
    // all its values.
    return !layer.givesLoss() && hasBackward(layer, frozen);
  case Role::Backward:
    return hasBackward(layer, frozen);
  case Role::BackwardInput:
  case Role::BackwardWeight:
    return learns && hasBackward(layer, frozen);
  case Role::Update:
  case Role::GradNorm:
    return learns;
  case Role::Cast:
    return needsCast(layer, frozen);
  }
  llvm_unreachable("a role of no layer");
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

LogicalResult mlir::dyna::buildEvaluateFunction(OpBuilder &builder,
                                                LayerOp layer) {
  OwningOpRef<LayerOp> clone(cast<LayerOp>(layer->clone()));
  for (auto dropout :
       llvm::make_early_inc_range(clone->getBody().getOps<DropoutOp>())) {
    dropout.replaceAllUsesWith(dropout.getX());
    dropout.erase();
  }
  simplifyLayer(*clone);
  Block &block = clone->getBody().front();
  FunctionCut cut(layer, Role::Evaluate, block);
  cut.takeArray(clone->getParameterArguments(), Memory::Parameter);
  int64_t index = 0;
  Value segments;
  for (BlockArgument input : clone->getInputArguments())
    if (isa<SegmentsType>(input.getType()))
      segments = input;
    else
      cut.take(input, Memory::Input, index++);
  if (segments)
    cut.take(segments, Memory::Segments);
  cut.giveArray(block.getTerminator()->getOperands(), Memory::Output);
  return cut.build(builder);
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

namespace {

/// The functions cut out of one joint layer. Every function that reads or
/// writes a tier names all of its values, in one order, so that they
/// correspond.
class TrainingFunctions {
public:
  TrainingFunctions(OpBuilder &builder, LayerOp layer, JointLayer &joint,
                    const SavedValues &saved)
      : builder(builder), layer(layer), joint(joint), saved(saved) {}

  LogicalResult buildForward();
  LogicalResult buildRecomputeSelective();
  LogicalResult buildRecomputeFull();
  LogicalResult buildBackward();
  LogicalResult buildBackwardInput();
  LogicalResult buildBackwardWeight();

private:
  FunctionCut startCut(Role role) {
    FunctionCut cut(layer, role, joint.getBlock());
    cut.takeArray(joint.getParameters(), Memory::Parameter);
    return cut;
  }
  void takeSegments(FunctionCut &cut) {
    if (joint.getSegments())
      cut.take(joint.getSegments(), Memory::Segments);
  }
  void takeSavedInput(FunctionCut &cut) {
    takeSegments(cut);
    cut.take(joint.getPrimaryInput(), Memory::SavedInput);
  }
  /// Takes accumulators, without those of frozen parameters.
  void takeAccumulators(FunctionCut &cut, ArrayRef<Value> values) {
    for (auto [index, value] : llvm::enumerate(values))
      if (!joint.isFrozen(index))
        cut.take(value, Memory::Gradient, index);
  }
  void giveAccumulators(FunctionCut &cut, ArrayRef<Value> values) {
    for (auto [index, value] : llvm::enumerate(values))
      if (!joint.isFrozen(index))
        cut.give(value, Memory::Gradient, index);
  }
  /// Takes the saved values that every half of backward reads.
  void takeSaved(FunctionCut &cut) {
    takeSavedInput(cut);
    cut.takeTier(saved.products, Memory::Products);
    cut.takeTier(saved.elementwise, Memory::Elementwise);
    cut.sink(saved.repeated);
  }
  void takeOutputGradient(FunctionCut &cut) {
    if (Value gradient = joint.getOutputGradient())
      cut.take(gradient, Memory::Input);
  }
  void giveInputGradient(FunctionCut &cut) {
    if (Value gradient = joint.getInputGradient())
      cut.give(gradient, Memory::Output);
  }

  OpBuilder &builder;
  LayerOp layer;
  JointLayer &joint;
  const SavedValues &saved;
};

} // namespace

LogicalResult TrainingFunctions::buildForward() {
  FunctionCut cut = startCut(Role::Forward);
  SmallVector<Value> accumulated = joint.getForwardAccumulators();
  auto accumulators = llvm::enumerate(joint.getAccumulators());
  for (auto [index, accumulator] : accumulators)
    if (accumulated[index] != accumulator)
      cut.take(accumulator, Memory::Gradient, index);
  cut.takeArray(joint.getInputs(), Memory::Input);
  takeSegments(cut);

  cut.giveArray(joint.getOutputs(), Memory::Output);
  for (auto [index, accumulator] : accumulators)
    if (accumulated[index] != accumulator)
      cut.give(accumulated[index], Memory::Gradient, index);
  cut.giveTier(saved.products, Memory::Products);
  cut.giveTier(saved.elementwise, Memory::Elementwise);
  return cut.build(builder);
}

LogicalResult TrainingFunctions::buildRecomputeSelective() {
  FunctionCut cut = startCut(Role::RecomputeSelective);
  takeSavedInput(cut);
  cut.takeTier(saved.products, Memory::Products);
  cut.giveTier(saved.elementwise, Memory::Elementwise);
  return cut.build(builder);
}

LogicalResult TrainingFunctions::buildRecomputeFull() {
  FunctionCut cut = startCut(Role::RecomputeFull);
  takeSavedInput(cut);
  cut.giveTier(saved.products, Memory::Products);
  cut.giveTier(saved.elementwise, Memory::Elementwise);
  return cut.build(builder);
}

LogicalResult TrainingFunctions::buildBackward() {
  FunctionCut cut = startCut(Role::Backward);
  takeAccumulators(cut, joint.getForwardAccumulators());
  takeSaved(cut);
  takeOutputGradient(cut);
  giveInputGradient(cut);
  giveAccumulators(cut, joint.getFinalAccumulators());
  return cut.build(builder);
}

LogicalResult TrainingFunctions::buildBackwardInput() {
  FunctionCut cut = startCut(Role::BackwardInput);
  takeSaved(cut);
  takeOutputGradient(cut);
  giveInputGradient(cut);
  cut.giveTier(saved.deferred, Memory::Deferred);
  return cut.build(builder);
}

LogicalResult TrainingFunctions::buildBackwardWeight() {
  FunctionCut cut = startCut(Role::BackwardWeight);
  takeAccumulators(cut, joint.getForwardAccumulators());
  takeSaved(cut);
  cut.takeTier(saved.deferred, Memory::Deferred);
  giveAccumulators(cut, joint.getFinalAccumulators());
  return cut.build(builder);
}

LogicalResult mlir::dyna::buildTrainingFunctions(OpBuilder &builder,
                                                 LayerOp layer,
                                                 JointLayer &joint,
                                                 ArrayRef<bool> frozen,
                                                 const SavedValues &saved) {
  using Builder = LogicalResult (TrainingFunctions::*)();
  constexpr std::pair<Role, Builder> builders[] = {
      {Role::Forward, &TrainingFunctions::buildForward},
      {Role::RecomputeSelective, &TrainingFunctions::buildRecomputeSelective},
      {Role::RecomputeFull, &TrainingFunctions::buildRecomputeFull},
      {Role::Backward, &TrainingFunctions::buildBackward},
      {Role::BackwardInput, &TrainingFunctions::buildBackwardInput},
      {Role::BackwardWeight, &TrainingFunctions::buildBackwardWeight},
  };
  TrainingFunctions functions(builder, layer, joint, saved);
  for (auto [role, build] : builders)
    if (hasRole(layer, role, frozen) && failed((functions.*build)()))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

/// Creates a block to cut optimizer functions from, in a detached layer.
static OwningOpRef<LayerOp> createScratchLayer(LayerOp layer) {
  OpBuilder builder(layer.getContext());
  OwningOpRef<LayerOp> scratch(cast<LayerOp>(layer->cloneWithoutRegions()));
  scratch->getBody().emplaceBlock();
  return scratch;
}

static LogicalResult buildUpdate(OpBuilder &builder, LayerOp layer,
                                 ArrayRef<bool> decays, ArrayRef<bool> frozen,
                                 Type gradientElement) {
  OwningOpRef<LayerOp> scratch = createScratchLayer(layer);
  Block &block = scratch->getBody().front();
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  FunctionCut cut(layer, Role::Update, block);
  for (auto [i, parameter] : llvm::enumerate(layer.getParameterArguments())) {
    if (frozen[i])
      continue;
    Location loc = parameter.getLoc();
    Type type = getAccumulatorTensorType(parameter.getType());
    auto addArgument = [&](Type type, StringRef prefix, Memory memory,
                           int64_t index) {
      BlockArgument argument = block.addArgument(type, prefixName(prefix, loc));
      cut.take(argument, memory, index);
      return argument;
    };
    Value gradient =
        addArgument(getGradientTensorType(parameter.getType(), gradientElement),
                    "d_", Memory::Gradient, i);
    Value master = addArgument(type, "", Memory::Input, 3 * i);
    Value m = addArgument(type, "m_", Memory::Input, 3 * i + 1);
    Value v = addArgument(type, "v_", Memory::Input, 3 * i + 2);
    auto adamw = AdamwOp::create(body, loc, master, gradient, m, v, decays[i]);
    cut.give(adamw.getNewGradient(), Memory::Gradient, i);
    cut.give(adamw.getNewMaster(), Memory::Input, 3 * i);
    cut.give(adamw.getNewM(), Memory::Input, 3 * i + 1);
    cut.give(adamw.getNewV(), Memory::Input, 3 * i + 2);
    if (type != parameter.getType())
      cut.give(
          CastOp::create(body, loc, parameter.getType(), adamw.getNewMaster()),
          Memory::Parameter, i);
  }
  return cut.build(builder);
}

static LogicalResult buildGradNorm(OpBuilder &builder, LayerOp layer,
                                   ArrayRef<bool> frozen,
                                   Type gradientElement) {
  OwningOpRef<LayerOp> scratch = createScratchLayer(layer);
  Block &block = scratch->getBody().front();
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  FunctionCut cut(layer, Role::GradNorm, block);
  Value sum = block.addArgument(
      RankedTensorType::get({1}, builder.getF64Type()), layer.getLoc());
  Value argument = sum;
  for (auto [i, parameter] : llvm::enumerate(layer.getParameterArguments())) {
    if (frozen[i])
      continue;
    Value gradient = block.addArgument(
        getGradientTensorType(parameter.getType(), gradientElement),
        prefixName("d_", parameter.getLoc()));
    cut.take(gradient, Memory::Gradient, i);
    sum = SumSquaresOp::create(body, parameter.getLoc(), gradient, sum);
  }
  cut.take(argument, Memory::Output);
  cut.give(sum, Memory::Output);
  return cut.build(builder);
}

static LogicalResult buildCast(OpBuilder &builder, LayerOp layer,
                               ArrayRef<bool> frozen) {
  OwningOpRef<LayerOp> scratch = createScratchLayer(layer);
  Block &block = scratch->getBody().front();
  OpBuilder body = OpBuilder::atBlockEnd(&block);
  FunctionCut cut(layer, Role::Cast, block);
  for (auto [i, parameter] : llvm::enumerate(layer.getParameterArguments())) {
    if (frozen[i])
      continue;
    Value master = block.addArgument(
        getAccumulatorTensorType(parameter.getType()), parameter.getLoc());
    cut.take(master, Memory::Input, i);
    cut.give(
        CastOp::create(body, parameter.getLoc(), parameter.getType(), master),
        Memory::Parameter, i);
  }
  return cut.build(builder);
}

bool mlir::dyna::needsCast(LayerOp layer, ArrayRef<bool> frozen) {
  return llvm::any_of(layer.getParameterArguments(),
                      [&](BlockArgument argument) {
                        return !frozen[argument.getArgNumber()] &&
                               getAccumulatorTensorType(argument.getType()) !=
                                   argument.getType();
                      });
}

LogicalResult mlir::dyna::buildOptimizerFunctions(OpBuilder &builder,
                                                  LayerOp layer,
                                                  ArrayRef<bool> decays,
                                                  ArrayRef<bool> frozen,
                                                  Type gradientElement) {
  if (hasRole(layer, Role::Update, frozen) &&
      (failed(buildUpdate(builder, layer, decays, frozen, gradientElement)) ||
       failed(buildGradNorm(builder, layer, frozen, gradientElement))))
    return failure();
  return needsCast(layer, frozen) ? buildCast(builder, layer, frozen)
                                  : success();
}
