//===- LocalTypes.h - Types and groups of one rank --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_LOCALTYPES_H
#define DYNA_PASSES_DISTRIBUTE_LOCALTYPES_H

#include "dialects/dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna {

/// What every rank holds of a tensor: a part of a known size is that of the
/// first rank, the largest; ranks that have less leave the rest alone.
RankedTensorType localType(RankedTensorType type, const ::dyna::Layout &layout);

/// The groups of a module: whole axes have fixed indices, factors are listed
/// in its attribute `dist.groups` in the order in which they were first asked
/// for.
class GroupTable {
public:
  explicit GroupTable(ModuleOp module) : module(module) {}

  /// Adds the group if it is new.
  dist::GroupAttr getGroup(dist::MeshAttr mesh, const ::dyna::AxisParts &parts);
  /// The group over these parts; null if it is none of the module's.
  dist::GroupAttr find(dist::MeshAttr mesh, const ::dyna::AxisParts &parts);

private:
  ModuleOp module;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_LOCALTYPES_H
