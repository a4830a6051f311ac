//===- SwitchPlan.h - Describes and verifies the plan of a switch ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A switch brings tensors from the ranks of one executable graph to the ranks
// of another (HotSPa, section 5.2). `SwitchTensor`s are the task: where each
// tensor lies before, and where it must lie afterwards. A `SwitchPlan` is the
// solution: boxes that go from rank to rank, in buckets that run in order. It
// is the same on all ranks, and each of them does its own part.
//
// Example: two nodes of two ranks. Ranks 0 and 1 have one half of a tensor
// each, and ranks 2 and 3 need all of it. Each half crosses the network once
// and is then passed on:
//
//     bucket 0              rows 0:2  0 -> 2    rows 2:4  1 -> 3
//     bucket 1, after 0     rows 0:2  2 -> 3    rows 2:4  3 -> 2
//
// A transfer says where its sender has the box and where its receiver puts it:
//
//     Old      the tensor's place before: valid from the beginning
//     New      its place afterwards: the sender got the box in a bucket that
//              this one comes after
//     Passing  memory of the bucket: the receiver does not need the box and
//              passes it on, in buckets that name this one in `after`
//
// Old and New of one rank are separate memory. So a box that stays on its rank
// is a transfer too, from the rank to itself.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_SWITCHPLAN_H
#define DYNA_RUNTIME_PLAN_SWITCHPLAN_H

#include "runtime/layout/Move.h"
#include "runtime/plan/graph/PersistentLayout.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

/// A box of rows and columns without heap memory: a switch of a large model has
/// millions. A `Box` that is not two-dimensional becomes a box that
/// `checkSwitch` refuses.
struct MatrixBox {
  std::array<int64_t, 2> begin{}, size{};

  MatrixBox() = default;
  MatrixBox(const Box &box) {
    if (box.begin.size() == 2 && box.size.size() == 2)
      *this =
          MatrixBox({box.begin[0], box.begin[1]}, {box.size[0], box.size[1]});
    else
      begin = size = {-1, -1};
  }
  MatrixBox(std::array<int64_t, 2> begin, std::array<int64_t, 2> size)
      : begin(begin), size(size) {}
  operator Box() const { return {{begin[0], begin[1]}, {size[0], size[1]}}; }

  int64_t volume() const { return size[0] * size[1]; }
  bool isEmpty() const { return volume() == 0; }
  std::string describe() const { return Box(*this).describe(); }
  bool operator==(const MatrixBox &other) const {
    return begin == other.begin && size == other.size;
  }
};

/// Number of arrivals of an element.
enum class Delivery : uint8_t {
  All, ///< in every box of `to` that has it: parameters
  Once ///< in one of the boxes of `to` that have it: summands of a gradient
};

/// A tensor to move. Boxes are of the logical tensor, as rows and columns
/// (ExecutableGraph).
struct SwitchTensor {
  int parameter = -1;
  ParameterPart part = ParameterPart::Copy;
  int64_t elementBytes = 0;
  /// Boxes that ranks have before; they may overlap.
  std::vector<RankBox> from;
  /// Boxes that ranks need afterwards; those of one rank do not overlap.
  std::vector<RankBox> to;
  Delivery delivery = Delivery::All;
};

enum class SwitchPlace : uint8_t { Old, New, Passing };

struct SwitchTransfer {
  int tensor = -1; ///< index into the list that was planned
  int from = -1, to = -1;
  SwitchPlace source = SwitchPlace::Old;
  SwitchPlace target = SwitchPlace::New; ///< or Passing
  MatrixBox box;
};

struct SwitchBucket {
  std::vector<SwitchTransfer> transfers;
  /// The bucket that brought what this one passes on. A rank must finish it
  /// before it sends anything of this bucket. -1: all boxes are Old.
  int after = -1;
};

/// Buckets in the order in which ranks run them. This is the order of the
/// tensors, as far as one does not wait for another. A bucket's passing memory
/// is free again when the buckets after it are done.
struct SwitchPlan {
  std::vector<SwitchBucket> buckets;
};

/// Verifies that a plan does what the tensors ask for; an error names the first
/// violation:
///
/// - (S1) Tensors are two-dimensional boxes of at least a byte per element, of
///   ranks below `ranks`. Those of one rank in `to` do not overlap. Transfers
///   name existing tensors and ranks, and boxes that are not empty.
/// - (S2) A bucket comes after an earlier one.
/// - (S3) The sender has the box. An Old box lies inside one of its boxes in
///   `from`. A New box lies inside one that it got in a bucket that this one
///   comes after, directly or not. A Passing box lies inside one that it got to
///   pass on in exactly that bucket.
/// - (S4) A box that is New to the receiver lies inside one of its boxes in
///   `to`. A Passing box is passed on.
/// - (S5) Every element of every box in `to` arrives exactly once there (All),
///   or in exactly one of them (Once).
///
/// O(n log n) for n transfers, times the boxes that a rank has of one tensor.
Status checkSwitch(const std::vector<SwitchTensor> &tensors, int ranks,
                   const SwitchPlan &plan);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_SWITCHPLAN_H
