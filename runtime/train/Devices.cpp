//===- Devices.cpp - What the ranks of a run work on ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/Devices.h"

#include "runtime/device/host/HostDevice.h"

#include <algorithm>

namespace dyna {

int threadsOfRank(const TrainOptions &options,
                  const std::vector<RankResources> &ranks) {
  const int given = static_cast<int>(options.threads);
  const Transport *transport = ranks.front().transport.get();
  if (!transport)
    return given;
  int all = given > 0 ? given : availableCores();
  int share =
      given > 0 ? static_cast<int>(ranks.size()) : transport->ranksPerCore();
  return std::max(1, all / share);
}

StatusOr<std::unique_ptr<Device>> openDevice(const TrainOptions &options,
                                             const dyna_variant &variant,
                                             int threads) {
  HostOptions host;
  host.threads = threads;
  // The kernels follow the instruction set that was asked for.
  if (!options.isa.empty())
    host.isa = variant.features & DYNA_FEATURE_AVX512 ? HostIsa::Avx512
               : variant.features & DYNA_FEATURE_AVX2 ? HostIsa::Avx2
                                                      : HostIsa::Baseline;
  DYNA_ASSIGN_OR_RETURN(auto device, HostDevice::create(host));
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace dyna
