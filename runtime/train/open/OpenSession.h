//===- OpenSession.h - Setting up a run -------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_OPENSESSION_H
#define DYNA_RUNTIME_TRAIN_OPENSESSION_H

#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/train/session/Session.h"

namespace dyna {

/// Chooses the variant, opens the data, works out micro-batches and memory, and
/// takes the arena. Parameters are not set yet; `start`, which may be null, is
/// where they will come from, which all processes of a job must have alike.
Status openSession(const dyna_program &program, const Model &model,
                   const TrainOptions &options, bool training,
                   const Checkpoint *start, Session &session);

/// Returns the graphs with what ranks have of the parameters in each. Home is the first.
std::vector<GraphUse> graphUses(const StepGraphs &graphs, bool training);

/// The same for a process that only plans: no device, ranks or arena.
Status openPlanning(const Model &model, const TrainOptions &options,
                    Session &session);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_OPENSESSION_H
