//===- Devices.h - Opens the devices of a run -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The only part of a run that knows kinds of devices; all others use
// runtime/device/Device.h alone. Libraries define `dyna_device_kind`
// (HostDevices.cpp, CudaDevices.cpp). A program is linked with the library of
// the device that its layers were compiled for, and with nothing of the others.
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
  /// Name of the device code that it runs, as in a manifest: "cpu".
  const char *target;
  /// Name of the fallback cost description (runtime/cost) for unknown devices
  /// of this kind.
  const char *described;
  /// True if devices have their own memory, apart from the host's.
  bool hasOwnMemory;
  /// Largest number of ranks of a run; 0: any number.
  int mostRanks;
  /// Returns InvalidArgument if a flag is not supported on this kind of device.
  Status (*checkFlags)(const Model &model, const TrainOptions &options);
  /// Opens the device of one rank, for the code of this variant. `threads` host
  /// threads serve it; 0: one for every core.
  StatusOr<std::unique_ptr<Device>> (*open)(const TrainOptions &options,
                                            const dyna_program &program,
                                            const dyna_variant &variant,
                                            int threads);
  /// Called between steps with --algorithms. Times the matrix products that are
  /// new to the device, for later steps and runs, and waits for it. Returns a
  /// line for people; empty if nothing was timed.
  StatusOr<std::string> (*timeAlgorithms)(Device &device,
                                          Device::Deadline deadline);
  /// Describes for people the program's code for such devices, and the devices
  /// of this machine. Returns lines; empty if there is nothing to say.
  std::string (*describe)(const dyna_program &program);
};

extern const DeviceKind dyna_device_kind;

/// Fails if this program's runtime has no devices for its code, or does not
/// support a flag.
Status checkDevices(const Model &model, const TrainOptions &options);

/// Returns the host threads that serve each device; 0: one for every core. The
/// ranks of this process share --threads. Without that flag they share all
/// cores with the ranks of other processes of the machine. `perDevice` ranks work
/// in turns, and each gets what they have together.
int threadsOfRank(const TrainOptions &options,
                  const std::vector<RankResources> &ranks, int perDevice = 1);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_DEVICES_H
