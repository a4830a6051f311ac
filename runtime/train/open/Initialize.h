//===- Initialize.h - Sets the initial values of parameters -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_INITIALIZE_H
#define DYNA_RUNTIME_TRAIN_INITIALIZE_H

#include "runtime/device/Team.h"
#include "runtime/executor/run/RankTeam.h"

namespace dyna {

/// Returns element `index` of a new parameter: constant + normal_std * N(0,1).
/// The normal number is a function of seed, name and index (abi/Random.h).
double initialValue(const plan::Parameter &parameter, uint64_t key,
                    uint64_t index);

/// Writes the initial values of all masters, in parallel. The result does not
/// depend on the number of threads.
Status initializeParameters(RankTeam &ranks, uint64_t seed, Team &team);

/// Initializes low-rank adapters and exits alone. Used before a checkpoint is
/// loaded that may have none: the model then starts as the checkpoint's model.
Status initializeAddedParts(RankTeam &ranks, uint64_t seed, Team &team);

/// Casts the masters into their copies in the compute type.
Status castParameters(RankTeam &ranks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_INITIALIZE_H
