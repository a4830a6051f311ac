//===- LeastNumberTest.cpp - Bisection over numbers -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/LeastNumber.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace dyna;

namespace {

/// Every bit counts: the result is the number itself, not one beside it.
TEST(LeastNumberTest, IsExact) {
  const double largest = std::numeric_limits<double>::max();
  for (double wanted : {0.0, 5e-324, 1e-310, 0.1, 1.0, std::nextafter(1.0, 2.0),
                        3e8, largest}) {
    int calls = 0;
    EXPECT_EQ(leastNumber(0, largest,
                          [&](double value) {
                            ++calls;
                            return value >= wanted;
                          }),
              wanted);
    EXPECT_LE(calls, 64);
  }
}

TEST(LeastNumberTest, StaysWithinItsBounds) {
  EXPECT_EQ(leastNumber(2, 3, [](double) { return true; }), 2);
  EXPECT_EQ(leastNumber(2, 3, [](double) { return false; }), 3);
  EXPECT_EQ(leastNumber(2, 2, [](double) { return false; }), 2);
}

} // namespace
