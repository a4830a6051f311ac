//===- ThinModelTest.cpp - The model that is profiled ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/profile/Profile.h"

#include "test/runtime/executor/TinyModel.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace dyna;

namespace {

TEST(ThinModelTest, KeepsBothEndsAndAFewBetween) {
  TinyOptions options;
  options.blocks = 5;
  auto whole = Model::create(tinyManifest(options));
  ASSERT_TRUE(whole.isOk()) << whole.status().message();
  const int between = whole->layers() - 2;
  for (int most : {1, 2, between, between + 3}) {
    auto thin = thinModel(*whole, most);
    ASSERT_TRUE(thin.isOk()) << thin.status().message();
    EXPECT_EQ(thin->layers(), std::min(most, between) + 2);
    EXPECT_EQ(thin->layer(0).name(), whole->layer(0).name());
    EXPECT_EQ(thin->layer(thin->layers() - 1).name(),
              whole->layer(whole->layers() - 1).name());
    // Functions are found by kind, of which none may move.
    EXPECT_EQ(thin->manifest().kinds_size(), whole->manifest().kinds_size());
    for (int l = 0; l < thin->layers(); ++l)
      for (int slot = 0; slot < thin->layer(l).parameters_size(); ++slot)
        EXPECT_GE(whole->findParameter(
                      thin->parameter(thin->layer(l).parameters(slot)).name()),
                  0);
    EXPECT_EQ(thin->hash() == whole->hash(), most >= between);
  }
}

} // namespace
