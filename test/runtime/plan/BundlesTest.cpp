//===- BundlesTest.cpp - Samples whose slices share a store ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/Bundles.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace dyna;

namespace {

/// Samples of random lengths in random slices, each in micro-batches of its own choice.
plan::Plan randomPlan(std::mt19937 &random) {
  plan::Plan plan;
  plan.microBatches.resize(1 + random() % 9);
  const size_t samples = random() % 7;
  for (size_t sample = 0; sample < samples; ++sample) {
    int64_t begin = 0;
    for (plan::MicroBatch &microBatch : plan.microBatches) {
      if (random() % 3 != 0)
        continue;
      const auto length = static_cast<int64_t>(1 + random() % 5);
      microBatch.segments.push_back(
          {static_cast<int64_t>(sample), begin, length});
      begin += length;
    }
  }
  return plan;
}

/// Sets of micro-batches that a chain of shared sliced samples joins, by brute force.
std::map<int, std::set<int>> bundlesOf(const plan::Plan &plan) {
  std::map<int64_t, std::set<int>> of; // micro-batches of a sample
  for (int m = 0; m < plan.microBatchCount(); ++m)
    for (const plan::Segment &segment : plan.microBatches[m].segments)
      of[segment.sample].insert(m);
  std::vector<std::set<int>> sets;
  for (const auto &[sample, list] : of)
    if (list.size() > 1)
      sets.push_back(list);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t a = 0; a < sets.size() && !changed; ++a)
      for (size_t b = a + 1; b < sets.size() && !changed; ++b)
        for (int m : sets[b])
          if (sets[a].count(m)) {
            sets[a].insert(sets[b].begin(), sets[b].end());
            sets.erase(sets.begin() + b);
            changed = true;
            break;
          }
  }
  std::map<int, std::set<int>> bundles;
  for (const std::set<int> &set : sets)
    bundles[*set.begin()] = set;
  return bundles;
}

TEST(BundlesTest, EqualBruteForce) {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const plan::Plan plan = randomPlan(random);
    std::vector<int> all(plan.microBatches.size());
    std::iota(all.begin(), all.end(), 0);
    const Bundles bundles(plan, all);
    const auto expected = bundlesOf(plan);
    std::map<int, int> bundleOf;
    for (const auto &[first, members] : expected)
      for (int m : members)
        bundleOf[m] = first;
    const std::vector<int> previous = bundles.previous(all);
    EXPECT_EQ(previous.empty(), expected.empty());
    for (int m : all) {
      const BundlePart &part = bundles.of(m);
      ASSERT_EQ(part.bundle, bundleOf.count(m) ? bundleOf[m] : -1);
      if (part.bundle < 0)
        continue;
      const std::set<int> &members = expected.at(part.bundle);
      EXPECT_EQ(part.last, *members.rbegin());
      auto self = members.find(m);
      EXPECT_EQ(previous[m], self == members.begin() ? -1 : *std::prev(self));
    }
  }
}

/// Every token of a sliced sample has a row of its own, the same in all its slices.
TEST(BundlesTest, RowsOfTheStoreAreThoseOfTokens) {
  std::mt19937 random(4);
  for (int round = 0; round < 3000; ++round) {
    const plan::Plan plan = randomPlan(random);
    std::vector<int> all(plan.microBatches.size());
    std::iota(all.begin(), all.end(), 0);
    const Bundles bundles(plan, all);
    std::map<int64_t, int> slices;
    for (const plan::MicroBatch &microBatch : plan.microBatches)
      for (const plan::Segment &segment : microBatch.segments)
        ++slices[segment.sample];
    std::map<int, std::set<int64_t>> used; // rows, by bundle
    std::map<int64_t, int64_t> rowOf;      // of the first token, by sample
    for (int m : all) {
      const BundlePart &part = bundles.of(m);
      const auto &segments = plan.microBatches[m].segments;
      for (size_t s = 0; s < segments.size(); ++s) {
        const int64_t row = part.bundle < 0 ? -1 : part.storeRows[s];
        ASSERT_EQ(row >= 0, slices[segments[s].sample] > 1);
        if (row < 0)
          continue;
        EXPECT_EQ(rowOf.try_emplace(segments[s].sample, row).first->second,
                  row);
        for (int64_t token = 0; token < segments[s].length; ++token)
          EXPECT_TRUE(
              used[part.bundle].insert(row + segments[s].begin + token).second);
      }
    }
    for (int m : all)
      if (const BundlePart &part = bundles.of(m); part.bundle >= 0) {
        const std::set<int64_t> &rows = used[part.bundle];
        EXPECT_EQ(static_cast<int64_t>(rows.size()), part.rows);
        EXPECT_EQ(*rows.begin(), 0);
        EXPECT_EQ(*rows.rbegin(), part.rows - 1);
      }
  }
}

TEST(BundlesTest, CountsAreThoseOfSlicedSamples) {
  std::mt19937 random(5);
  int64_t counted = 0;
  for (int round = 0; round < 500; ++round) {
    const plan::Plan plan = randomPlan(random);
    std::map<int64_t, int64_t> slices;
    for (const plan::MicroBatch &microBatch : plan.microBatches) {
      int64_t tokens = 0, context = 0;
      for (const plan::Segment &segment : microBatch.segments) {
        ++slices[segment.sample];
        tokens += segment.length;
        context += segment.begin;
      }
      const TraceTokens told = tokensOf(microBatch);
      EXPECT_EQ(told.samples, static_cast<int64_t>(microBatch.segments.size()));
      EXPECT_EQ(told.sample, microBatch.segments.size() == 1
                                 ? microBatch.segments[0].sample
                                 : -1);
      EXPECT_EQ(told.tokens, tokens);
      EXPECT_EQ(told.context, context);
    }
    const SliceCount count = countSlices(plan);
    int64_t samples = 0, parts = 0;
    for (const auto &[sample, number] : slices)
      if (number > 1) {
        ++samples;
        parts += number;
      }
    EXPECT_EQ(count.samples, samples);
    EXPECT_EQ(count.slices, parts);
    counted += parts;
  }
  EXPECT_GT(counted, 1000);
}

TEST(BundlesTest, WholeSamplesHaveNone) {
  plan::Plan plan;
  plan.microBatches = {{{{0, 0, 5}, {1, 0, 3}}}, {{{2, 0, 0}}}};
  EXPECT_TRUE(findBundles(plan, {0, 1}).empty());
  EXPECT_TRUE(findBundles(plan, {0, 1}).previous({0, 1}).empty());
  EXPECT_EQ(findBundles(plan, {0, 1}).of(0).bundle, -1);
}

/// Micro-batches of two replicas keep the plan's numbers.
TEST(BundlesTest, NumbersAreThoseOfThePlan) {
  plan::Plan plan;
  plan.microBatches = {{{{0, 0, 5}}, 0},
                       {{{1, 0, 3}}, 1},
                       {{{0, 5, 2}}, 0},
                       {{{1, 3, 9}, {2, 0, 4}}, 1}};
  const Bundles second = findBundles(plan, {1, 3});
  EXPECT_EQ(second.of(3).bundle, 1);
  EXPECT_EQ(second.of(3).rows, 12);
  EXPECT_EQ(second.of(3).before, std::vector<int>{1});
  EXPECT_EQ(second.of(1).behind, std::vector<int>{3});
  EXPECT_EQ(second.of(3).storeRows, (std::vector<int64_t>{0, -1}));
  EXPECT_EQ(second.previous({1, 3}), (std::vector<int>{-1, 0}));
}

} // namespace
