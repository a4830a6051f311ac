//===- LinearBytesTest.cpp - Sizes linear in tokens and segments ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/load/LinearBytes.h"
#include "runtime/base/load/TokenPartBytes.h"

#include <gtest/gtest.h>

using namespace dyna;

namespace {

TEST(LinearBytesTest, countsAreRoundedUp) {
  EXPECT_EQ(dyna_round_rows(0), 0);
  EXPECT_EQ(dyna_round_rows(1), 32);
  EXPECT_EQ(dyna_round_rows(32), 32);
  EXPECT_EQ(dyna_round_rows(33), 64);
  EXPECT_EQ(dyna_align_block(0), 0);
  EXPECT_EQ(dyna_align_block(1), 64);
  EXPECT_EQ(dyna_align_block(64), 64);
  LinearBytes bytes{1000000, 10000, 100, 7};
  EXPECT_EQ(bytes.at({1, 33, 65}), 32 * 1000000 + 64 * 10000 + 96 * 100 + 7);
  EXPECT_EQ(bytes.at({0, 0, 0}), 7);
}

TEST(LinearBytesTest, largeSizesStayTheLargest) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ((LinearBytes{INT64_C(1) << 40, 0, 0, 0}.at({1 << 24, 0, 0})), most);
  EXPECT_EQ((LinearBytes{INT64_C(1) << 38, 0, 0, -1}.at({1 << 24, 0, 0})),
            (INT64_C(1) << 62) - 1);
  EXPECT_EQ((LinearBytes{most, most, most, most}.at({1 << 24, 1 << 24, 1})),
            most);
}

TEST(LinearBytesTest, formulasAreComparedAndWritten) {
  LinearBytes a{1, 2, 3, 4}, b{2, 1, 3, 5};
  EXPECT_FALSE(a.isAtMost(b));
  EXPECT_FALSE(b.isAtMost(a));
  EXPECT_TRUE(a.isAtMost(a.upperBound(b)));
  EXPECT_EQ(a.upperBound(b), (LinearBytes{2, 2, 3, 5}));
  EXPECT_EQ(a + b, (LinearBytes{3, 3, 6, 9}));
  EXPECT_NE(a, b);
  EXPECT_EQ(a.str(), "1*Tq + 2*Tkv + 3*S + 4");
  EXPECT_EQ((LinearBytes{1536, 0, 0, 64}.str()), "1536*Tq + 64");
  EXPECT_EQ(LinearBytes().str(), "0");
}

/// `ofRows` does not round. The load has more keys than queries.
TEST(LinearBytesTest, rowsOfALoadAreSentWithoutRounding) {
  const Load load{3, 70, 2};
  EXPECT_EQ((LinearBytes{5, 7, 11, 1000}.ofRows(load)),
            3 * 5 + 70 * 7 + 2 * 11);
  EXPECT_EQ((LinearBytes{5, 7, 11, 1000}.at(load)),
            32 * 5 + 96 * 7 + 32 * 11 + 1000);
}

/// The least with which so many tokens have room for each rank's part, in whole blocks.
TEST(LinearBytesTest, partsOfTokensHaveRoom) {
  for (int64_t ranks = 1; ranks <= 40; ++ranks)
    for (int64_t rowBytes : {1, 2, 4, 6, 10, 63, 64, 96, 1000}) {
      const int64_t perToken = tokenPartBytes(rowBytes, ranks);
      auto suffices = [&](int64_t bytes) {
        for (int64_t tokens : {32, 64, 320}) {
          // What the first rank has of them.
          int64_t rows = 0;
          for (int64_t block = 0; block < tokens; block += 32)
            for (int64_t row = 0; row < 32; row += ranks)
              ++rows;
          if (bytes * tokens < rows * rowBytes || bytes * tokens % 64 != 0)
            return false;
        }
        return true;
      };
      EXPECT_TRUE(suffices(perToken)) << ranks << " ranks, " << rowBytes;
      EXPECT_FALSE(suffices(perToken - 1) || suffices(perToken - 2))
          << ranks << " ranks, " << rowBytes;
    }
}

} // namespace
