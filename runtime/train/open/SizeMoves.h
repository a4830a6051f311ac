//===- SizeMoves.h - Sizes arenas for graphs that follow --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// With --repack and --freeze the later graphs are known before a run starts. So
// everything is checked at the start: strategies, numbers of ranks, and bytes.
// Arenas are allocated once, large enough for all graphs and for the switches
// between them.
//
// With --rebalance and `--repack auto` the later cuts are not known. An arena then has addresses
// for any cut, and memory for the present one. Every move first checks if the
// memory that it needs is free. With --rank-memory an arena has that memory
// from the start.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SIZEMOVES_H
#define DYNA_RUNTIME_TRAIN_SIZEMOVES_H

#include "runtime/train/flags/FreezeList.h"
#include "runtime/train/flags/RepackList.h"
#include "runtime/train/open/NextGraphs.h"

namespace dyna {

/// Returns the strategy that an entry of --repack asks for, in a run whose
/// strategy is `now`.
StatusOr<NextStrategy> strategyOf(const Repack &repack, const Strategy &now,
                                  int layers);

/// Sets the number of ranks of the run and the least bytes of each rank's
/// arena, for all entries of --repack and --freeze. Sets the addresses that
/// arenas reserve for --rebalance. The session must have graphs and data. Fails
/// with the entry that a run cannot go over to, and if --rebalance has no
/// stages. Does nothing without these flags. For each entry it sizes regions
/// and plans a switch.
Status sizeMoves(Session &session);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SIZEMOVES_H
