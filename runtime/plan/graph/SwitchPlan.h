//===- SwitchPlan.h - Tensors on their way to other ranks -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A switch brings tensors from the ranks of one executable graph to those of
// another (HotSPa, section 5.2). What it has to do are `SwitchTensor`s: where
// each lies before, and where it has to lie behind. How it is done is a
// `SwitchPlan`: boxes that go from rank to rank, in buckets that are worked
// off in order. It is the same on all ranks, each of which takes its own part.
//
// Two nodes of two ranks; ranks 0 and 1 have one half of a tensor each, 2 and 3
// need all of it. Each half crosses the network once and is then passed on:
//
//     bucket 0              rows 0:2  0 -> 2    rows 2:4  1 -> 3
//     bucket 1, after 0     rows 0:2  2 -> 3    rows 2:4  3 -> 2
//
// A transfer says where its sender has the box and where its receiver puts it:
//
//     Old      where the tensor lies before: valid from the beginning
//     New      where it has to lie behind: the sender got it in a bucket that
//              this one comes after
//     Passing  in memory of the bucket itself: the receiver does not need it
//              and hands it on in buckets that name this one as theirs
//
// Old and New of one rank are memory of their own, so that a box that stays
// where it is is a transfer of a rank to itself, too.
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

/// A box of rows and columns, without memory of its own: a switch of a large
/// model has millions. A `Box` of other than two dimensions becomes one that
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

/// How often an element arrives.
enum class Delivery : uint8_t {
  All, ///< in every box of `to` that has it: parameters
  Once ///< in one of the boxes of `to` that have it: summands of a gradient
};

/// Boxes are of the logical tensor, as rows and columns (ExecutableGraph).
struct SwitchTensor {
  int parameter = -1;
  ParameterPart part = ParameterPart::Copy;
  int64_t elementBytes = 0;
  /// Who has what of it; they may overlap.
  std::vector<RankBox> from;
  /// Who needs what of it; those of one rank do not overlap.
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
  /// The bucket that brought what this one hands on: done on a rank before the
  /// rank sends anything of this one. -1: all of it is Old.
  int after = -1;
};

/// In the order in which ranks work them off, which is that of the tensors as
/// far as one does not wait for another. A bucket's passing memory is free
/// again when the buckets after it are done.
struct SwitchPlan {
  std::vector<SwitchBucket> buckets;
};

/// Proves that a plan does what the tensors ask for, or names the first thing
/// that is wrong:
///
/// - (S1) tensors are two-dimensional boxes of at least a byte per element, of
///   ranks below `ranks`; those of one rank in `to` do not overlap; transfers
///   name tensors and ranks that there are and boxes that are not empty.
/// - (S2) a bucket comes after an earlier one.
/// - (S3) the sender has it: what is Old lies inside one of its boxes in
///   `from`; what is New inside one that it got in a bucket that this one comes
///   after, directly or not; what is Passing inside one that it was given to
///   pass on in exactly that bucket.
/// - (S4) what is New to the receiver lies inside one of its boxes in `to`;
///   what is Passing is handed on.
/// - (S5) every element of every box in `to` arrives exactly once there
///   (All), or in exactly one of them (Once).
///
/// O(n log n) for n transfers, times the boxes that a rank has of one tensor.
Status checkSwitch(const std::vector<SwitchTensor> &tensors, int ranks,
                   const SwitchPlan &plan);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_SWITCHPLAN_H
