//===- Devices.h - What the ranks of a run work on --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one place that chooses among kinds of devices: everything else of a run
// knows runtime/device/Device.h alone.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_DEVICES_H
#define DYNA_RUNTIME_TRAIN_DEVICES_H

#include "runtime/executor/RankTeam.h"
#include "runtime/train/TrainOptions.h"

#include <memory>
#include <vector>

namespace dyna {

/// Of the host, that serve each device; 0: one for every core. --threads are
/// those of this process, which its ranks share; all cores are shared with the
/// ranks of other processes of the machine, too.
int threadsOfRank(const TrainOptions &options,
                  const std::vector<RankResources> &ranks);

/// The device of one rank, for code of this variant.
StatusOr<std::unique_ptr<Device>> openDevice(const TrainOptions &options,
                                             const dyna_variant &variant,
                                             int threads);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_DEVICES_H
