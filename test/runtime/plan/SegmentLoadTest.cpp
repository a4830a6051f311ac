//===- SegmentLoadTest.cpp - Loads of segments and micro-batches ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/SegmentLoad.h"

#include "runtime/abi/Random.h"

#include <gtest/gtest.h>

using namespace dyna;

namespace {

/// Counts a stream's pairs one by one.
Load countPairs(const plan::MicroBatch &microBatch, int stream) {
  Load load;
  for (const plan::Segment &segment : microBatch.segments) {
    if (segment.stream != stream)
      continue;
    ++load.segments;
    const int64_t ownEnd = segment.begin + segment.length;
    const int64_t keyEnd =
        segment.keyEnd == plan::Segment::ownEnd ? ownEnd : segment.keyEnd;
    // Keys of a stream end with the queries, and earlier ones lie in a store.
    const bool isOwn = segment.keyStream == stream;
    const int64_t keys = keyEnd - segment.keyBegin;
    for (int64_t key = 0; key < keys; ++key)
      ++(isOwn && key >= segment.length ? load.context : load.keys);
    for (int64_t query = segment.begin; query < ownEnd; ++query) {
      ++load.queries;
      for (int64_t key = segment.keyBegin; key < keyEnd; ++key) {
        ++load.pairs;
        load.causalPairs += segment.keyStream != stream || key <= query;
      }
    }
  }
  return load;
}

TEST(SegmentLoadTest, CountsPairsOfEveryStream) {
  uint64_t counter = 0;
  auto below = [&](int64_t bound) {
    return static_cast<int64_t>(dyna_mix64(++counter) %
                                static_cast<uint64_t>(bound));
  };
  for (int round = 0; round < 2000; ++round) {
    plan::MicroBatch microBatch;
    for (int64_t count = below(5); count > 0; --count) {
      plan::Segment segment = {below(9), below(3) ? 0 : below(12), below(12)};
      segment.stream = static_cast<int32_t>(below(2));
      // Its own stream, or cross-attention.
      segment.keyStream =
          static_cast<int32_t>(below(3) ? segment.stream : below(2));
      if (below(2)) {
        segment.keyBegin = below(6);
        segment.keyEnd = segment.keyBegin + below(20);
      }
      microBatch.segments.push_back(segment);
    }
    for (int stream : {0, 1, 2})
      ASSERT_EQ(loadOf(microBatch, stream), countPairs(microBatch, stream));
  }
}

/// Of an encoder with 5 tokens and a decoder with 3.
TEST(SegmentLoadTest, CrossAttentionHasKeysOfTheOtherStream) {
  plan::Segment cross = {0, 0, 3};
  cross.stream = 1;
  cross.keyStream = 0;
  cross.keyEnd = 5;
  EXPECT_EQ(loadOf(cross), (Load{3, 5, 1, 15, 15, 0}));
  plan::Segment own = {0, 0, 3};
  own.stream = own.keyStream = 1;
  EXPECT_EQ(loadOf(own), (Load{3, 3, 1, 9, 6, 0}));
}

/// Without a word about keys, a part of a sample looks at its earlier tokens too.
TEST(SegmentLoadTest, SlicesLookAtEarlierTokens) {
  EXPECT_EQ(loadOf(plan::Segment{0, 10, 4}), (Load{4, 4, 1, 56, 50, 0, 10}));
  EXPECT_EQ(loadOf(plan::Segment{0, 0, 4}), loadOfSample(4));
}

} // namespace
