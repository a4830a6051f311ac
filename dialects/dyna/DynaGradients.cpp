//===- DynaGradients.cpp - Builds the gradient of every dyna op -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Builds the gradients of ops. Each rule first makes gradients of vectors,
// which are row-wise and join the sweep that makes `dy`. Then come gradients of
// matrices, and at last those of activations. After these `dy` is dead and its
// memory free.
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Gradients.h"

using namespace mlir;
using namespace mlir::dyna;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

void EmbeddingOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  Value accumulator = gradients.accumulatorOf(getTable());
  if (!accumulator)
    return;
  gradients.setAccumulator(
      getTable(), EmbeddingGradOp::create(gradients.builder(), getLoc(), dy,
                                          gradients.use(getIds()), accumulator,
                                          getShardAttr()));
}

void PositionsOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  Value accumulator = gradients.accumulatorOf(getTable());
  if (!accumulator)
    return;
  gradients.setAccumulator(
      getTable(),
      PositionsGradOp::create(gradients.builder(), getLoc(), dy,
                              gradients.use(getSegments()), accumulator));
}

//===----------------------------------------------------------------------===//
// Matrix products and attention
//===----------------------------------------------------------------------===//

/// Adds the sum of the rows of `dy` to the gradient of `bias`.
static void buildBiasGradient(GradientBuilder &gradients, Location loc,
                              Value bias, Value dy) {
  if (Value accumulator = gradients.accumulatorOf(bias))
    gradients.setAccumulator(
        bias, BiasGradOp::create(gradients.builder(), loc, dy, accumulator));
}

void LinearOp::buildGradient(GradientBuilder &gradients) {
  OpBuilder &builder = gradients.builder();
  Value dy = gradients.gradientOf(getResult());
  if (getBias())
    buildBiasGradient(gradients, getLoc(), getBias(), dy);
  if (Value accumulator = gradients.accumulatorOf(getWeight()))
    gradients.setAccumulator(getWeight(),
                             LinearGradWeightOp::create(builder, getLoc(), dy,
                                                        gradients.use(getX()),
                                                        accumulator));
  if (gradients.wants(getX()))
    gradients.add(getX(), LinearGradInputOp::create(
                              builder, getLoc(), getX().getType(), dy,
                              gradients.use(getWeight()), Value()));
}

void AttentionOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.gradientOf(getLse()))
    return gradients.reject(*this,
                            "has no gradient through 'lse'; use only its "
                            "first result in the layer");
  auto grad = AttentionGradOp::create(
      gradients.builder(), getLoc(), gradients.use(getQuery()),
      gradients.use(getKey()), gradients.use(getValue()),
      gradients.use(getResult()), gradients.use(getLse()),
      gradients.gradientOf(getResult()), gradients.use(getSegments()),
      getHeadsAttr(), getKvHeadsAttr(), getScaleAttr(), getCausalAttr(),
      getNumberAttr());
  if (gradients.wants(getQuery()))
    gradients.add(getQuery(), grad.getDQuery());
  if (gradients.wants(getKey()))
    gradients.add(getKey(), grad.getDKey());
  if (gradients.wants(getValue()))
    gradients.add(getValue(), grad.getDValue());
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

void LayerNormOp::buildGradient(GradientBuilder &gradients) {
  // One op adds to both accumulators, so they must be two.
  if (getWeight() == getBias())
    return gradients.reject(*this, "has no gradient if 'weight' and 'bias' are "
                                   "one parameter; give it two");
  OpBuilder &builder = gradients.builder();
  Value dy = gradients.gradientOf(getResult());
  Value x = gradients.use(getX());
  Value biasAccumulator = gradients.accumulatorOf(getBias());
  if (gradients.isFrozen(getWeight())) {
    buildBiasGradient(gradients, getLoc(), getBias(), dy);
  } else {
    if (gradients.isFrozen(getBias()))
      return gradients.reject(*this, "has a frozen 'bias' but a trained "
                                     "'weight'; freeze both, or the weight "
                                     "alone");
    Value weightAccumulator = gradients.accumulatorOf(getWeight());
    if (!weightAccumulator || !biasAccumulator)
      return;
    auto weightGrad = LayerNormGradWeightOp::create(
        builder, getLoc(), x, dy, weightAccumulator, biasAccumulator,
        getEpsilonAttr());
    gradients.setAccumulator(getWeight(), weightGrad.getWeightResult());
    gradients.setAccumulator(getBias(), weightGrad.getBiasResult());
  }
  if (gradients.wants(getX()))
    gradients.add(getX(), LayerNormGradInputOp::create(
                              builder, getLoc(), x, gradients.use(getWeight()),
                              dy, getEpsilonAttr()));
}

