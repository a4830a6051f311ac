//===- WeightFormsTest.cpp - Which form a weight has ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/WeightForms.h"

#include <gtest/gtest.h>

using namespace dyna;

namespace {

constexpr int64_t kRows = 200, kColumns = 130, kWeights = kRows * kColumns;

/// The first `survivors` weights survive.
std::vector<uint8_t> maskOf(int64_t survivors) {
  std::vector<uint8_t> mask(kWeights);
  std::fill_n(mask.begin(), survivors, 1);
  return mask;
}

Status choose(WeightForms &forms, int parameter, int64_t survivors,
              double sparseFrom) {
  const std::vector<uint8_t> mask = maskOf(survivors);
  return forms.choose(parameter, {kRows, kColumns, mask.data(), 4}, sparseFrom);
}

TEST(WeightForms, ShareOfZerosDecides) {
  WeightForms forms(3);
  EXPECT_EQ(forms.find(1), nullptr);
  for (auto [survivors, isSparse] : {std::pair(kWeights, false),
                                     {kWeights * 2 / 5 + 1, false},
                                     {kWeights * 2 / 5, true},
                                     {kWeights / 10, true},
                                     {int64_t(0), true},
                                     {kWeights / 2, false}}) {
    ASSERT_TRUE(choose(forms, 1, survivors, 0.6).isOk());
    const dyna_sparse_form *form = forms.find(1);
    ASSERT_EQ(form != nullptr, isSparse) << survivors;
    EXPECT_EQ(forms.count(), isSparse);
    if (!form) {
      EXPECT_EQ(forms.bytes(), 0);
      continue;
    }
    EXPECT_EQ(form->weight.rows, kRows);
    EXPECT_EQ(form->weight.columns, kColumns);
    EXPECT_EQ(form->weight.survivors, survivors);
    // Four bytes of index and four of values; tiles are 2 x 2 in each of two sides.
    const int64_t tiles = 2 * (4 * (8 + 2 * DYNA_SPARSE_TILE) + 8);
    EXPECT_NEAR(static_cast<double>(forms.bytes()),
                static_cast<double>(8 * survivors + tiles), 8);
  }
  EXPECT_EQ(forms.find(0), nullptr);
  EXPECT_EQ(forms.find(2), nullptr);
}

// Whatever the share is: a weight without zeros has nothing to skip.
TEST(WeightForms, WithoutZerosAWeightIsDense) {
  WeightForms forms(1);
  ASSERT_TRUE(choose(forms, 0, kWeights, 0).isOk());
  EXPECT_EQ(forms.find(0), nullptr);
  ASSERT_TRUE(choose(forms, 0, kWeights - 1, 0).isOk());
  EXPECT_NE(forms.find(0), nullptr);
  ASSERT_TRUE(choose(forms, 0, 1, 1).isOk());
  EXPECT_EQ(forms.find(0), nullptr);
}

TEST(WeightForms, EveryTypeHasACrossing) {
  for (plan::ElementType type : {plan::F64, plan::F32, plan::BF16}) {
    EXPECT_GT(sparseCrossing(type), 0.5);
    EXPECT_LT(sparseCrossing(type), 1);
  }
}

} // namespace
