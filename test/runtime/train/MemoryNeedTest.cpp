//===- MemoryNeedTest.cpp - Runs that do not fit --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/MemoryNeed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dyna;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

namespace {

TEST(MemoryNeedTest, ComparesTheSumWithMachineAndLimit) {
  TrainOptions options;
  MemoryNeed need{100, 200, 250, 50};
  EXPECT_TRUE(checkMemoryNeed(need, options, -1).isOk());
  EXPECT_TRUE(checkMemoryNeed(need, options, 600).isOk());
  EXPECT_FALSE(checkMemoryNeed(need, options, 599).isOk());
  options.memoryLimit = "600B";
  EXPECT_TRUE(checkMemoryNeed(need, options, -1).isOk());
  options.memoryLimit = "599B";
  EXPECT_FALSE(checkMemoryNeed(need, options, -1).isOk());
}

TEST(MemoryNeedTest, NamesTheFlagThatHelps) {
  TrainOptions options;
  const std::pair<MemoryNeed, const char *> cases[] = {
      {{900, 9, 9}, "smaller model"},
      {{9, 900, 9}, "lower --tokens-per-micro-batch"},
      {{9, 9, 900}, "lower --tokens-per-batch"},
      {{9, 9, 9, 900}, "fewer, larger documents"}};
  for (const auto &[need, remedy] : cases) {
    Status status = checkMemoryNeed(need, options, 10);
    EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("has only 10 B available"));
    EXPECT_THAT(status.message(), HasSubstr(remedy));
  }
}

// To the byte, as what is printed of it beside is rounded.
TEST(MemoryNeedTest, NamesTheLimitThatIsEnough) {
  TrainOptions options;
  options.memoryLimit = "1MiB";
  MemoryNeed need{3000001, 200, 50, 50};
  auto message = [&](int64_t available) {
    return checkMemoryNeed(need, options, available).message();
  };
  EXPECT_THAT(message(-1), EndsWith("; --memory-limit 3000301 is enough"));
  options.memoryLimit = "3000301";
  EXPECT_TRUE(checkMemoryNeed(need, options, -1).isOk());
  options.memoryLimit = "3000300";
  EXPECT_FALSE(checkMemoryNeed(need, options, -1).isOk());
  // Not where more would be missing than the limit leaves, or more may come.
  EXPECT_THAT(message(3000300), Not(HasSubstr("is enough")));
  need.isAll = false;
  EXPECT_THAT(message(-1), Not(HasSubstr("is enough")));
}

// A control group with such a limit counts it, too.
TEST(MemoryNeedTest, CountsTheProgram) {
  TrainOptions options;
  options.memoryLimit = "1100";
  MemoryNeed need{100, 300, 50, 50};
  EXPECT_TRUE(checkMemoryNeed(need, options, 500).isOk());
  need.program = 601;
  EXPECT_THAT(checkMemoryNeed(need, options, 500).message(),
              AllOf(HasSubstr("601 B for the program itself"),
                    HasSubstr("lower --tokens-per-micro-batch"),
                    EndsWith("; --memory-limit 1101 is enough")));
  need.program = 600;
  // Of what is free it has its part already.
  EXPECT_TRUE(checkMemoryNeed(need, options, 500).isOk());
  EXPECT_FALSE(checkMemoryNeed(need, options, 499).isOk());
  need.program = 1100;
  EXPECT_THAT(checkMemoryNeed(need, options, -1).message(),
              HasSubstr(": raise it, as the program alone takes 1.1 KiB"));
}

// The same in every run, though what is there at the start is not.
TEST(MemoryNeedTest, TheProgramIsCountedInLargeSteps) {
  constexpr int64_t mib = 1 << 20;
  EXPECT_EQ(programBytes(0), 32 * mib);
  EXPECT_EQ(programBytes(24 * mib), 32 * mib);
  EXPECT_EQ(programBytes(24 * mib + 1), 48 * mib);
  EXPECT_EQ(programBytes(200 * mib), 208 * mib);
}

