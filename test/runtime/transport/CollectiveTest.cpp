//===- CollectiveTest.cpp - Which bytes go where ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/Collective.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

using namespace dyna;

// The example of the header.
TEST(Collective, RowsOfAGather) {
  dyna_collective args = {};
  args.outer = 2, args.split = 5, args.inner = 3;
  args.element = DYNA_ELEMENT_F32;
  Collective c = Collective::of(CollectiveKind::AllGather, args);
  Rows source = c.sourceRows(2, 1, 0), target = c.targetRows(2, 1, 0);
  mergeRuns(source, target);
  EXPECT_EQ(source.offset, 0);
  EXPECT_EQ(source.innerStride, 6 * 4);
  EXPECT_EQ(source.bytes, 6 * 4);
  EXPECT_EQ(target.offset, 9 * 4);
  EXPECT_EQ(target.innerStride, 15 * 4);
  EXPECT_EQ(target.inner * target.outer, 2);
  EXPECT_EQ(c.sentBytes(2, 1), 48);
  EXPECT_EQ(c.describe(), "all_gather of f32 [2, 5, 3]");
}

// Every byte of every result is written exactly once, from within the input.
TEST(Collective, RowsCoverResultsExactlyOnce) {
  std::mt19937 random(1);
  auto draw = [&](int most) { return int64_t(random() % (most + 1)); };
  for (int round = 0; round < 2000; ++round) {
    Collective c;
    c.kind = static_cast<CollectiveKind>(1 + random() % 3);
    c.element = DYNA_ELEMENT_BF16;
    c.outer = draw(3), c.first = draw(9), c.inner = draw(3);
    if (c.kind == CollectiveKind::AllToAll) {
      c.middle = draw(3), c.second = draw(9);
      c.secondToFirst = random() % 2;
    }
    int size = 1 + static_cast<int>(random() % 5);
    for (int to = 0; to < size; ++to) {
      std::vector<int> writes(size_t(c.outBytes(size, to)));
      for (int from = 0; from < size; ++from) {
        Rows source = c.sourceRows(size, from, to);
        Rows target = c.targetRows(size, from, to);
        ASSERT_EQ(source.totalBytes(), target.totalBytes());
        bool isReduced = c.kind == CollectiveKind::ReduceScatter;
        forEachRun(source, target, 0, source.totalBytes(),
                   [&](int64_t at, int64_t result, int64_t bytes) {
                     ASSERT_GE(at, 0);
                     ASSERT_LE(at + bytes, c.inBytes(size, from));
                     ASSERT_GE(result, 0);
                     ASSERT_LE(result + bytes, c.outBytes(size, to));
                     for (int64_t i = 0; i < bytes; ++i)
                       writes[size_t(result + i)] += !isReduced || from == 0;
                   });
      }
      for (int count : writes)
        ASSERT_EQ(count, 1) << c.describe() << " over " << size;
    }
  }
}

TEST(Collective, PiecesOfRunsJoinToTheWhole) {
  Rows source = {3, 4, 100, 3, 20, 7}, target = packed(source, 5);
  std::vector<uint8_t> in(500), whole(100), pieces(100);
  std::iota(in.begin(), in.end(), uint8_t(1));
  copyRows(in.data(), source, whole.data(), target);
  int64_t total = source.totalBytes();
  EXPECT_EQ(total, 84);
  for (int64_t begin = 0; begin < total; begin += 11)
    forEachRun(source, target, begin, std::min(begin + 11, total),
               [&](int64_t at, int64_t result, int64_t bytes) {
                 std::copy_n(&in[size_t(at)], bytes, &pieces[size_t(result)]);
               });
  EXPECT_EQ(whole, pieces);
  EXPECT_EQ(whole[5], in[3]);
  EXPECT_EQ(whole[5 + 7], in[23]);
  EXPECT_EQ(whole[5 + 21], in[103]);
  EXPECT_EQ(whole[4], 0);
  EXPECT_EQ(whole[5 + 84], 0);
}

TEST(Collective, AgreementLooksAtWhatMatters) {
  Collective a = Collective::flat(CollectiveKind::AllReduce, nullptr, nullptr,
                                  8, DYNA_ELEMENT_F32);
  Collective b = a;
  EXPECT_TRUE(a.agreesWith(b));
  b.reduction = DYNA_REDUCE_MAX;
  EXPECT_FALSE(a.agreesWith(b));
  b = a, b.element = DYNA_ELEMENT_I32;
  EXPECT_FALSE(a.agreesWith(b));
  b = a, b.first = 9;
  EXPECT_FALSE(a.agreesWith(b));
  b = a, b.kind = CollectiveKind::AllGather;
  EXPECT_FALSE(a.agreesWith(b));
  a.kind = CollectiveKind::AllGather, b.reduction = DYNA_REDUCE_MAX;
  EXPECT_TRUE(a.agreesWith(b));
}
