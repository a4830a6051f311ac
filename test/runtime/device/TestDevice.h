//===- TestDevice.h - A device for tests of what uses one -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_DEVICE_TESTDEVICE_H
#define DYNA_TEST_RUNTIME_DEVICE_TESTDEVICE_H

#include "runtime/device/host/HostDevice.h"

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace dyna {

/// What devices of tests are put into while it is set: for tests of how a device
/// is used.
inline std::function<std::unique_ptr<Device>(std::unique_ptr<Device>)>
    wrapTestDevice;

/// The one place where tests and benches that are not about a kind of device
/// choose one. Ends the process where there is none.
inline std::unique_ptr<Device> makeTestDevice(int threads = 1) {
  auto device = HostDevice::create(threads);
  if (!device.isOk()) {
    std::fprintf(stderr, "%s\n", device.status().message().c_str());
    std::abort();
  }
  return wrapTestDevice ? wrapTestDevice(std::move(*device))
                        : std::move(*device);
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_DEVICE_TESTDEVICE_H
