//===- HostDevices.cpp - Runs on the processor ----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/train/session/Devices.h"

namespace dyna {
namespace {

Status checkFlags(const Model &, const TrainOptions &options) {
  for (const char *flag :
       {"device", "tf32", "algorithms", "deterministic", "attention"})
    if (options.isGiven(flag))
      return Status::invalidArgument(
          formatText("--%s is for programs of dynac --target=cuda: this one "
                     "runs on the processor",
                     flag));
  return Status::ok();
}

StatusOr<std::unique_ptr<Device>> open(const TrainOptions &options,
                                       const dyna_program &,
                                       const dyna_variant &variant,
                                       int threads) {
  HostOptions host;
  host.threads = threads;
  // Kernels use the instruction set that the user chose.
  if (!options.isa.empty())
    host.isa = variant.features & DYNA_FEATURE_AVX512 ? HostIsa::Avx512
               : variant.features & DYNA_FEATURE_AVX2 ? HostIsa::Avx2
                                                      : HostIsa::Baseline;
  DYNA_ASSIGN_OR_RETURN(auto device, HostDevice::create(host));
  return std::unique_ptr<Device>(std::move(device));
}

StatusOr<std::string> timeAlgorithms(Device &, Device::Deadline) {
  return std::string();
}

std::string describe(const dyna_program &) { return ""; }

} // namespace

const DeviceKind dyna_device_kind = {
    "cpu", "host", false, 0, checkFlags, open, timeAlgorithms, describe};

} // namespace dyna
