//===- DriverTest.cpp - No driver, old drivers, no device -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/Driver.h"

#include "runtime/device/cuda/driver/Library.h"
#include "test/standins/Settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <fstream>

using namespace dyna;
using testing::AllOf;
using testing::HasSubstr;

namespace {

class CudaDriver : public testing::Test {
protected:
  void use(const std::string &folders) {
    settings.set(cuda::kLibraryPathVariable, folders);
  }
  /// The one line of the failure.
  std::string failure() {
    StatusOr<cuda::Driver> driver = cuda::Driver::open();
    EXPECT_FALSE(driver.isOk());
    EXPECT_EQ(driver.status().code(), StatusCode::InvalidArgument);
    EXPECT_EQ(driver.status().message().find('\n'), std::string::npos);
    return driver.status().message();
  }

  const std::string current = DYNA_STANDINS "/cuda";
  const std::string old = DYNA_STANDINS "/old";
  standins::Settings settings;
};

} // namespace

TEST_F(CudaDriver, IsFoundInAnyFolder) {
  use("/nonexistent::" + testing::TempDir() + ":" + current);
  StatusOr<cuda::Driver> driver = cuda::Driver::open();
  ASSERT_TRUE(driver.isOk()) << driver.status().message();
  EXPECT_EQ(driver->path, current + "/libcuda.so.1");
  EXPECT_EQ(driver->version, 13000);
  EXPECT_EQ(driver->devices, 1);
  EXPECT_EQ(driver->describe(cuda::kNotReady),
            "CUDA_ERROR_NOT_READY (device not ready)");
  EXPECT_EQ(driver->describe(803), "error 803 of CUDA");
}

TEST_F(CudaDriver, TheFirstFolderWins) {
  use(old + ":" + current);
  EXPECT_THAT(failure(), HasSubstr(old + "/libcuda.so.1"));
}

TEST_F(CudaDriver, MissingLibrariesSayWhereTheyWereLookedFor) {
  auto missing = cuda::Library::open({"libnone.so.9", "libnone.so.8"});
  ASSERT_FALSE(missing.isOk());
  EXPECT_EQ(
      missing.status().message(),
      "libnone.so.9 or libnone.so.8 was not found where the system "
      "looks; DYNA_CUDA_LIBRARY_PATH, which may name folders, is not set");
  use("/nonexistent");
  missing = cuda::Library::open({"libnone.so.9"});
  ASSERT_FALSE(missing.isOk());
  EXPECT_EQ(missing.status().message(),
            "libnone.so.9 was not found where the system looks nor in "
            "DYNA_CUDA_LIBRARY_PATH=/nonexistent");
}

TEST_F(CudaDriver, NoDriver) {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
    GTEST_SKIP() << "this machine has a driver";
  use("/nonexistent");
  EXPECT_THAT(failure(), HasSubstr("no CUDA driver: libcuda.so.1 was not"));
}

TEST_F(CudaDriver, AFileThatIsNoLibrary) {
  std::string folder = testing::TempDir();
  std::ofstream(folder + "/libcuda.so.1") << "no library";
  use(folder + ":" + current);
  EXPECT_THAT(failure(), HasSubstr("libcuda.so.1 cannot be used: "));
  remove((folder + "/libcuda.so.1").c_str());
}

TEST_F(CudaDriver, OldDrivers) {
  use(old);
  EXPECT_EQ(failure(),
            "the CUDA driver is too old: " + old +
                "/libcuda.so.1 is of CUDA 10.2, lacks "
                "cuDevicePrimaryCtxRelease_v2; CUDA 12.0 or newer is needed");
  use(current);
  settings.set("DYNA_STANDIN_DRIVER", 11080);
  EXPECT_EQ(failure(), "the CUDA driver is too old: " + current +
                           "/libcuda.so.1 is of CUDA 11.8; CUDA 12.0 or newer "
                           "is needed");
}

TEST_F(CudaDriver, NoDevice) {
  use(current);
  settings.set("DYNA_STANDIN_DEVICES", 0);
  EXPECT_EQ(failure(), "the CUDA driver (" + current +
                           "/libcuda.so.1, CUDA 13.0) finds no device");
}
