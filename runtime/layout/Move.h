//===- Move.h - Plans messages that move a tensor ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans the messages that bring a tensor from one distribution to another.
// Examples: from the ranks of one strategy to those of another, or between the
// ranks and the process that reads or writes a checkpoint. Both distributions
// are lists of boxes, and nothing else is assumed. Parts may be uneven, copied,
// dealt row by row (ZeRO), or missing on some ranks.
//
//     from   rank 0 has rows 0:2, rank 1 rows 2:4         of [4, 2]
//     to     ranks 0 and 1 want column 0, ranks 2 and 3 column 1
//     plan   0 -> 0 [0:2, 0:1]   1 -> 0 [2:4, 0:1]
//            0 -> 1 [0:2, 0:1]   1 -> 1 [2:4, 0:1]
//            0 -> 2 [0:2, 1:2]   1 -> 2 [2:4, 1:2]  and so on
//
// If a value is partial, every box in `from` is an addend: `planSum`.
//
// The steps of Reshard.h are collectives. These are messages between two ranks
// each, and need no common mesh.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_LAYOUT_MOVE_H
#define DYNA_RUNTIME_LAYOUT_MOVE_H

#include "runtime/base/error/Status.h"
#include "runtime/layout/Box.h"

#include <map>
#include <vector>

namespace dyna {

/// A box of a tensor that a rank has, or is to have; a rank may have several.
struct RankBox {
  int rank = 0;
  Box box;
};

/// Moves `box` from one rank to another, or to another position on the same
/// rank.
struct Transfer {
  int from = 0, to = 0;
  Box box;

  bool operator==(const Transfer &o) const {
    return from == o.from && to == o.to && box == o.box;
  }
};

/// Plans that every element of every box in `to` arrives once, from a rank that
/// has it. A rank that has the element itself sends it to itself. Otherwise the
/// rank that sends the least so far does, the first of several. This is
/// Algorithm 1 of HotSPa, section 5.2, without its preference for ranks of one
/// node.
///
/// Transfers are ordered by `to`, then by position. Fails with the first box
/// that no rank has. The result is the same on every rank.
///
/// A box in `to` is cut at the begins and ends of the boxes that overlap it. So
/// it has at most as many pieces as the product, over dimensions, of their
/// number. Touching pieces of one sender are joined again. The time is O(|to|
/// pieces |from|).
StatusOr<std::vector<Transfer>> planMove(const std::vector<RankBox> &from,
                                         const std::vector<RankBox> &to);

/// Plans that every addend in `from` arrives at every box in `to` that it
/// overlaps. The receiver adds them up.
std::vector<Transfer> planSum(const std::vector<RankBox> &from,
                              const std::vector<RankBox> &to);

} // namespace dyna

#endif // DYNA_RUNTIME_LAYOUT_MOVE_H
