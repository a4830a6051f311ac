//===- InitializeTest.cpp - Initial values --------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/Initialize.h"
#include "runtime/abi/Random.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace dyna;

namespace {

TEST(InitializeTest, ValuesAreNormalWithTheGivenMoments) {
  plan::Parameter parameter;
  parameter.set_name("w");
  parameter.set_constant(3);
  parameter.set_normal_std(0.5);
  uint64_t key = dyna_parameter_key(1, "w");
  double sum = 0, squares = 0;
  int beyond = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    double z = (initialValue(parameter, key, i) - 3) / 0.5;
    sum += z;
    squares += z * z;
    beyond += std::abs(z) > 1.959964;
  }
  EXPECT_NEAR(sum / count, 0, 0.015);
  EXPECT_NEAR(squares / count, 1, 0.02);
  EXPECT_NEAR(beyond / double(count), 0.05, 0.004);
}

TEST(InitializeTest, SeedNameAndIndexDecide) {
  plan::Parameter parameter;
  parameter.set_normal_std(1);
  uint64_t a = dyna_parameter_key(1, "a"), b = dyna_parameter_key(1, "b");
  EXPECT_NE(initialValue(parameter, a, 0), initialValue(parameter, a, 1));
  EXPECT_NE(initialValue(parameter, a, 0), initialValue(parameter, b, 0));
  EXPECT_NE(initialValue(parameter, a, 0),
            initialValue(parameter, dyna_parameter_key(2, "a"), 0));
  EXPECT_EQ(initialValue(parameter, a, 5), initialValue(parameter, a, 5));
}

// The definition, pinned: other implementations of it (golden files) must give
// the same numbers.
TEST(InitializeTest, PinnedValues) {
  plan::Parameter parameter;
  parameter.set_normal_std(0.02);
  uint64_t key = dyna_parameter_key(1, "wte");
  double u, v;
  dyna_parameter_uniforms(key, 7, &u, &v);
  EXPECT_DOUBLE_EQ(initialValue(parameter, key, 7),
                   0.02 * std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v));
  parameter.set_normal_std(0);
  parameter.set_constant(1);
  EXPECT_EQ(initialValue(parameter, key, 7), 1);
}

} // namespace
