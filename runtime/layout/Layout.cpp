//===- Layout.cpp - Describes where a tensor lies on a mesh ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/layout/Layout.h"

#include "runtime/abi/Collectives.h"

#include <algorithm>
#include <tuple>

namespace dyna {

//===----------------------------------------------------------------------===//
// Validity
//===----------------------------------------------------------------------===//

bool areIndependent(const AxisPart &a, const AxisPart &b) {
  if (a.axis != b.axis || a.size == 1 || b.size == 1)
    return true;
  // Both are digits of one mixed-radix number if one part ends where, or
  // before, the other begins, and its end divides the other's stride.
  const AxisPart &minor = a.stride < b.stride ? a : b;
  const AxisPart &major = a.stride < b.stride ? b : a;
  return major.stride % (minor.stride * minor.size) == 0;
}

static Status checkPart(const Mesh &mesh, const AxisPart &part) {
  if (part.axis < 0 || part.axis >= int(mesh.axes().size()))
    return Status::invalidArgument(
        "layout uses axis " + std::to_string(part.axis) + " of mesh " +
        mesh.describe() + ", which has " + std::to_string(mesh.axes().size()) +
        " axes");
  const MeshAxis &axis = mesh.axes()[part.axis];
  bool fits = part.stride >= 1 && part.size >= 1 && part.size <= axis.size &&
              part.stride <= axis.size &&
              axis.size % (part.stride * part.size) == 0;
  if (!fits)
    return Status::invalidArgument(
        "layout uses " + axis.name + ":" + std::to_string(part.size) + "/" +
        std::to_string(part.stride) + "; size times stride must divide " +
        std::to_string(axis.size) + ", the size of axis '" + axis.name + "'");
  return Status::ok();
}

Status checkParts(const Mesh &mesh, const AxisParts &parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    DYNA_RETURN_IF_ERROR(checkPart(mesh, parts[i]));
    for (size_t j = 0; j < i; ++j)
      if (!areIndependent(parts[i], parts[j]))
        return Status::invalidArgument(
            "layout uses " + describePart(mesh, parts[j]) + " and " +
            describePart(mesh, parts[i]) +
            ", which overlap; each part of an axis can be used once");
  }
  return Status::ok();
}

Status checkLayout(const Mesh &mesh, const Layout &layout, size_t tensorRank) {
  if (layout.dims.size() != tensorRank)
    return Status::invalidArgument(
        "layout has " + std::to_string(layout.dims.size()) +
        " dimensions; the tensor has " + std::to_string(tensorRank));
  AxisParts used = layout.partial;
  for (const AxisParts &parts : layout.dims)
    used.insert(used.end(), parts.begin(), parts.end());
  return checkParts(mesh, used);
}

//===----------------------------------------------------------------------===//
// Canonical form
//===----------------------------------------------------------------------===//

AxisParts canonicalParts(const AxisParts &parts) {
  AxisParts joined;
  for (const AxisPart &part : parts) {
    if (part.size == 1)
      continue;
    if (!joined.empty() && joined.back().axis == part.axis &&
        joined.back().stride == part.stride * part.size)
      joined.back() = {part.axis, part.stride, joined.back().size * part.size};
    else
      joined.push_back(part);
  }
  return joined;
}

Layout canonicalLayout(const Layout &layout) {
  Layout result;
  for (const AxisParts &parts : layout.dims)
    result.dims.push_back(canonicalParts(parts));
  AxisParts partial = layout.partial;
  auto majorFirst = [](const AxisPart &a, const AxisPart &b) {
    return std::make_tuple(a.axis, -a.stride, a.size) <
           std::make_tuple(b.axis, -b.stride, b.size);
  };
  std::sort(partial.begin(), partial.end(), majorFirst);
  // Parts of size 1 may lie between two parts that join.
  result.partial = canonicalParts(partial);
  return result;
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

int64_t partBegin(int64_t count, int64_t parts, int64_t index) {
  return dyna_part_begin(count, parts, index);
}

int64_t partSize(int64_t count, int64_t parts, int64_t index) {
  return dyna_part_size(count, parts, index);
}

Box localBox(const Mesh &mesh, const Layout &layout, const Shape &shape,
             int64_t position) {
  Box box = Box::whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t parts = groupSize(layout.dims[d]);
    int64_t index = mesh.indexIn(position, layout.dims[d]);
    box.begin[d] = partBegin(shape[d], parts, index);
    box.size[d] = partSize(shape[d], parts, index);
  }
  return box;
}

bool splitRefines(int64_t count, int64_t outer, int64_t inner) {
  if (outer == 1 || inner == 1)
    return true;
  if (count == kDynamicSize)
    return false; // fails for count = outer * inner + 1
  if (count % (outer * inner) == 0)
    return true;
  for (int64_t i = 0; i < outer; ++i) {
    int64_t begin = partBegin(count, outer, i);
    int64_t size = partSize(count, outer, i);
    for (int64_t j = 0; j < inner; ++j) {
      int64_t fine = partSize(count, outer * inner, i * inner + j);
      if (partSize(size, inner, j) != fine)
        return false;
      if (fine > 0 && begin + partBegin(size, inner, j) !=
                          partBegin(count, outer * inner, i * inner + j))
        return false;
    }
  }
  return true;
}

Status checkRefines(const Shape &shape, int dim, int64_t outer, int64_t inner) {
  int64_t size = shape[dim];
  if (splitRefines(size, outer, inner))
    return Status::ok();
  return Status::invalidArgument(
      "dimension " + std::to_string(dim) + " of size " +
      (size == kDynamicSize ? "unknown" : std::to_string(size)) + ": " +
      std::to_string(outer) + " parts cut again into " + std::to_string(inner) +
      " are not " + std::to_string(outer * inner) +
      " parts of it; lay out the local tensor as a tensor of its own");
}

bool samePlacement(const Mesh &meshA, const Layout &a, const Mesh &meshB,
                   const Layout &b, const Shape &shape) {
  if (meshA.size() != meshB.size() || a.dims.size() != b.dims.size())
    return false;
  for (int64_t i = 0; i < meshA.size(); ++i) {
    std::optional<int64_t> j = meshB.positionOf(meshA.rankAt(i));
    if (!j)
      return false;
    Box box = localBox(meshA, a, shape, i);
    if (box != localBox(meshB, b, shape, *j))
      return false;
    if (box.isEmpty())
      continue;
    std::vector<int64_t> addendsA = meshA.groupRanks(i, a.partial);
    std::vector<int64_t> addendsB = meshB.groupRanks(*j, b.partial);
    std::sort(addendsA.begin(), addendsA.end());
    std::sort(addendsB.begin(), addendsB.end());
    if (addendsA != addendsB)
      return false;
  }
  return true;
}

} // namespace dyna
