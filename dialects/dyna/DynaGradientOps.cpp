//===- DynaGradientOps.cpp - Constraints of the gradient ops -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::dyna;

LogicalResult EmbeddingGradOp::verify() { return success(); }
LogicalResult PositionsGradOp::verify() { return success(); }
LogicalResult LinearGradInputOp::verify() { return success(); }
LogicalResult LinearGradWeightOp::verify() { return success(); }
LogicalResult BiasGradOp::verify() { return success(); }
LogicalResult AttentionGradOp::verify() { return success(); }
LogicalResult LayerNormGradInputOp::verify() { return success(); }
LogicalResult LayerNormGradWeightOp::verify() { return success(); }
LogicalResult RmsNormGradInputOp::verify() { return success(); }
LogicalResult RmsNormGradWeightOp::verify() { return success(); }
LogicalResult LinearCrossEntropyTrainOp::verify() { return success(); }
LogicalResult CastOp::verify() { return success(); }
