//===- RandomTest.cpp - The random numbers, written twice -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "test/reference/Formulas.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir::dyna::reference;

TEST(RandomTest, DropoutIsTheAbisDropout) {
  Context context;
  context.seed = 11;
  context.step = 12345678901;
  context.layer = 7;
  int64_t dropped = 0, count = 0;
  for (uint64_t instance = 0; instance < 3; ++instance)
    for (uint64_t sample = 0; sample < 5; ++sample)
      for (uint64_t position = 0; position < 5; ++position) {
        uint64_t op = dyna_random_op_key(context.seed, context.step,
                                         context.layer, instance);
        uint64_t row = dyna_random_row_key(op, sample, position);
        for (uint32_t feature = 0; feature < 50; ++feature) {
          bool wanted =
              dyna_random_element(row, feature) < dyna_dropout_threshold(0.3);
          EXPECT_EQ(
              isDropped(context, instance, 0.3, sample, position, feature),
              wanted);
          dropped += wanted;
          ++count;
        }
      }
  // Four standard deviations of a fair draw.
  double share = static_cast<double>(dropped) / static_cast<double>(count);
  EXPECT_NEAR(share, 0.3,
              4 * std::sqrt(0.3 * 0.7 / static_cast<double>(count)));
}

TEST(RandomTest, InitialValuesAreTheAbisNormals) {
  Tensor tensor = initialParameter("h.0.attn.q.weight", {100, 41}, 0.5, 2.0, 9);
  uint64_t key = dyna_parameter_key(9, "h.0.attn.q.weight");
  double mean = 0, square = 0;
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    double u, v;
    dyna_parameter_uniforms(key, i, &u, &v);
    double normal =
        std::sqrt(-2 * std::log(u)) * std::cos(2 * std::acos(-1.0) * v);
    EXPECT_NEAR(tensor.values[i], 0.5 + 2 * normal, 1e-13);
    mean += normal / 4100;
    square += normal * normal / 4100;
  }
  EXPECT_NEAR(mean, 0, 4 / std::sqrt(4100.0));
  EXPECT_NEAR(square, 1, 4 * std::sqrt(2 / 4100.0));
}

TEST(RandomTest, RoundsToNearestEven) {
  EXPECT_EQ(roundToBfloat16(1.0), 1.0);
  EXPECT_EQ(roundToBfloat16(1.0 + 1.0 / 256), 1.0);             // tie, down
  EXPECT_EQ(roundToBfloat16(1.0 + 3.0 / 256), 1.0 + 4.0 / 256); // tie, up
  EXPECT_EQ(roundToBfloat16(1.0 + 1.1 / 256), 1.0 + 2.0 / 256);
  EXPECT_EQ(roundToBfloat16(-3e38), -roundToBfloat16(3e38));
  EXPECT_TRUE(std::isinf(roundToBfloat16(3.4e38)));
}
