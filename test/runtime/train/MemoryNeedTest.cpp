//===- MemoryNeedTest.cpp - Runs that do not fit --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/MemoryNeed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dyna;
using testing::HasSubstr;

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

} // namespace
