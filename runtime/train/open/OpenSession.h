//===- OpenSession.h - Sets up a run ----------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_OPENSESSION_H
#define DYNA_RUNTIME_TRAIN_OPENSESSION_H

#include "runtime/checkpoint/LoadCheckpoint.h"
#include "runtime/train/session/Session.h"

namespace dyna {

/// Opens a session: chooses the variant, opens the data, sizes micro-batches
/// and memory, and allocates the arena. Parameters are not set yet. `start` is
/// the checkpoint that they will come from, or null. All processes of a job
/// must have the same.
Status openSession(const dyna_program &program, const Model &model,
                   const TrainOptions &options, bool training,
                   const Checkpoint *start, Session &session);

/// Returns the graphs, each with the parts of parameters that ranks hold. Home
/// is the first.
std::vector<GraphUse> graphUses(const StepGraphs &graphs, bool training);

/// Opens a session for a process that only plans, without device, ranks or
/// arena.
Status openPlanning(const Model &model, const TrainOptions &options,
                    Session &session);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_OPENSESSION_H