TEST(MemoryNeedTest, AdvisesWhatTheRunGoesBy) {
  TrainOptions options;
  options.memoryLimit = "1000";
  MemoryNeed need{100, 1200, 50};
  auto message = [&] { return checkMemoryNeed(need, options, -1).message(); };
  EXPECT_THAT(message(),
              AllOf(HasSubstr(": lower --tokens-per-micro-batch or choose "
                              "--recompute full; "),
                    Not(HasSubstr("--in-flight"))));
  for (const char *mode : {"full", "auto"}) {
    options.recompute = mode;
    EXPECT_THAT(message(), HasSubstr(": lower --tokens-per-micro-batch; "));
  }
  need.isLowered = true;
  EXPECT_THAT(message(), HasSubstr(": lower --rank-memory; "));
}

TEST(MemoryNeedTest, DevicesHaveTheirOwn) {
  TrainOptions options;
  options.chosenMicroBatch = 512;
  auto room = [](int64_t free, int64_t staged) {
    return DeviceMemory{free, staged}.room();
  };
  EXPECT_EQ(room(-1, 50), -1);
  EXPECT_EQ(room(3200, 0), 3100);
  EXPECT_EQ(room(3200, 100), 3100);
  EXPECT_EQ(room(3200, 101), 3099);
  EXPECT_EQ(room(3200, 4000), 0);
  EXPECT_TRUE(checkDeviceNeed(3000, 1000, options, {-1, 0}).isOk());
  EXPECT_TRUE(checkDeviceNeed(3000, 100, options, {3200, 0}).isOk());
  Status status = checkDeviceNeed(3000, 101, options, {3200, 0});
  EXPECT_EQ(status.code(), StatusCode::ResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "the run needs 3.0 KiB of device memory (2.9 KiB for parameters and "
      "their state, 101 B for micro-batches of 512 tokens), but the "
      "device has 3.0 KiB free for it: 1 B are missing; lower "
      "--tokens-per-micro-batch or choose --recompute full");
  options.rankMemory = "1MiB";
  EXPECT_THAT(checkDeviceNeed(3000, 101, options, {3200, 0}).message(),
              EndsWith("; lower --rank-memory"));
  options.rankMemory.clear();
  EXPECT_THAT(checkDeviceNeed(3101, 0, options, {3200, 0}).message(),
              HasSubstr("1 B are missing; train a smaller model"));
  // Workspaces that no size of micro-batches makes smaller.
  EXPECT_THAT(checkDeviceNeed(3000, 101, options, {3200, 0, 40}).message(),
              AllOf(HasSubstr("101 B for micro-batches of 512 tokens, 40 B for "
                              "those of one), but"),
                    HasSubstr("; lower --tokens-per-micro-batch")));
  EXPECT_THAT(
      checkDeviceNeed(3000, 101, options, {3200, 0, 40, true}).message(),
      HasSubstr("; take smaller micro-batches by --rank-memory 3100, "
                "lower --tokens-per-micro-batch"));
  EXPECT_THAT(checkDeviceNeed(3000, 300, options, {3200, 0, 101}).message(),
              EndsWith("; train a smaller model or use a device with more "
                       "memory"));
}

TEST(MemoryNeedTest, WhatIsOnItsWayToADeviceTakesItsPart) {
  TrainOptions options;
  options.tokensPerBatch = 4096;
  // Without it all would fit.
  EXPECT_TRUE(checkDeviceNeed(2000, 100, options, {3200, 1100}).isOk());
  EXPECT_THAT(
      checkDeviceNeed(2000, 101, options, {3200, 1100}).message(),
      EndsWith("1 B are missing; lower --tokens-per-batch: of the device 1.1 "
               "KiB are kept for steps of 4096 tokens on their way there"));
  // Parameters would, and not these micro-batches.
  EXPECT_THAT(checkDeviceNeed(3000, 101, options, {3200, 1100}).message(),
              AllOf(HasSubstr("; lower --tokens-per-micro-batch"),
                    HasSubstr(", and lower --tokens-per-batch")));
  EXPECT_THAT(checkDeviceNeed(2000, 1101, options, {3200, 1100}).message(),
              AllOf(HasSubstr("; lower --tokens-per-micro-batch"),
                    Not(HasSubstr("--tokens-per-batch"))));
  // Nor would parameters.
  EXPECT_THAT(
      checkDeviceNeed(3101, 0, options, {3200, 3200}).message(),
      EndsWith("train a smaller model or use a device with more memory"));
}

} // namespace
