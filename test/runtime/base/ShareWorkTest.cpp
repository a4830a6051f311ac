//===- ShareWorkTest.cpp - One job, done by all cores ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/thread/ShareWork.h"
#include "test/Patience.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace {

TEST(ShareWork, EveryPieceIsDoneWhenItReturns) {
  for (int64_t pieces : {0, 1, 2, 3, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<size_t>(pieces));
    std::atomic<int64_t> next{0}, calls{0};
    dyna::shareWork(pieces, [&] {
      ++calls;
      for (int64_t piece; (piece = next++) < pieces;)
        ++done[static_cast<size_t>(piece)];
    });
    for (const std::atomic<int> &one : done)
      EXPECT_EQ(one, 1);
    EXPECT_GE(calls, 1);
    EXPECT_LE(
        calls,
        std::max<int64_t>(
            1, std::min<int64_t>(
                   pieces, std::max(1u, std::thread::hardware_concurrency()))));
  }
}

// Two calls wait for each other, which one thread alone would not get past.
TEST(ShareWork, CallsRunSideBySide) {
  if (std::thread::hardware_concurrency() < 2)
    GTEST_SKIP() << "one core";
  std::atomic<int> here{0};
  const auto deadline = dyna::patienceEnds();
  dyna::shareWork(2, [&] {
    ++here;
    while (here < 2 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  });
  EXPECT_EQ(here, 2);
}

} // namespace
