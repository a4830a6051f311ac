//===- ValuesAtHome.h - Finds values that other graphs can read at home ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Home's values do not change before its update, with which a step ends. A
// rank's part of a parameter under another graph may be whole rows of its part
// at home, up to date. The layers of that graph then read them there. No switch
// brings them, and they have no place of their own.
//
//     home                 other graph          on a rank
//     dp=4                 tp=4, rows dealt     rows of its part at home
//     dp=4                 tp=4, columns dealt  a part of its own
//     dp=2,tp=2            tp=2,pp=2            its part at home, for layers of
//                                               the stage
//     dp=4,zero=1          tp=4, rows dealt     the rows that the rank updates,
//                                               if they are its part
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_VALUESATHOME_H
#define DYNA_RUNTIME_PLAN_VALUESATHOME_H

#include "runtime/plan/graph/ExecutableGraph.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// Returns the first row of a parameter's part under `graph` in the rank's
/// tensor at home, by rank and parameter. The row is aligned as layer functions
/// need. -1 if the rank needs values of its own, or has no part. O(ranks
/// parameters).
std::vector<std::vector<int64_t>> rowsAtHome(const ExecutableGraph &home,
                                             const ExecutableGraph &graph);

/// Bytes that a rank has of a graph other than home during its phase. They are
/// values that layers cannot read at home, and all gradients.
struct HeldParameters {
  int64_t values = 0, gradients = 0;
};
/// Returns these bytes by rank.
std::vector<HeldParameters> heldOf(const ExecutableGraph &home,
                                   const ExecutableGraph &graph);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_VALUESATHOME_H