void RmsNormOp::buildGradient(GradientBuilder &gradients) {
  OpBuilder &builder = gradients.builder();
  Value dy = gradients.gradientOf(getResult());
  Value x = gradients.use(getX());
  if (Value accumulator = gradients.accumulatorOf(getWeight()))
    gradients.setAccumulator(getWeight(), RmsNormGradWeightOp::create(
                                              builder, getLoc(), x, dy,
                                              accumulator, getEpsilonAttr()));
  if (gradients.wants(getX()))
    gradients.add(getX(), RmsNormGradInputOp::create(builder, getLoc(), x,
                                                     gradients.use(getWeight()),
                                                     dy, getEpsilonAttr()));
}

//===----------------------------------------------------------------------===//
// Element-wise ops
//===----------------------------------------------------------------------===//

void BiasOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  buildBiasGradient(gradients, getLoc(), getBias(), dy);
  if (gradients.wants(getX()))
    gradients.add(getX(), dy);
}

/// Builds the gradient of a rotation, which is the inverse rotation.
void RotaryOp::buildGradient(GradientBuilder &gradients) {
  if (!gradients.wants(getX()))
    return;
  OpBuilder &builder = gradients.builder();
  gradients.add(getX(),
                RotaryOp::create(builder, getLoc(), getX().getType(),
                                 gradients.gradientOf(getResult()),
                                 gradients.use(getSegments()), getHeadDim(),
                                 getTheta(), !getInverse(), getScalingAttr()));
}

void GeluOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.wants(getX()))
    gradients.add(getX(),
                  GeluGradOp::create(gradients.builder(), getLoc(),
                                     getX().getType(), gradients.use(getX()),
                                     gradients.gradientOf(getResult()),
                                     getFormAttr()));
}

void SiluOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.wants(getX()))
    gradients.add(getX(),
                  SiluGradOp::create(gradients.builder(), getLoc(),
                                     getX().getType(), gradients.use(getX()),
                                     gradients.gradientOf(getResult())));
}

void ReluOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.wants(getX()))
    gradients.add(getX(),
                  ReluGradOp::create(gradients.builder(), getLoc(),
                                     getX().getType(), gradients.use(getX()),
                                     gradients.gradientOf(getResult())));
}

void ScaleOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.wants(getX()))
    gradients.add(getX(), ScaleOp::create(gradients.builder(), getLoc(),
                                          getX().getType(),
                                          gradients.gradientOf(getResult()),
                                          getFactorAttr()));
}

void AddOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  for (Value operand : {getLhs(), getRhs()})
    if (gradients.wants(operand))
      gradients.add(operand, dy);
}

void MulOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  auto addProduct = [&](Value operand, Value other) {
    if (gradients.wants(operand))
      gradients.add(operand,
                    MulOp::create(gradients.builder(), getLoc(),
                                  operand.getType(), dy, gradients.use(other)));
  };
  addProduct(getLhs(), getRhs());
  addProduct(getRhs(), getLhs());
}

/// Builds the gradient of dropout. Random numbers are functions of counters, so
/// the same ones drop `dy`.
void DropoutOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.wants(getX()))
    gradients.add(getX(), DropoutOp::create(
                              gradients.builder(), getLoc(), getX().getType(),
                              gradients.gradientOf(getResult()),
                              gradients.use(getSegments()),
                              getProbabilityAttr(), getInstanceAttr()));
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

/// Builds the gradients of the head in forward, because the logits exist only
/// there.
void LinearCrossEntropyOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.isFrozen(getWeight())) {
    auto train = LinearCrossEntropyInputOp::create(
        gradients.builder(), getLoc(), gradients.use(getX()),
        gradients.use(getWeight()), gradients.use(getTargets()),
        getIgnoreIndexAttr(), getShardAttr());
    gradients.replaceInForward(getLoss(), train.getLoss());
    return gradients.add(getX(), train.getDX());
  }
  Value accumulator = gradients.accumulatorOf(getWeight());
  if (!accumulator)
    return;
  auto train = LinearCrossEntropyTrainOp::create(
      gradients.builder(), getLoc(), gradients.use(getX()),
      gradients.use(getWeight()), gradients.use(getTargets()), accumulator,
      getIgnoreIndexAttr(), getShardAttr());
  gradients.replaceInForward(getLoss(), train.getLoss());
  gradients.setAccumulator(getWeight(), train.getResult());
  if (gradients.wants(getX()))
    gradients.add(getX(), train.getDX());
}
