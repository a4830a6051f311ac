//===- StatusTest.cpp - Errors as values ----------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/error/Status.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

using namespace dyna;

namespace {

StatusOr<std::unique_ptr<int>> makeNumber(int value) {
  if (value < 0)
    return Status::invalidArgument("negative");
  return std::make_unique<int>(value);
}

StatusOr<std::map<int, int>> makeMap(int key, int value) {
  DYNA_ASSIGN_OR_RETURN(std::unique_ptr<int> number, makeNumber(value));
  return std::map<int, int>{{key, *number}};
}

/// Into a Status, of two values and an old variable; counts what it reached.
Status addUp(int a, int b, int &sum, int &reached) {
  DYNA_ASSIGN_OR_RETURN(auto first, makeMap(1, a));
  ++reached;
  DYNA_ASSIGN_OR_RETURN(auto second, makeMap(2, b));
  ++reached;
  std::unique_ptr<int> number;
  for (int value : {first[1], second[2]}) {
    DYNA_ASSIGN_OR_RETURN(number, makeNumber(value));
    sum += *number;
  }
  return Status::ok();
}

StatusOr<int> halve(int value) {
  DYNA_RETURN_IF_ERROR(value % 2 ? Status::internal("odd") : Status::ok());
  return value / 2;
}

TEST(StatusTest, valuesAreAssigned) {
  int sum = 0, reached = 0;
  EXPECT_TRUE(addUp(3, 4, sum, reached).isOk());
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(reached, 2);
}

TEST(StatusTest, failuresAreReturnedAtOnce) {
  int sum = 0, reached = 0;
  Status status = addUp(3, -1, sum, reached);
  EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(status.message(), "negative");
  EXPECT_EQ(reached, 1);
  EXPECT_EQ(sum, 0);
  StatusOr<std::map<int, int>> map = makeMap(1, -1);
  ASSERT_FALSE(map.isOk());
  EXPECT_EQ(map.status().message(), "negative");
}

TEST(StatusTest, aStatusEndsFunctionsOfValues) {
  StatusOr<int> half = halve(4);
  ASSERT_TRUE(half.isOk());
  EXPECT_EQ(*half, 2);
  EXPECT_EQ(halve(3).status().code(), StatusCode::Internal);
}

} // namespace
