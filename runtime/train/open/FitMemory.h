//===- FitMemory.h - Fits a run into the memory that is free ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before data are opened, this limits the length of samples. Afterwards it
// sizes the regions of ranks. The limit is --rank-memory, --memory-limit, or
// the memory that is free on the device or on this machine. MemoryNeed.h
// computes the need and describes what does not fit.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_FITMEMORY_H
#define DYNA_RUNTIME_TRAIN_FITMEMORY_H

#include "runtime/planner/step/StepRegions.h"
#include "runtime/train/session/Session.h"

#include <vector>

namespace dyna {

/// Sets the session's `sampleLimit`. A sample must fit the model's positions
/// and, alone in its micro-batch, the memory of a rank. Samples of the size of
/// a full micro-batch are always allowed. `runsHere`: this process has ranks.
Status limitSamples(Session &session, bool training, bool runsHere);

/// Returns the bytes of home's parameters and their state on a rank; 0 if home
/// has no place for it.
int64_t heldAtHome(const Session &session, int rank, bool training);

/// Returns the bytes of each rank beside the persistent tensors: its region, or
/// more if the session asks for larger arenas.
std::vector<int64_t> dynamicBytes(const Session &session,
                                  const StepRegions &regions, bool training);

/// Returns the regions of all ranks. Fails if those of this process (`local`,
/// with `threads` threads each) do not fit the free memory. All processes of a
/// job choose alike.
StatusOr<StepRegions> chooseRegions(Session &session,
                                    const std::vector<int> &local, int threads,
                                    bool training, HostExchange *processes);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_FITMEMORY_H
