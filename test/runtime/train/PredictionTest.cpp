//===- PredictionTest.cpp - Predicted beside measured -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/Prediction.h"

#include <gtest/gtest.h>

using namespace dyna;

TEST(PredictionTest, ErrorsAreRelativeToWhatWasMeasured) {
  PredictionErrors errors;
  EXPECT_TRUE(errors.empty());
  EXPECT_EQ(errors.mean(), 0);
  EXPECT_EQ(errors.p95(), 0);
  errors.add(1, 2);   // 50 %
  errors.add(2.5, 2); // 25 %
  EXPECT_DOUBLE_EQ(errors.mean(), 0.375);
  EXPECT_DOUBLE_EQ(errors.p95(), 0.5);
  EXPECT_EQ(errors.describe("step", "steps"),
            "mean 37.5 %, p95 50.0 %, over 2 steps");
  PredictionErrors one;
  one.add(1, 2);
  EXPECT_EQ(one.describe("step", "steps"),
            "mean 50.0 %, p95 50.0 %, over 1 step");
}

TEST(PredictionTest, LongOnesWeighMore) {
  PredictionErrors errors;
  EXPECT_EQ(errors.weighted(), 0);
  errors.add(2, 1); // 1 of 1 s wrong
  errors.add(8, 9); // 1 of 9
  EXPECT_DOUBLE_EQ(errors.weighted(), 0.2);
}

TEST(PredictionTest, WhatNobodyPredictedDoesNotCount) {
  PredictionErrors errors;
  errors.add(0, 1);
  errors.add(1, 0);
  EXPECT_TRUE(errors.empty());
}

TEST(PredictionTest, NineteenOfTwentyAreBelow) {
  PredictionErrors errors;
  for (int i = 20; i > 0; --i) // 1 % to 20 %, the largest first
    errors.add(1 + 0.01 * i, 1);
  EXPECT_NEAR(errors.p95(), 0.19, 1e-12);
  errors.add(1.21, 1); // of 21, one may be above
  EXPECT_NEAR(errors.p95(), 0.20, 1e-12);
}
