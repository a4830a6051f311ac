//===- CoreTimeTest.cpp - What a thread has had of a core -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/thread/CoreTime.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

using namespace dyna;

namespace {

// However long others keep it waiting.
TEST(CoreTimeTest, CountsWorkAndNoSleep) {
  const double begin = coreSeconds();
  while (coreSeconds() - begin < 0.002) {
  }
  const double waited = coreWaitSeconds(), before = coreSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_LT(coreSeconds() - before, 0.015);
  EXPECT_GE(coreWaitSeconds(), waited);
}

TEST(CoreTimeTest, EachThreadHasItsOwn) {
  double other = -1;
  const double begin = coreSeconds();
  while (coreSeconds() - begin < 0.005) {
  }
  std::thread([&] { other = coreSeconds(); }).join();
  EXPECT_GE(other, 0);
  EXPECT_LT(other, 0.005);
}

} // namespace
