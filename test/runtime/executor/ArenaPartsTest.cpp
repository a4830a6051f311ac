//===- ArenaPartsTest.cpp - Layouts of an arena ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/ArenaParts.h"

#include <gmock/gmock.h>

#include <random>

using namespace dyna;

namespace {

struct Range {
  int64_t begin, bytes;
  int64_t end() const { return begin + bytes; }
};

void expectApart(const Range &a, const Range &b) {
  EXPECT_TRUE(a.end() <= b.begin || b.end() <= a.begin)
      << a.begin << "+" << a.bytes << ", " << b.begin << "+" << b.bytes;
}

/// Whatever tensors come and go, the next ones, the present ones and what is passed on
/// lie apart and inside. Nothing is refused that has what a refusal asks for.
TEST(ArenaPartsTest, NeighboursLieApart) {
  std::mt19937_64 random(5);
  auto below = [&](int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  };
  int refused = 0, made = 0;
  for (int round = 0; round < 200; ++round) {
    ArenaParts now = ArenaParts::atStart(below(60000), 20000 + below(100000));
    for (int change = 0; change < 20; ++change) {
      const int64_t bytes = below(4) ? below(70000) : 0,
                    transit = below(3) ? 0 : below(20000);
      auto next = nextParts(now, bytes, transit);
      const int64_t need = bytesToReplace(now.persistentBytes, bytes, transit);
      if (!next.isOk()) {
        EXPECT_EQ(next.status().code(), StatusCode::ResourceExhausted);
        EXPECT_GT(need, now.arenaBytes);
        ++refused;
        continue;
      }
      ++made;
      const ArenaParts &parts = next->parts;
      EXPECT_EQ(parts.arenaBytes, now.arenaBytes);
      const Range before = {now.persistent, now.persistentBytes},
                  behind = {parts.persistent, parts.persistentBytes},
                  passed = {next->transit, transit},
                  region = {parts.region, parts.regionBytes};
      expectApart(before, behind);
      expectApart(before, passed);
      expectApart(behind, passed);
      expectApart(behind, region);
      for (const Range &range : {behind, passed, region}) {
        EXPECT_GE(range.begin, 0);
        EXPECT_LE(range.end(), parts.arenaBytes);
      }
      EXPECT_EQ(parts.persistent % 64, 0);
      EXPECT_EQ(parts.region % 64, 0);
      EXPECT_GE(region.bytes, regionBytesBeside(parts.arenaBytes, bytes));
      now = parts;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(made, 500);
}

} // namespace
