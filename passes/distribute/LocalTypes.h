//===- LocalTypes.h - Makes the types and groups of one rank ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_LOCALTYPES_H
#define DYNA_PASSES_DISTRIBUTE_LOCALTYPES_H

#include "dialects/dist/Dist.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna {

/// Returns the type of a tensor's part on every rank. A part of a known size
/// has the size of the first rank's, the largest; ranks with a smaller part
/// leave the rest unused.
RankedTensorType localType(RankedTensorType type, const ::dyna::Layout &layout);

/// The groups of a module. Whole axes have fixed indices. Factors are listed in
/// the module's attribute `dist.groups`, in the order of their first use.
class GroupTable {
public:
  explicit GroupTable(ModuleOp module) : module(module) {}

  /// Returns the group over these parts, and adds it if it is new.
  dist::GroupAttr getGroup(dist::MeshAttr mesh, const ::dyna::AxisParts &parts);
  /// Returns the group over these parts; null if the module has none.
  dist::GroupAttr find(dist::MeshAttr mesh, const ::dyna::AxisParts &parts);

private:
  ModuleOp module;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_LOCALTYPES_H
