//===- Dist.h - Defines the dist dialect: layouts on a mesh of ranks ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The dialect says where tensors lie on a mesh of ranks. It has attributes that
// wrap runtime/layout, reshards, collectives, and the interface through which
// ops state their possible splits.
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

#include "dialects/dist/DistDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttributes.h.inc"

namespace mlir::dist {

// Discardable attributes. The table in Dist.cpp describes them and lists the
// ops on which they may be.
template <typename AttributeType>
using PhaseAttribute = dyna::PhaseAttribute<AttributeType>;

/// On an op: the layouts of its results, one each.
inline constexpr PhaseAttribute<ArrayAttr> kLayouts{"dist.layouts"};
/// On a layer or layer function: the layouts of its arguments and results. A
/// unit attribute stands for a value without a layout (segments).
inline constexpr PhaseAttribute<ArrayAttr> kArguments{"dist.arguments"};
inline constexpr PhaseAttribute<ArrayAttr> kResults{"dist.results"};
/// On a layer of some degree: the layouts of its parameters' gradients, which
/// may be partial.
inline constexpr PhaseAttribute<ArrayAttr> kGradients{"dist.gradients"};
/// On a layer of some degree: the mesh of its ranks, and the logical layer that
/// it was made from. `dist.sequence` says that activations between layers are
/// split over tokens.
inline constexpr PhaseAttribute<MeshAttr> kMesh{"dist.mesh"};
inline constexpr PhaseAttribute<FlatSymbolRefAttr> kLogical{"dist.logical"};
inline constexpr PhaseAttribute<UnitAttr> kSequence{"dist.sequence"};
/// On an op that counts tokens from the first of the micro-batch: the group
/// whose ranks share the tokens.
inline constexpr PhaseAttribute<GroupAttr> kTokens{"dist.tokens"};
/// On an op that counts features from the first of the row: the group whose
/// ranks share the features.
inline constexpr PhaseAttribute<GroupAttr> kFeatures{"dist.features"};
/// On a module: the groups with indices from 3 on, in order.
inline constexpr PhaseAttribute<ArrayAttr> kGroups{"dist.groups"};
/// The first index of a group over a factor of an axis; the groups before it
/// are over whole axes.
inline constexpr int64_t kFirstFactorGroup = 3;

/// Makes the reshard step of a collective from its kind and dimensions.
inline ::dyna::ReshardStep makeStep(::dyna::ReshardKind kind, int64_t dim = -1,
                                    int64_t toDim = -1) {
  ::dyna::ReshardStep step;
  step.kind = kind;
  step.dim = static_cast<int>(dim);
  step.toDim = static_cast<int>(toDim);
  return step;
}

} // namespace mlir::dist

#include "dialects/dist/DistInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/dist/Dist.h.inc"

#endif // DYNA_DIALECTS_DIST_DIST_H
