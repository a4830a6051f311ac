//===- ValuesAtHome.h - What another graph reads as it lies -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Home's values do not change before its update, with which a step ends. Where a
// rank's part of a parameter under another graph is some whole rows of what it has at
// home, up to date, the layers of that graph read them there: no switch brings
// them, and they have no place of their own.
//
//     home                 other graph          on a rank
//     dp=4                 tp=4, rows dealt     rows of what home has
//     dp=4                 tp=4, columns dealt  a part of its own
//     dp=2,tp=2            tp=2,pp=2            all that home has, of layers of the stage
//     dp=4,zero=1          tp=4, rows dealt     what the rank updates, if that is it
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_VALUESATHOME_H
#define DYNA_RUNTIME_PLAN_VALUESATHOME_H

#include "runtime/plan/graph/ExecutableGraph.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// By rank and parameter: the row of the rank's tensor at home with which its part
/// under `graph` begins, aligned as layer functions want it; -1 where it needs
/// values of its own, or has none. O(ranks parameters).
std::vector<std::vector<int64_t>> rowsAtHome(const ExecutableGraph &home,
                                             const ExecutableGraph &graph);

/// What a rank has of a graph other than home, while its phase lasts: what layers
/// read and home has not got, and all gradients. Bytes.
struct HeldParameters {
  int64_t values = 0, gradients = 0;
};
/// By rank.
std::vector<HeldParameters> heldOf(const ExecutableGraph &home,
                                   const ExecutableGraph &graph);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_VALUESATHOME_H
