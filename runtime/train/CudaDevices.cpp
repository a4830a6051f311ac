//===- CudaDevices.cpp - Runs on GPUs of NVIDIA ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/Printable.h"
#include "runtime/base/Text.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/kernels/FunctionTable.h"
#include "runtime/train/Devices.h"

namespace dyna {
namespace {

Status checkFlags(const TrainOptions &options) {
  if (!options.profile.empty())
    return Status::invalidArgument(
        "--profile measures calls that end when they return, which those of a "
        "CUDA device do not: it is not there for them yet");
  return Status::ok();
}

StatusOr<std::unique_ptr<Device>> open(const TrainOptions &options,
                                       const dyna_program &program,
                                       const dyna_variant &, int threads) {
  CudaOptions cuda;
  cuda.ordinal = static_cast<int>(options.device);
  cuda.threads = threads;
  DYNA_ASSIGN_OR_RETURN(auto device, CudaDevice::create(cuda));
  // Before anything runs: a program without code for this device says so.
  if (program.device_code)
    DYNA_RETURN_IF_ERROR(device->loadCode(*program.device_code));
  DYNA_RETURN_IF_ERROR(device->loadCode(dyna_cuda_kernels));
  return std::unique_ptr<Device>(std::move(device));
}

/// One line for each device of the driver.
std::string devicesText(const cuda::Driver &driver) {
  std::string text;
  for (int number = 0; number < driver.devices; ++number) {
    cuda::Ordinal ordinal = 0;
    char name[256] = "";
    int major = 0, minor = 0;
    size_t bytes = 0;
    using namespace cuda;
    bool isKnown =
        driver.device(&ordinal, number) == kSuccess &&
        driver.deviceName(name, sizeof(name), ordinal) == kSuccess &&
        driver.deviceAttribute(&major, kCapabilityMajor, ordinal) == kSuccess &&
        driver.deviceAttribute(&minor, kCapabilityMinor, ordinal) == kSuccess &&
        driver.deviceMemory(&bytes, ordinal) == kSuccess;
    text += isKnown
                ? formatText("  device %d: %s, sm_%d, %s\n", number,
                             printable(name), 10 * major + minor,
                             formatBytes(static_cast<int64_t>(bytes)))
                : formatText("  device %d: says nothing of itself\n", number);
  }
  return text;
}

std::string describe(const dyna_program &program) {
  std::string text = "cuda\n  kernels for: ";
  text += program.device_code ? describeImages(*program.device_code) : "none";
  auto driver = cuda::Driver::open();
  if (!driver.isOk())
    return text + "\n  " + driver.status().message() + "\n";
  text += formatText("\n  driver: CUDA %s (%s)\n",
                     cuda::versionText(driver->version), driver->path);
  return text + devicesText(*driver);
}

} // namespace

const DeviceKind dyna_device_kind = {"cuda",     true, 1,
                                     checkFlags, open, describe};

} // namespace dyna
