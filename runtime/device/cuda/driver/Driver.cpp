//===- Driver.cpp - Opens CUDA's driver at run time -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/Driver.h"

#include "runtime/base/text/Text.h"
#include "runtime/device/cuda/driver/Library.h"

using namespace dyna;
using namespace dyna::cuda;

std::string cuda::versionText(int version) {
  return formatText("%d.%d", version / 1000, version % 1000 / 10);
}

StatusOr<Driver> Driver::open() {
  StatusOr<Library> opened = Library::open({"libcuda.so.1"});
  if (!opened.isOk())
    return Status::invalidArgument(
        "no CUDA driver: " + opened.status().message() +
        "; nvidia-smi tells whether this machine has one (a container is given "
        "it with --gpus all)");
  const Library &library = *opened;
  Driver driver;
  driver.path = library.path();
  const char *missing = nullptr;
#define DYNA_CUDA_FIND(member, symbol, ...)                                    \
  driver.member = reinterpret_cast<member##_type *>(library.find(#symbol));    \
  if (!driver.member && !missing)                                              \
    missing = #symbol;
  DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_CUDA_FIND)
#undef DYNA_CUDA_FIND

  // The version can be read before the driver is initialised.
  if (driver.driverVersion)
    (void)driver.driverVersion(&driver.version);
  if (missing || driver.version < kOldestDriver) {
    std::string version = driver.version > 0
                              ? "of CUDA " + versionText(driver.version)
                              : "of an unknown version";
    std::string lacks = missing ? formatText(", lacks %s", missing) : "";
    return Status::invalidArgument(formatText(
        "the CUDA driver is too old: %s is %s%s; CUDA %s or newer is needed",
        driver.path, version, lacks, versionText(kOldestDriver)));
  }
  Result result = driver.init(0);
  if (result == kSuccess)
    result = driver.deviceCount(&driver.devices);
  if (result == kNoDevice || (result == kSuccess && driver.devices == 0))
    return Status::invalidArgument(
        formatText("the CUDA driver (%s, CUDA %s) finds no device", driver.path,
                   versionText(driver.version)));
  if (result != kSuccess)
    return driver.check(
        result, formatText("starting the CUDA driver (%s)", driver.path));
  return driver;
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *meaning = nullptr;
  if (errorName(result, &name) != kSuccess || !name)
    return formatText("error %d of CUDA", result);
  if (errorString(result, &meaning) != kSuccess || !meaning)
    return name;
  return formatText("%s (%s)", name, meaning);
}

Status Driver::check(Result result, const std::string &what) const {
  if (result == kSuccess)
    return Status::ok();
  return Status::deviceError(what + ": " + describe(result));
}
