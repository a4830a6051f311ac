//===- Layout.h - Describes where a tensor lies on a mesh -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A layout lists, for each dimension of a tensor, the axis parts that split it,
// major to minor. It also lists the parts over which the value is *partial*:
// the tensor is then the sum of what the ranks hold. Over all other parts it is
// replicated. As text: `[[dp, tp], []] partial [pp]`.
//
// The order in a list is the order of a loop nest: in `[[dp, tp]]` the outer
// loop runs over dp. Eight rows on dp=2,tp=2 (rank = dp*2 + tp):
//
//     rows         0 1   2 3   4 5   6 7
//     [[dp, tp]]   r0    r1    r2    r3
//     [[tp, dp]]   r0    r2    r1    r3
//     [[tp]]       r0 and r2   r1 and r3        replicated over dp
//
// So "split 4 ways along dimension 0" does not describe a layout. It is true of
// the first two, and moving weights between them would permute rows.
//
// Uneven splits. Part i of k of n rows is [i*ceil(n/k), (i+1)*ceil(n/k)),
// clipped, possibly empty (runtime/abi/Collectives.h). A list of several parts
// is ONE split into the product of their sizes, by the combined index, not a
// split of a split. Five rows:
//
//     [[dp, tp]] (4 parts of ceil(5/4) = 2)   r0: 0 1  r1: 2 3  r2: 4  r3: -
//     halves (3 + 2) halved again             r0: 0 1  r1: 2    r2: 3  r3: 4
//
// Only the first does not depend on how an axis is factored. `[[tp]]` and
// `[[tp:2/2, tp:2/1]]` are the same placement, and a rank's rows follow from
// its index and the number of parts alone.
//
// The price: if parts are uneven, dropping a minor part does not always give
// whole rows of the coarser split (splitRefines tells). ZeRO, for example,
// needs rows of a rank's *local* tensor. Treat the local tensor as a tensor of
// its own then, with the local shape. Box::within gives its global coordinates.
//
// Sizes that are unknown at compile time are kDynamicSize.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_LAYOUT_LAYOUT_H
#define DYNA_RUNTIME_LAYOUT_LAYOUT_H

#include "runtime/layout/Box.h"
#include "runtime/layout/Mesh.h"

#include <limits>

namespace dyna {

/// Size that is known only at run time; MLIR's shaped types use the same value.
constexpr int64_t kDynamicSize = std::numeric_limits<int64_t>::min();

using Shape = std::vector<int64_t>;

struct Layout {
  std::vector<AxisParts> dims; ///< per tensor dimension, major to minor
  AxisParts partial;           ///< a set: its order means nothing

  static Layout replicated(size_t tensorRank) {
    return {std::vector<AxisParts>(tensorRank), {}};
  }

  /// Returns true if both are written alike; see samePlacement.
  bool operator==(const Layout &other) const {
    return dims == other.dims && partial == other.partial;
  }
  bool operator!=(const Layout &other) const { return !(*this == other); }
};

/// Fails if a part names no axis of the mesh or is no factor of it, or if two
/// parts overlap. Also fails if the number of dimensions is not `tensorRank`.
/// Everything below and in Reshard.h expects layouts that pass.
Status checkLayout(const Mesh &mesh, const Layout &layout, size_t tensorRank);

/// Checks a list of parts in the same way, such as the group of a collective.
Status checkParts(const Mesh &mesh, const AxisParts &parts);

/// Returns true if two parts can be used together, because their coordinates
/// are independent. This holds for parts of different axes.
bool areIndependent(const AxisPart &a, const AxisPart &b);

/// Returns the shortest form of the same placement for every shape: no parts of
/// size 1, adjacent factors joined, partial parts sorted.
Layout canonicalLayout(const Layout &layout);
AxisParts canonicalParts(const AxisParts &parts);

/// Return the begin and size of part `index` if `parts` ranks share a dimension
/// of `count` rows.
int64_t partBegin(int64_t count, int64_t parts, int64_t index);
int64_t partSize(int64_t count, int64_t parts, int64_t index);

/// Returns the box that a rank holds of a tensor of this (known) shape.
Box localBox(const Mesh &mesh, const Layout &layout, const Shape &shape,
             int64_t position);

/// Returns true if cutting each of `outer` parts again into `inner` gives the
/// parts of one cut into outer * inner. For kDynamicSize: if this holds for
/// every size. Linear in outer * inner.
bool splitRefines(int64_t count, int64_t outer, int64_t inner);
/// Fails, and names the dimension, if the split does not refine.
Status checkRefines(const Shape &shape, int dim, int64_t outer, int64_t inner);

/// Returns true if every rank holds the same elements, and of partial values
/// the same addends. The layouts may be written differently, even on two
/// meshes. The shape must be known; without one, compare canonicalLayout. At
/// worst quadratic in the ranks.
bool samePlacement(const Mesh &meshA, const Layout &a, const Mesh &meshB,
                   const Layout &b, const Shape &shape);
inline bool samePlacement(const Mesh &mesh, const Layout &a, const Layout &b,
                          const Shape &shape) {
  return samePlacement(mesh, a, mesh, b, shape);
}

/// Return text: "tp" or "tp:2/1"; "[dp, tp]"; "[[dp, tp], []] partial [pp]".
std::string describePart(const Mesh &mesh, const AxisPart &part);
std::string describeParts(const Mesh &mesh, const AxisParts &parts);
std::string describeLayout(const Mesh &mesh, const Layout &layout);

/// Inverts describeLayout; ignores blanks. The result passes checkLayout.
StatusOr<Layout> parseLayout(const Mesh &mesh, const std::string &text);

} // namespace dyna

#endif // DYNA_RUNTIME_LAYOUT_LAYOUT_H
