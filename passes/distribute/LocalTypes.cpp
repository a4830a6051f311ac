//===- LocalTypes.cpp - Makes the types and groups of one rank ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/distribute/LocalTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::dyna;
using ::dyna::AxisParts;
using ::dyna::Layout;

RankedTensorType mlir::dyna::localType(RankedTensorType type,
                                       const Layout &layout) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, parts] : llvm::zip_equal(shape, layout.dims))
    if (!ShapedType::isDynamic(size))
      size = llvm::divideCeil(size, ::dyna::groupSize(parts));
  return RankedTensorType::get(shape, type.getElementType());
}

dist::GroupAttr GroupTable::find(dist::MeshAttr meshAttr,
                                 const AxisParts &parts) {
  AxisParts canonical = ::dyna::canonicalParts(parts);
  if (auto index = dist::GroupAttr::getAxisIndex(meshAttr.getMesh(), canonical))
    return dist::GroupAttr::get(*index, meshAttr, canonical);
  auto known = dist::kGroups.of(module);
  if (!known)
    return {};
  for (auto group : known.getAsRange<dist::GroupAttr>())
    if (group.getMesh() == meshAttr && group.getParts() == canonical)
      return group;
  return {};
}

dist::GroupAttr GroupTable::getGroup(dist::MeshAttr meshAttr,
                                     const AxisParts &parts) {
  if (dist::GroupAttr known = find(meshAttr, parts))
    return known;
  SmallVector<Attribute> groups;
  if (auto known = dist::kGroups.of(module))
    llvm::append_range(groups, known);
  auto group = dist::GroupAttr::get(dist::kFirstFactorGroup + groups.size(),
                                    meshAttr, ::dyna::canonicalParts(parts));
  groups.push_back(group);
  dist::kGroups.set(module, ArrayAttr::get(module.getContext(), groups));
  return group;
}
