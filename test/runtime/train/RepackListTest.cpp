//===- RepackListTest.cpp - Lists of --repack, right and wrong ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/RepackList.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

TEST(RepackListTest, ListsAreParsedAndDescribed) {
  auto list = parseRepacks(" 6@3000;4 @ 5000 ; dp=2,pp=2@7000;");
  ASSERT_TRUE(list.isOk()) << list.status().message();
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[0].ranks, 6);
  EXPECT_EQ((*list)[0].step, 3000);
  EXPECT_EQ((*list)[1].ranks, 4);
  EXPECT_EQ((*list)[2].ranks, 0);
  EXPECT_EQ((*list)[2].strategy, "dp=2,pp=2");
  const std::string text = describeRepacks(*list);
  EXPECT_EQ(text, "6@3000; 4@5000; dp=2,pp=2@7000");
  EXPECT_EQ(describeRepacks(*parseRepacks(text)), text);
  EXPECT_TRUE(parseRepacks("")->empty());
}

TEST(RepackListTest, GoalsAreParsedAndDescribed) {
  const auto list = *parseRepacks("auto; 4@5;auto=per-rank @ 7");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].step, Repack::always);
  EXPECT_EQ(list[0].goal, PackGoal::Fewest);
  EXPECT_FALSE(list[1].goal.has_value());
  EXPECT_EQ(list[2].goal, PackGoal::PerRank);
  EXPECT_EQ(list[2].step, 7);
  const std::string text = describeRepacks(list);
  EXPECT_EQ(text, "auto=fewest; 4@5; auto=per-rank@7");
  EXPECT_EQ(describeRepacks(*parseRepacks(text)), text);
  EXPECT_TRUE(checkRepackSteps(*parseRepacks("auto"), 100).isOk());
}

TEST(RepackListTest, MistakesNameWhatIsExpected) {
  const std::pair<const char *, const char *> cases[] = {
      {"6", "expects entries RANKS@STEP or STRATEGY@STEP"},
      {"@5", "but got '@5'"},
      {";", "but got ''"},
      {"6@3; ;4@5", "but got ''"},
      {"6@", "--repack 6@STEP expects a whole number from 1"},
      {"6@0", "--repack 6@STEP expects a whole number from 1"},
      {"6@-1", "but got '-1'"},
      {"6@3x", "but got '3x'"},
      {"0@3", "--repack RANKS@STEP expects a whole number from 1"},
      {"99999999999@3", "--repack RANKS@STEP expects"},
      {"auto=most@3", "--repack auto=most: 'most' is no goal of packing"},
      {"6@3; auto", "'auto' has no step and is not the first entry"},
      {"auto@0", "--repack auto@STEP expects a whole number from 1"},
      {"6@5; 4@3", "'4@3' does not come after '6@5'"},
      {"6@5; 4@5", "in the order of their steps, one for each"}};
  for (const auto &[text, words] : cases)
    EXPECT_THAT(parseRepacks(text).status().message(), HasSubstr(words))
        << text;
}

TEST(RepackListTest, StepsThatAreDoneAreInThePast) {
  const auto list = *parseRepacks("6@3; 4@5");
  EXPECT_TRUE(checkRepackSteps(list, 3).isOk());
  EXPECT_THAT(
      checkRepackSteps(list, 4).message(),
      HasSubstr("--repack 6@3 is in the past: the run has done 4 steps, "
                "so give entries from @4 on"));
}

TEST(RepackListTest, RanksKeepReplicasAndTensorDegree) {
  const std::tuple<const char *, int, const char *> cases[] = {
      {"pp=8", 6, "dp=1,tp=1,pp=6"},
      {"dp=4,zero=1", 2, "dp=2,tp=1,pp=1,zero=1"},
      {"dp=2,pp=4,layers=3+3+3+3", 6, "dp=2,tp=1,pp=3"},
      {"dp=4", 6, "dp=2,tp=1,pp=3"},
      {"named: tp=2,pp=2,sp=1", 8, "dp=1,tp=2,pp=4,sp=1"},
      {"dp=2,tp=2", 2, "dp=1,tp=2,pp=1"}};
  for (const auto &[now, ranks, expected] : cases) {
    auto packed = packStrategy(*parseStrategy(now), ranks, 12);
    ASSERT_TRUE(packed.isOk()) << packed.status().message();
    EXPECT_EQ(describeStrategy(*packed), expected);
    EXPECT_EQ(packed->ranks(), ranks);
  }
  EXPECT_THAT(
      packStrategy(*parseStrategy("tp=4"), 6, 12).status().message(),
      HasSubstr("6 ranks are no multiple of the tensor degree of 'dp=1,tp=4,"
                "pp=1': give a multiple of 4"));
  EXPECT_THAT(
      packStrategy(*parseStrategy("pp=4"), 8, 5).status().message(),
      HasSubstr("8 ranks have 8 stages (strategy 'dp=1,tp=1,pp=8'), but "
                "the model has 5 layers"));
}

} // namespace
