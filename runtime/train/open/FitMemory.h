//===- FitMemory.h - What a run may take of the memory there is -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Before data are open, how long samples may be; behind that, how large the regions
// of ranks are. By --rank-memory, by --memory-limit, or by what is free here, on a
// device with memory of its own or on this machine. MemoryNeed.h says how much that
// is, and what does not fit.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_FITMEMORY_H
#define DYNA_RUNTIME_TRAIN_FITMEMORY_H

#include "runtime/planner/step/StepRegions.h"
#include "runtime/train/session/Session.h"

#include <vector>

namespace dyna {

/// Sets the session's `sampleLimit`. A sample may have as many tokens as the model
/// has positions, as long as it fits a rank's memory alone in its micro-batch; in any
/// case as many as a micro-batch of several has. `runsHere`: this process has ranks.
Status limitSamples(Session &session, bool training, bool runsHere);

/// Returns the bytes of home's parameters and their state on a rank; none without a place.
int64_t heldAtHome(const Session &session, int rank, bool training);

/// Returns the bytes that each rank takes beside the tensors that stay: its region, or
/// more if the session asks for larger arenas.
std::vector<int64_t> dynamicBytes(const Session &session,
                                  const StepRegions &regions, bool training);

/// The regions of all ranks, if those of this process (`local`, with so many threads
/// each) fit the memory there is. All processes of a job choose alike.
StatusOr<StepRegions> chooseRegions(Session &session,
                                    const std::vector<int> &local, int threads,
                                    bool training, HostExchange *processes);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_FITMEMORY_H
