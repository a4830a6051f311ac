//===- SizeMoves.h - Sizes arenas for graphs that follow --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// With --repack the graphs that follow are known before a run starts. So everything that
// can be refused is refused then: strategies, numbers of ranks, and bytes that do not fit.
// Arenas are taken once, large enough for all graphs and for the switches between them.
//
// With --rebalance the cuts that follow are not known. An arena then has addresses for any
// cut, and takes memory for the present one. Every move asks first if the memory that it
// needs is free. With --rank-memory an arena has that memory from the start.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SIZEMOVES_H
#define DYNA_RUNTIME_TRAIN_SIZEMOVES_H

#include "runtime/train/flags/RepackList.h"
#include "runtime/train/open/NextGraphs.h"

namespace dyna {

/// Returns what an entry of --repack asks for of a run whose strategy is `now`.
StatusOr<NextStrategy> strategyOf(const Repack &repack, const Strategy &now,
                                  int layers);

/// Sets how many ranks the run has, and the least bytes of the arena of each rank. They
/// are enough for all entries of --repack. Sets what arenas reserve for --rebalance. The
/// session's graphs and data are there. Fails with the entry if a run cannot go over to
/// it, and if --rebalance has no stages. Does nothing without the two. Costs a
/// sizing of regions and a plan of a switch for each entry.
Status sizeMoves(Session &session);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SIZEMOVES_H
