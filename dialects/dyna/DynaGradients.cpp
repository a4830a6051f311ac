//===- DynaGradients.cpp - The gradient of every dyna op -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Gradients.h"

using namespace mlir;
using namespace mlir::dyna;

void EmbeddingOp::buildGradient(GradientBuilder &) {}
void PositionsOp::buildGradient(GradientBuilder &) {}
void LinearOp::buildGradient(GradientBuilder &) {}
bool LinearOp::isProduct() { return true; }
void AttentionOp::buildGradient(GradientBuilder &) {}
bool AttentionOp::isProduct() { return true; }
void BiasOp::buildGradient(GradientBuilder &) {}
void LayerNormOp::buildGradient(GradientBuilder &) {}
void RmsNormOp::buildGradient(GradientBuilder &) {}
void RotaryOp::buildGradient(GradientBuilder &) {}
void GeluOp::buildGradient(GradientBuilder &) {}
void SiluOp::buildGradient(GradientBuilder &) {}
void ReluOp::buildGradient(GradientBuilder &) {}
void AddOp::buildGradient(GradientBuilder &) {}
void MulOp::buildGradient(GradientBuilder &) {}
void DropoutOp::buildGradient(GradientBuilder &) {}
void LinearCrossEntropyOp::buildGradient(GradientBuilder &) {}
bool LinearCrossEntropyOp::isProduct() { return true; }
