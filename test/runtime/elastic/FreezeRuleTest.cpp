//===- FreezeRuleTest.cpp - How many layers freeze ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/freeze/FreezeRule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace dyna;

namespace {

TEST(FreezeRuleTest, ShareAndSmallestNormLimitIt) {
  const std::vector<double> norms = {5, 4, 3, 2, 1, 1, 2, 3, 4, 5};
  EXPECT_EQ(frozenNext(norms, 0, 0.2), 2);  // a fifth of ten
  EXPECT_EQ(frozenNext(norms, 2, 0.2), 3);  // a fifth of eight, rounded down
  EXPECT_EQ(frozenNext(norms, 0, 0.99), 5); // up to the first smallest norm
  EXPECT_EQ(frozenNext(norms, 5, 0.99), 6);
  EXPECT_EQ(frozenNext(norms, 6, 0.5), 7);
  EXPECT_EQ(frozenNext(norms, 9, 0.99), 9); // one layer trains
  EXPECT_EQ(frozenNext({3, 2, 1}, 0, 0.999999), 2);
  EXPECT_EQ(frozenNext({1, 2, 3, 4, 5}, 0, 0.2), 1);
  EXPECT_EQ(frozenNext({1, 2, 3, 4, 5}, 0, 0.19), 0);
}

/// Tries each number of layers: within the share, and with no smaller norm before its last
/// layer or behind it.
TEST(FreezeRuleTest, IsTheLargestNumberThatTheRuleAllows) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int layers = 1 + static_cast<int>(random() % 12);
    const int frozen = static_cast<int>(random() % layers);
    const double alpha = (1 + random() % 98) / 100.0;
    std::vector<double> norms;
    for (int l = 0; l < layers; ++l)
      norms.push_back(random() % 4);
    int expected = frozen;
    for (int next = frozen + 1; next < layers; ++next) {
      bool allowed = 100.0 * (next - frozen) <=
                     std::round(100 * alpha) * (layers - frozen);
      // No layer that would freeze lies behind the one with the smallest norm.
      for (int l = frozen; l + 1 < next; ++l) {
        bool isFirstSmallest = true;
        for (int other = frozen; other < layers; ++other)
          isFirstSmallest &=
              other < l ? norms[other] > norms[l] : norms[other] >= norms[l];
        allowed &= !isFirstSmallest;
      }
      if (allowed)
        expected = next;
    }
    EXPECT_EQ(frozenNext(norms, frozen, alpha), expected)
        << layers << " " << frozen << " " << alpha;
  }
}

} // namespace
