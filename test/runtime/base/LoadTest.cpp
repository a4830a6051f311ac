//===- LoadTest.cpp - The amount of work of layer functions ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/load/Load.h"
#include "runtime/abi/Kernels.h"

#include <gtest/gtest.h>

using namespace dyna;

namespace {

/// Counts the pairs of two ranges one by one.
Load countPairs(TokenRange queries, TokenRange keys, bool isOneStream) {
  Load load;
  load.segments = 1;
  // Of one stream, as many keys as there are queries pass the layers with these.
  for (int64_t key = keys.begin; key < keys.end(); ++key)
    ++(isOneStream && load.keys == queries.length ? load.context : load.keys);
  for (int64_t query = queries.begin; query < queries.end(); ++query) {
    ++load.queries;
    for (int64_t key = keys.begin; key < keys.end(); ++key) {
      ++load.pairs;
      load.causalPairs += !isOneStream || key <= query;
    }
  }
  return load;
}

void expectCounted(TokenRange queries, TokenRange keys, bool isOneStream) {
  EXPECT_EQ(loadOf(queries, keys, isOneStream),
            countPairs(queries, keys, isOneStream))
      << queries.length << " queries from " << queries.begin << ", "
      << keys.length << " keys from " << keys.begin << ", one stream "
      << isOneStream;
}

/// All ranges, wherever they overlap: slices with earlier keys, keys behind all queries,
/// no queries, and keys of another stream.
TEST(LoadTest, PairsAreThoseOfACount) {
  constexpr int64_t most = 6;
  for (int64_t begin = 0; begin <= most; ++begin)
    for (int64_t length = 0; length <= most; ++length)
      for (int64_t keyBegin = 0; keyBegin <= most; ++keyBegin)
        for (int64_t keyLength = 0; keyLength <= 2 * most; ++keyLength)
          for (bool isOneStream : {true, false})
            expectCounted({begin, length}, {keyBegin, keyLength}, isOneStream);
}

TEST(LoadTest, WholeSamplesLookAtThemselves) {
  for (int64_t tokens : {0, 1, 2, 31, 1000}) {
    const Load load = loadOfSample(tokens);
    EXPECT_EQ(load.queries, tokens);
    EXPECT_EQ(load.keys, tokens);
    EXPECT_EQ(load.segments, 1);
    EXPECT_EQ(load.pairs, tokens * tokens);
    EXPECT_EQ(load.causalPairs, tokens * (tokens + 1) / 2);
    EXPECT_EQ(load.targets, 0);
  }
}

/// However a sample is sliced, its queries, its keys and its causal pairs stay. Context and
/// other pairs do not: each slice reads the earlier tokens again, and none of the later ones.
TEST(LoadTest, SlicesAddUpToTheSample) {
  const Load whole = loadOfSample(12);
  for (unsigned cuts = 0; cuts < 1u << 11; ++cuts) {
    Load sum;
    int64_t begin = 0, context = 0;
    for (int64_t end = 1; end <= 12; ++end)
      if (end == 12 || (cuts >> (end - 1) & 1)) {
        sum += loadOf({begin, end - begin}, {0, end});
        context += begin;
        begin = end;
      }
    ASSERT_EQ(sum.queries, whole.queries);
    ASSERT_EQ(sum.causalPairs, whole.causalPairs);
    ASSERT_EQ(sum.keys, whole.keys);
    ASSERT_EQ(sum.context, context);
    ASSERT_EQ(sum.segments, __builtin_popcount(cuts) + 1);
    ASSERT_TRUE(cuts == 0 ? sum == whole : sum.pairs < whole.pairs);
  }
}

/// Kernels count what they do by `dyna_visible_pairs`: the last key is the last query's.
TEST(LoadTest, PairsAreThoseOfKernels) {
  for (int64_t earlier : {0, 1, 5, 64})
    for (int64_t length : {1, 2, 33}) {
      const Load load = loadOf({earlier, length}, {0, earlier + length});
      const dyna_segment segment = {0, 0, length, 0, earlier + length, earlier};
      EXPECT_EQ(load.pairs, dyna_visible_pairs(&segment, 0));
      EXPECT_EQ(load.causalPairs, dyna_visible_pairs(&segment, 1));
    }
}

TEST(LoadTest, LoadsAddUp) {
  const Load a = {1, 2, 3, 4, 5, 6}, b = {10, 20, 30, 40, 50, 60};
  EXPECT_EQ(a + b, (Load{11, 22, 33, 44, 55, 66}));
  EXPECT_EQ(a + b - a, b);
  EXPECT_EQ(times(a, 10), b);
  EXPECT_EQ(times(a, 3), a + a + a);
  Load other = a;
  for (int64_t Load::*count :
       {&Load::queries, &Load::keys, &Load::segments, &Load::pairs,
        &Load::causalPairs, &Load::targets}) {
    ++(other.*count);
    EXPECT_FALSE(other == a);
    --(other.*count);
  }
  EXPECT_TRUE(other == a);
}

} // namespace
