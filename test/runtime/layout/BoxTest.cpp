//===- BoxTest.cpp - Tests of boxes --------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/layout/Box.h"

#include <gtest/gtest.h>

using namespace dyna;

namespace {

TEST(Box, IntersectionIsWhatBothHold) {
  Box a{{0, 0}, {2, 4}}, b{{1, 2}, {3, 4}};
  EXPECT_EQ(intersect(a, b), (Box{{1, 2}, {1, 2}}));
  EXPECT_EQ(intersect(b, a), intersect(a, b));
  EXPECT_EQ(intersect(a, b).relativeTo(b), (Box{{0, 0}, {1, 2}}));
  EXPECT_EQ(intersect(a, b).relativeTo(b).within(b), intersect(a, b));
  EXPECT_EQ(intersect(a, b).volume(), 2);
  EXPECT_EQ(b.describe(), "[1:4, 2:6]");
}

TEST(Box, MissingEachOtherIsEmpty) {
  Box a{{0, 0}, {2, 2}}, beside{{2, 0}, {2, 2}}, far{{0, 7}, {2, 2}};
  EXPECT_TRUE(intersect(a, beside).isEmpty());
  EXPECT_TRUE(intersect(a, far).isEmpty());
  EXPECT_EQ(intersect(a, far).size[1], 0);
  EXPECT_FALSE(a.isEmpty());
}

TEST(Box, ContainsPartsOfItselfAndNothingElse) {
  Box a{{1, 1}, {3, 3}};
  EXPECT_TRUE(a.contains(a));
  EXPECT_TRUE(a.contains({{2, 1}, {2, 1}}));
  EXPECT_FALSE(a.contains({{0, 1}, {2, 1}}));
  EXPECT_FALSE(a.contains({{3, 3}, {2, 1}}));
  // Nothing is in everything, wherever it is written down.
  EXPECT_TRUE(a.contains({{9, 9}, {0, 4}}));
}

TEST(Box, EmptyBoxesAreEqual) {
  EXPECT_EQ((Box{{0, 0}, {0, 4}}), (Box{{5, 1}, {3, 0}}));
  EXPECT_NE((Box{{0, 0}, {0, 4}}), (Box{{0, 0}, {1, 4}}));
  EXPECT_NE((Box{{0}, {0}}), (Box{{0, 0}, {0, 0}}));
}

TEST(Box, OfAScalarHoldsOneElement) {
  Box scalar = Box::whole({});
  EXPECT_EQ(scalar.volume(), 1);
  EXPECT_FALSE(scalar.isEmpty());
  EXPECT_EQ(intersect(scalar, scalar), scalar);
}

} // namespace
