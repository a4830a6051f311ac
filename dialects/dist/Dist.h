//===- Dist.h - The dist dialect --------------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where tensors lie on a mesh of ranks: attributes that wrap runtime/layout,
// reshards, collectives, and the interface through which ops say what splits
// they allow.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DIST_DIST_H
#define DYNA_DIALECTS_DIST_DIST_H

#include "dialects/dist/FactorRule.h"
#include "dialects/dyna/Dyna.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "runtime/layout/Reshard.h"

namespace mlir::dist {

/// Discardable attributes. Dist.cpp has the table of what they are and where
/// they may stand.
/// On an op: the layouts of its results, one each.
inline constexpr llvm::StringLiteral kLayoutsName = "dist.layouts";
/// On a layer or layer function: the layouts of its arguments and results; a
/// unit attribute stands for what has none (segments).
inline constexpr llvm::StringLiteral kArgumentsName = "dist.arguments";
inline constexpr llvm::StringLiteral kResultsName = "dist.results";
/// On a layer of some degree: the layouts of its parameters' gradients, which
/// may be partial.
inline constexpr llvm::StringLiteral kGradientsName = "dist.gradients";
/// On a layer of some degree: the mesh of its ranks, the layer that it is a
/// part of, and whether activations between layers are split over tokens.
inline constexpr llvm::StringLiteral kMeshName = "dist.mesh";
inline constexpr llvm::StringLiteral kLogicalName = "dist.logical";
inline constexpr llvm::StringLiteral kSequenceName = "dist.sequence";
/// On an op that counts tokens from the first of the micro-batch: the group to
/// whose ranks the tokens are dealt.
inline constexpr llvm::StringLiteral kTokensName = "dist.tokens";
/// On a module: the groups with indices from 3 on, in order.
inline constexpr llvm::StringLiteral kGroupsName = "dist.groups";
/// The first index that is no whole axis.
inline constexpr int64_t kFirstFactorGroup = 3;

} // namespace mlir::dist

#include "dialects/dist/DistDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttributes.h.inc"

#include "dialects/dist/DistInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/dist/Dist.h.inc"

#endif // DYNA_DIALECTS_DIST_DIST_H
