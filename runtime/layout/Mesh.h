//===- Mesh.h - Arranges ranks along named axes -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A mesh names the axes along which work is divided, and gives each rank
// coordinates on them. The *position* is the row-major number of coordinates
// (the last axis runs fastest). `ranks` lists the rank of each position. By
// default it is the position itself, but any distinct ranks are legal.
//
//     dp=2, tp=4                 tp:  0   1   2   3
//                         dp = 0      0   1   2   3     <- positions
//                         dp = 1      4   5   6   7
//
// Everything in this folder uses positions. Ranks appear only in two places:
// when a mesh is made, and when groups are given to a transport.
//
// An *axis part* is an axis or a factor of it. The coordinate c of a rank on
// an axis has the coordinate (c / stride) % size on the part:
//
//     c on tp        0  1  2  3
//     tp             0  1  2  3     stride 1, size 4: the axis
//     tp:2/2         0  0  1  1     stride 2, size 2: its major half
//     tp:2/1         0  1  0  1     stride 1, size 2: its minor half
//
// So `tp` and `tp:2/2, tp:2/1` (major first) number the ranks alike. The text
// of a part is the axis name, followed by `:size/stride` if it is a factor.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_LAYOUT_MESH_H
#define DYNA_RUNTIME_LAYOUT_MESH_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dyna {

struct MeshAxis {
  std::string name;
  int64_t size;
};

/// A factor of an axis of a mesh, or the whole axis (stride 1 and its size).
struct AxisPart {
  int axis = 0; ///< index into the axes of the mesh
  int64_t stride = 1;
  int64_t size = 1;

  bool operator==(const AxisPart &other) const {
    return axis == other.axis && stride == other.stride && size == other.size;
  }
  bool operator!=(const AxisPart &other) const { return !(*this == other); }
};

/// Axis parts, major to minor.
using AxisParts = std::vector<AxisPart>;

class Mesh {
public:
  /// Makes a mesh of one rank, without axes.
  Mesh() = default;

  /// Fails for these inputs: invalid or duplicate names, sizes below 1, more
  /// than 2^20 positions, negative or duplicate ranks, or a wrong number of
  /// ranks. No ranks means rank = position.
  static StatusOr<Mesh> create(std::vector<MeshAxis> axes,
                               std::vector<int64_t> ranks = {});

  const std::vector<MeshAxis> &axes() const { return axes_; }
  const std::vector<int64_t> &ranks() const { return ranks_; }
  int64_t size() const { return int64_t(ranks_.size()); }

  std::optional<int> findAxis(const std::string &name) const;
  /// Returns a whole axis as a part.
  AxisPart wholeAxis(int axis) const { return {axis, 1, axes_[axis].size}; }

  int64_t rankAt(int64_t position) const { return ranks_[position]; }
  /// Returns nothing if the rank is not on this mesh. Linear in the size of the
  /// mesh.
  std::optional<int64_t> positionOf(int64_t rank) const;

  /// Returns the distance of positions whose coordinates on the part differ by
  /// 1.
  int64_t positionStride(const AxisPart &part) const;
  int64_t coordinate(int64_t position, const AxisPart &part) const;
  /// Returns the index of a position among those that differ only in `parts`:
  /// the coordinates as digits of one number, the first the most significant.
  int64_t indexIn(int64_t position, const AxisParts &parts) const;

  /// Returns the positions that differ from `position` only in `parts`, ordered
  /// by indexIn.
  std::vector<int64_t> groupPositions(int64_t position,
                                      const AxisParts &parts) const;
  /// Returns the same as ranks, in the order in which a collective uses them.
  std::vector<int64_t> groupRanks(int64_t position,
                                  const AxisParts &parts) const;

  /// Returns "dp=2,tp=4", and " ranks [..]" if ranks differ from positions.
  std::string describe() const;

  bool operator==(const Mesh &other) const;
  bool operator!=(const Mesh &other) const { return !(*this == other); }

private:
  std::vector<MeshAxis> axes_;
  std::vector<int64_t> strides_; // of positions, per axis
  std::vector<int64_t> ranks_ = {0};
};

/// Returns the number of ranks that a list of parts distinguishes.
int64_t groupSize(const AxisParts &parts);

} // namespace dyna

#endif // DYNA_RUNTIME_LAYOUT_MESH_H
