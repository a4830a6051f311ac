//===- ScratchTest.cpp - Memory for what is on its way --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/Scratch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

using namespace dyna;

namespace {

constexpr int64_t kKiB = 1024, kHugePage = 2048 * kKiB;

TEST(Scratch, BlocksAreApart) {
  Scratch scratch;
  std::vector<Scratch::Block> blocks;
  for (int64_t bytes : {0, 1, 100, 40'000, 262'144, 262'145, 524'288, 524'289,
                        3'000'000, 300'000, 65'537, 262'144})
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(scratch.take(bytes));
      EXPECT_GE(blocks.back().bytes, bytes);
    }
  for (size_t i = 0; i < blocks.size(); ++i)
    memset(blocks[i].data.get(), int(i) + 1, size_t(blocks[i].bytes));
  for (size_t i = 0; i < blocks.size(); ++i)
    for (int64_t at = 0; at < blocks[i].bytes; ++at)
      ASSERT_EQ(blocks[i].data[at], char(i + 1)) << "block " << i;
}

TEST(Scratch, PiecesShareAHugePage) {
  Scratch scratch;
  std::set<uintptr_t> pages;
  std::vector<Scratch::Block> blocks;
  for (int i = 0; i < 16; ++i) {
    blocks.push_back(scratch.take(256 * kKiB));
    const auto begin = reinterpret_cast<uintptr_t>(blocks.back().data.get());
    pages.insert(begin / kHugePage);
    pages.insert((begin + 256 * kKiB - 1) / kHugePage);
  }
  EXPECT_EQ(pages.size(), 2u);
}

TEST(Scratch, WhatIsGivenIsTakenAgain) {
  Scratch scratch;
  for (int64_t bytes : {100, 262'144, 5'000'000}) {
    Scratch::Block block = scratch.take(bytes);
    const char *data = block.data.get();
    scratch.give(std::move(block));
    // Far smaller exchanges leave it alone.
    EXPECT_NE(scratch.take(bytes / 3).data.get(), data);
    EXPECT_EQ(scratch.take(bytes - bytes / 10).data.get(), data);
  }
}

TEST(Scratch, BlocksOutliveIt) {
  Scratch::Block kept;
  {
    Scratch scratch;
    scratch.give(scratch.take(256 * kKiB));
    kept = scratch.take(300 * kKiB);
  }
  memset(kept.data.get(), 1, size_t(kept.bytes));
  EXPECT_EQ(kept.data[0], 1);
}

} // namespace
