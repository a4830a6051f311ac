//===- SayEveryTest.cpp - Long work is told of now and then ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/thread/SayEvery.h"

#include <gtest/gtest.h>

#include <thread>

using namespace dyna;

namespace {

TEST(SayEvery, IsDueAfterThePauseAgainAndAgain) {
  SayEvery usual;
  EXPECT_FALSE(usual.isDue());
  SayEvery often(std::chrono::milliseconds(20));
  EXPECT_FALSE(SayEvery(std::chrono::hours(1)).isDue());
  for (int time = 0; time < 2; ++time) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    EXPECT_TRUE(often.isDue());
  }
  SayEvery always(std::chrono::milliseconds(0));
  EXPECT_TRUE(always.isDue());
}

} // namespace
