//===- Initialize.h - Initial values of parameters --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_INITIALIZE_H
#define DYNA_RUNTIME_TRAIN_INITIALIZE_H

#include "runtime/device/Team.h"
#include "runtime/executor/run/RankTeam.h"

namespace dyna {

/// Element `index` of a new parameter: constant + normal_std * N(0,1), the
/// normal number being a function of seed, name and index (abi/Random.h).
double initialValue(const plan::Parameter &parameter, uint64_t key,
                    uint64_t index);

/// Writes the initial values of all masters, in parallel; the result does not
/// depend on the number of threads.
Status initializeParameters(RankTeam &ranks, uint64_t seed, Team &team);

/// Initializes low-rank adapters alone, before a checkpoint is loaded that may have
/// none of them. The model then starts as that of the checkpoint.
Status initializeAdapters(RankTeam &ranks, uint64_t seed, Team &team);

/// Brings the copies in the compute type up to date with the masters.
Status castParameters(RankTeam &ranks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_INITIALIZE_H
