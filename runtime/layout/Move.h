//===- Move.h - Boxes of a tensor from rank to rank -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans who sends what to whom so that a tensor that lies one way comes to lie
// another way: from the ranks of one strategy to those of another, to the
// process that writes a checkpoint, from the one that reads it. Both ways are
// given as boxes, so that nothing is assumed of either: parts may be uneven,
// copied, dealt row by row (ZeRO), or missing on some ranks.
//
//     from   rank 0 has rows 0:2, rank 1 rows 2:4         of [4, 2]
//     to     ranks 0 and 1 want column 0, ranks 2 and 3 column 1
//     plan   0 -> 0 [0:2, 0:1]   1 -> 0 [2:4, 0:1]
//            0 -> 1 [0:2, 0:1]   1 -> 1 [2:4, 0:1]
//            0 -> 2 [0:2, 1:2]   1 -> 2 [2:4, 1:2]  and so on
//
// Where a value is partial, every box in `from` is a summand: `planSum`.
//
// Unlike the steps of Reshard.h these are messages between two ranks each, and
// need no common mesh.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_LAYOUT_MOVE_H
#define DYNA_RUNTIME_LAYOUT_MOVE_H

#include "runtime/base/Status.h"
#include "runtime/layout/Box.h"

#include <map>
#include <vector>

namespace dyna {

/// What a rank has of a tensor, or is to have; a rank may have several.
struct RankBox {
  int rank = 0;
  Box box;
};

/// `box` goes from one rank to another, or to another place of the same one.
struct Transfer {
  int from = 0, to = 0;
  Box box;

  bool operator==(const Transfer &o) const {
    return from == o.from && to == o.to && box == o.box;
  }
};

/// Every element of every box in `to` once, from a rank that has it: itself if
/// it can, else the one that sends the fewest so far, of these the first (HotSPa,
/// section 5.2, Algorithm 1, without its preference for ranks of one node).
/// Ordered by `to`, then by place. Fails with the first box that nobody has.
/// The same on every rank that asks.
///
/// A box in `to` is cut where boxes that have a part of it begin and end, so
/// into no more than the product, over dimensions, of their number; pieces of
/// one sender that touch are joined again. All in all O(|to| pieces |from|).
StatusOr<std::vector<Transfer>> planMove(const std::vector<RankBox> &from,
                                         const std::vector<RankBox> &to);

/// Every summand in `from` to every box in `to` that it meets: what arrives is
/// added up.
std::vector<Transfer> planSum(const std::vector<RankBox> &from,
                              const std::vector<RankBox> &to);

} // namespace dyna

#endif // DYNA_RUNTIME_LAYOUT_MOVE_H
