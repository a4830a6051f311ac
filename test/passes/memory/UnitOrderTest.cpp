//===- UnitOrderTest.cpp - A list that knows who stands in front ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/sweep/UnitOrder.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <random>

using namespace mlir::dyna;

namespace {

void expectSame(const UnitOrder &order, const std::vector<int> &expected) {
  ASSERT_EQ(order.all(), expected);
  for (size_t at = 1; at < expected.size(); ++at)
    ASSERT_TRUE(order.isBefore(expected[at - 1], expected[at])) << at;
}

TEST(UnitOrder, MovesAsAPlainListDoes) {
  std::mt19937 random(3);
  int64_t steps = 0;
  UnitOrder order(40, steps);
  std::vector<int> expected = order.all();
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> moved;
    for (size_t count = 1 + random() % 5; moved.size() < count;) {
      size_t at = random() % expected.size();
      moved.push_back(expected[at]);
      expected.erase(expected.begin() + at);
      order.remove(moved.back());
    }
    size_t at = random() % expected.size();
    order.insertBehind(expected[at], moved);
    expected.insert(expected.begin() + at + 1, moved.begin(), moved.end());
    expectSame(order, expected);
  }
}

TEST(UnitOrder, RoomIsFoundWhereAllGoToOnePlace) {
  // Each comes directly behind the first: the room between two halves each
  // time. All the same about log n steps per unit.
  const int count = 20000;
  int64_t steps = 0;
  UnitOrder order(count, steps);
  std::vector<int> expected = {0};
  for (int unit = 1; unit < count; ++unit) {
    order.remove(unit);
    order.insertBehind(0, {unit});
    expected.push_back(unit);
  }
  std::reverse(expected.begin() + 1, expected.end());
  expectSame(order, expected);
  EXPECT_GT(steps, 0);
  EXPECT_LT(steps, int64_t(count) * 64);
}

TEST(UnitOrder, TheFirstGoesBackToTheFront) {
  int64_t steps = 0;
  UnitOrder order(3, steps);
  int front = order.remove(0);
  order.insertBehind(front, {0});
  expectSame(order, {0, 1, 2});
}

} // namespace
