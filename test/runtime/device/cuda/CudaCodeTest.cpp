//===- CudaCodeTest.cpp - Kernels of compiled code, and around a step -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/DeviceCode.h"
#include "runtime/abi/Kernels.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/driver/Library.h"
#include "test/Patience.h"
#include "test/standins/Fibers.h"
#include "test/standins/Settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

struct Store {
  int64_t *out;
  int64_t value;
};

/// out[i] = value + i, and the same from shared memory.
void store(const void *arguments) {
  const auto &a = *static_cast<const Store *>(arguments);
  auto *shared = static_cast<int64_t *>(dyna_emulated_shared(8));
  shared[0] = a.value;
  dyna_emulated_barrier();
  int32_t i = dyna_emulated_block() * dyna_emulated_block_size() +
              dyna_emulated_thread();
  a.out[i] = shared[0] + i;
}
void nothing(const void *) {}

const dyna_emulated_entry entries[] = {{"nothing", nothing, 8},
                                       {"store", store, sizeof(Store)}};
const dyna_emulated_image image = {DYNA_EMULATED_MAGIC, sizeof(image), 2,
                                   entries, dyna_emulated_run};
const dyna_device_image images[] = {
    {0, DYNA_IMAGE_EMULATED, &image, sizeof(image)}};
const dyna_device_function functions[] = {{"nothing", 8, 32, 0},
                                          {"store", sizeof(Store), 4, 8}};
const dyna_device_code code = {images, 1, functions, 2, 0};

class CudaCodeTest : public testing::Test {
protected:
  CudaCodeTest() {
    settings.set(cuda::kLibraryPathVariable, DYNA_STANDINS "/cuda");
  }
  void TearDown() override {
    buffer.reset();
    stream.reset();
    device.reset();
    void *library = dlopen(DYNA_STANDINS "/cuda/libcuda.so.1", RTLD_NOW);
    reinterpret_cast<void (*)()>(dlsym(library, "dyna_standin_reset"))();
  }

  void open() {
    CudaOptions options;
    options.threads = 1;
    auto made = CudaDevice::create(options);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    device = std::move(*made);
    stream = std::move(*device->createStream());
    buffer = std::move(*device->allocate(1024));
    context.message = message;
    context.message_capacity = sizeof(message);
    device->bind(context, *stream);
  }
  Status finish() { return device->synchronize(*stream, patienceEnds()); }
  template <typename T> std::vector<T> read(int64_t count) {
    std::vector<T> result(static_cast<size_t>(count));
    EXPECT_TRUE(device
                    ->copyToHost(*stream, result.data(), *buffer, 0,
                                 count * static_cast<int64_t>(sizeof(T)))
                    .isOk());
    Status status = finish();
    EXPECT_TRUE(status.isOk()) << status.message();
    return result;
  }

  standins::Settings settings;
  std::unique_ptr<CudaDevice> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> buffer;
  dyna_context context = {};
  char message[512] = "";
};

} // namespace

TEST_F(CudaCodeTest, KernelsAreLaunchedByNumber) {
  open();
  ASSERT_TRUE(device->loadCode(code).isOk());
  Store arguments = {static_cast<int64_t *>(buffer->data()), 100};
  ASSERT_EQ(
      dyna_launch_kernel(&context, &code, 1, &arguments, sizeof(arguments), 2),
      DYNA_OK)
      << message;
  arguments.value = 0; // was copied
  EXPECT_THAT(read<int64_t>(8),
              testing::ElementsAre(100, 101, 102, 103, 104, 105, 106, 107));
  // No blocks are no work.
  EXPECT_EQ(
      dyna_launch_kernel(&context, &code, 1, &arguments, sizeof(arguments), 0),
      DYNA_OK);
}

TEST_F(CudaCodeTest, LaunchesThatDoNotFitAreRefused) {
  open();
  Store arguments = {static_cast<int64_t *>(buffer->data()), 100};
  auto launch = [&](int64_t function, int64_t bytes, int64_t grid) {
    EXPECT_EQ(
        dyna_launch_kernel(&context, &code, function, &arguments, bytes, grid),
        DYNA_INVALID_ARGUMENT);
    return std::string(message);
  };
  EXPECT_EQ(launch(2, 16, 1), "a launch of kernel 2, but the code has 2");
  EXPECT_EQ(launch(-1, 16, 1), "a launch of kernel -1, but the code has 2");
  EXPECT_EQ(launch(1, 8, 1), "a launch of kernel store with 8 bytes of "
                             "arguments, but it takes 16");
  EXPECT_EQ(launch(1, 16, -1), "a launch of kernel store in -1 blocks");
  // They end nothing.
  EXPECT_EQ(
      dyna_launch_kernel(&context, &code, 1, &arguments, sizeof(arguments), 1),
      DYNA_OK);
  EXPECT_EQ(read<int64_t>(1)[0], 100);
}

TEST_F(CudaCodeTest, CodeForOtherDevicesIsRefusedAtOnce) {
  settings.set("DYNA_STANDIN_CAPABILITY", 90);
  open();
  Status status = device->loadCode(code);
  EXPECT_EQ(status.message(),
            "CUDA device 0 (stand-in) is of architecture sm_90, for which this "
            "program holds no code (it has emulated); compile it with "
            "--arch=sm_90");
  EXPECT_EQ(describeImages(code), "emulated");
}

TEST_F(CudaCodeTest, ADriverOlderThanTheToolkitIsRefused) {
  dyna_device_code newer = code;
  newer.oldest_driver = 13000;
  settings.set("DYNA_STANDIN_DRIVER", 12090);
  open();
  EXPECT_EQ(device->loadCode(newer).message(),
            "CUDA device 0 (stand-in): its driver is of CUDA 12.9, but this "
            "program's kernels were made with a toolkit of CUDA 13 and need a "
            "driver of CUDA 13.0 or newer (release 580): update the driver, or "
            "build Dyna and the program with an older toolkit");
  newer.oldest_driver = 12000;
  EXPECT_TRUE(device->loadCode(newer).isOk());
}

TEST_F(CudaCodeTest, AnIndexThatIsRefusedIsNamed) {
  for (int64_t seed : {0, 1, 2}) {
    settings.set("DYNA_STANDIN_SEED", seed);
    for (bool isToken : {true, false}) {
      open();
      // More rows than a block has threads; the first of two bad ones counts.
      std::vector<int32_t> ids(700, 3);
      std::vector<int64_t> positions(700, 3);
      ids[650] = 9, positions[650] = 9;
      ids[699] = -2, positions[699] = -2;
      buffer = std::move(*device->allocate(700 * 8));
      const void *data = isToken ? static_cast<const void *>(ids.data())
                                 : static_cast<const void *>(positions.data());
      ASSERT_TRUE(
          device
              ->copyToDevice(*stream, *buffer, 0, data, 700 * (isToken ? 4 : 8))
              .isOk());
      auto check = [&](int64_t count, int64_t rows) {
        return isToken ? dyna_check_ids(&context,
                                        static_cast<int32_t *>(buffer->data()),
                                        count, rows)
                       : dyna_check_positions(
                             &context, static_cast<int64_t *>(buffer->data()),
                             count, rows);
      };
      EXPECT_EQ(check(650, 4), DYNA_OK);
      EXPECT_TRUE(finish().isOk());
      // Nobody waits where it is asked.
      EXPECT_EQ(check(700, 9), DYNA_OK);
      Status status = finish();
      EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
      EXPECT_EQ(status.message(),
                std::string(isToken ? "token id" : "position") +
                    " 9 in row 650 of the micro-batch: the table has 9 rows");
      TearDown();
    }
  }
}
