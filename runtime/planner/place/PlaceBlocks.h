//===- PlaceBlocks.h - Assigns offsets to blocks with lifetimes -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Offline allocation: all blocks and their lifetimes are known. Offsets are chosen
// so that blocks alive at one time do not overlap and the highest end, the peak, is
// small. The optimum is NP-hard. The lower bound is the largest sum of blocks alive
// at one time. For the stack-like lifetimes of training the heuristics below reach
// it in nearly all cases. Both numbers are reported.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLACEBLOCKS_H
#define DYNA_RUNTIME_PLANNER_PLACEBLOCKS_H

#include "runtime/planner/place/BlockLifetime.h"

#include <limits>
#include <vector>

namespace dyna {

struct BlockPlacement {
  std::vector<int64_t> offsets;
  int64_t peak = 0;
  int64_t lowerBound = 0; ///< no placement has a lower peak
};

/// Places all blocks. Groups of blocks that no chain of overlapping lifetimes
/// connects are placed independently. Three orders are tried in each group: by size,
/// by lifetime, by start. The first that meets the lower bound wins, otherwise the
/// best. Each order takes as long as placeLowest. Deterministic.
BlockPlacement placeBlocks(const std::vector<BlockLifetime> &blocks);

/// Places the blocks of `order` one after the other, each at the lowest offset that
/// is free during its whole life. Returns the peak. `offsets` has an element for
/// every block. O(n sqrt(n)) set operations for n blocks (PlacedBlocks.h).
///
/// Stops if the peak reaches `limit`. Later blocks then have no offsets, and
/// the returned peak is the peak of the others.
int64_t placeLowest(const std::vector<BlockLifetime> &blocks,
                    const std::vector<int> &order,
                    std::vector<int64_t> &offsets,
                    int64_t limit = std::numeric_limits<int64_t>::max());

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLACEBLOCKS_H
