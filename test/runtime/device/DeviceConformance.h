//===- DeviceConformance.h - What holds for every device --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A backend's test binary is DeviceConformance.cpp, the suites of what kernels it
// has, and a file that defines `conformanceBackends`; see
// host/HostConformanceTest.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_DEVICE_DEVICECONFORMANCE_H
#define DYNA_TEST_RUNTIME_DEVICE_DEVICECONFORMANCE_H

#include "runtime/abi/Kernels.h"
#include "runtime/device/Device.h"
#include "test/Patience.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace dyna {

struct Backend {
  std::string name;
  std::function<StatusOr<std::unique_ptr<Device>>()> make;
  /// The product that stands for the generated one under f64; null where the
  /// backend has no f64.
  dyna_matmul_function matmulF64;
  /// Whether a machine may lack it: its tests are then skipped, not failed.
  bool optional = false;
  /// Whether a call can look at segments, and refuses those that lie outside of
  /// the micro-batch.
  bool readsSegments = true;
  /// Whether calls are done when they return: what they refuse of what tensors
  /// hold, they refuse then, and they advance exchanges.
  bool finishes = true;
  /// Whether products take described epilogues.
  bool describesEpilogues = false;
};

inline std::string nameOf(const testing::TestParamInfo<Backend> &info) {
  return info.param.name;
}

inline void PrintTo(const Backend &backend, std::ostream *out) {
  *out << backend.name;
}

/// A device with one stream and a context bound to both.
class DeviceFixture : public testing::TestWithParam<Backend> {
protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Device>> made = GetParam().make();
    if (!made.isOk() && GetParam().optional)
      GTEST_SKIP() << made.status().message();
    ASSERT_TRUE(made.isOk()) << made.status().message();
    device = std::move(*made);
    stream = std::move(*device->createStream());
    device->bind(context, *stream);
    context.abi_version = DYNA_ABI_VERSION;
    context.message = message;
    context.message_capacity = sizeof(message);
  }

  Device::Deadline soon() const { return patienceEnds(); }

  std::unique_ptr<Buffer> allocate(int64_t bytes) {
    StatusOr<std::unique_ptr<Buffer>> buffer = device->allocate(bytes);
    EXPECT_TRUE(buffer.isOk()) << buffer.status().message();
    return std::move(*buffer);
  }

  template <typename T>
  std::unique_ptr<Buffer> upload(const std::vector<T> &data) {
    int64_t bytes = static_cast<int64_t>(data.size() * sizeof(T));
    std::unique_ptr<Buffer> buffer = allocate(bytes);
    EXPECT_TRUE(
        device->copyToDevice(*stream, *buffer, 0, data.data(), bytes).isOk());
    EXPECT_TRUE(device->synchronize(*stream, soon()).isOk());
    return buffer;
  }

  template <typename T> std::vector<T> download(const Buffer &buffer) {
    std::vector<T> data(static_cast<size_t>(buffer.bytes()) / sizeof(T));
    int64_t bytes = static_cast<int64_t>(data.size() * sizeof(T));
    EXPECT_TRUE(
        device->copyToHost(*stream, data.data(), buffer, 0, bytes).isOk());
    EXPECT_TRUE(device->synchronize(*stream, soon()).isOk());
    return data;
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  dyna_context context = {};
  char message[512] = "";
};

/// What to run the suites on, defined by the backend's test.
std::vector<Backend> conformanceBackends();

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_DEVICE_DEVICECONFORMANCE_H
