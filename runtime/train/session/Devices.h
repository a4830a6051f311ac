//===- Devices.h - What the ranks of a run work on --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one place that knows kinds of devices: everything else of a run knows
// runtime/device/Device.h alone. A program is linked with one of the libraries
// that define `dyna_device_kind` (HostDevices.cpp, CudaDevices.cpp), that of what
// its layers were compiled for, and so with nothing that others need.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_DEVICES_H
#define DYNA_RUNTIME_TRAIN_DEVICES_H

#include "runtime/abi/DeviceCode.h"
#include "runtime/executor/run/RankTeam.h"
#include "runtime/train/flags/TrainOptions.h"

#include <memory>
#include <string>
#include <vector>

namespace dyna {

struct DeviceKind {
  /// What code it runs, as a manifest says it: "cpu".
  const char *target;
  /// The described device (runtime/cost) that stands for one that none is like.
  const char *described;
  /// Whether devices have memory of their own, beside the host's.
  bool hasOwnMemory;
  /// Of a run; 0: any number.
  int mostRanks;
  /// InvalidArgument where the flags ask for what there is no such device for.
  Status (*checkFlags)(const Model &model, const TrainOptions &options);
  /// The device of one rank, ready for the code of this variant; `threads` of the
  /// host serve it, 0: one for every core.
  StatusOr<std::unique_ptr<Device>> (*open)(const TrainOptions &options,
                                            const dyna_program &program,
                                            const dyna_variant &variant,
                                            int threads);
  /// With --algorithms, between steps: times those of the products that a device
  /// has had new, for later steps and runs; waits for it. Returns a line for
  /// people; empty where there was nothing to time.
  StatusOr<std::string> (*timeAlgorithms)(Device &device,
                                          Device::Deadline deadline);
  /// For people: what the program has for such devices, and what of them this
  /// machine has. Lines; none where there is nothing to say.
  std::string (*describe)(const dyna_program &program);
};

extern const DeviceKind dyna_device_kind;

/// Whether this program's runtime has devices for its code, and what the flags ask
/// of them.
Status checkDevices(const Model &model, const TrainOptions &options);

/// Of the host, that serve each device; 0: one for every core. --threads are
/// those of this process, which its ranks share; all cores are shared with the
/// ranks of other processes of the machine, too.
int threadsOfRank(const TrainOptions &options,
                  const std::vector<RankResources> &ranks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_DEVICES_H
