//===- RebalanceFlagTest.cpp - Values of --rebalance ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/RebalanceFlag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace dyna;
using testing::HasSubstr;

namespace {

TEST(RebalanceFlagTest, ReadsPoliciesAndNumbers) {
  const auto time = parseRebalanceFlag("time");
  ASSERT_TRUE(time.isOk()) << time.status().message();
  EXPECT_EQ(time->policy, BalancePolicy::Time);
  EXPECT_EQ(time->options.measuredSteps, MoveOptions().measuredSteps);
  EXPECT_EQ(time->test.margin, MoveTest().margin);
  EXPECT_EQ(parseRebalanceFlag("parameters")->policy,
            BalancePolicy::Parameters);
  const auto all =
      parseRebalanceFlag("diffusion,slower=0.05,every=10,least=0.25,margin=-1");
  ASSERT_TRUE(all.isOk()) << all.status().message();
  EXPECT_EQ(all->policy, BalancePolicy::Diffusion);
  EXPECT_EQ(all->options.measuredSteps, 10);
  EXPECT_EQ(all->options.slowerShare, 0.05);
  EXPECT_EQ(all->test.margin, -1);
  EXPECT_EQ(all->test.leastShare, 0.25);
}

TEST(RebalanceFlagTest, RefusesOthers) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "'': begin with one of time, parameters, diffusion"},
      {"fast", "'fast': begin with one of"},
      {"algorithm2", "'algorithm2': begin with one of"},
      {"every=5", "'every=5': begin with one of"},
      {"time,", "'': there are every, margin, least and slower"},
      {"time,often=3", "'often=3': there are every, margin, least and slower"},
      {"time,every=0", "'every=0': give a number of steps from 1 to 1000000"},
      {"time,every=2.5", "'every=2.5': give a number of steps"},
      {"time,every", "'every': give a number of steps"},
      {"time,every=99999999999", "give a number of steps"},
      {"time,margin=-2", "'margin=-2': give a number from -1 to 1000"},
      {"time,margin=nan", "'margin=nan': give a number from -1 to 1000"},
      {"time,least=2", "'least=2': give a number from 0 to 1"},
      {"time,slower=x", "'slower=x': give a number from 0 to 1000"},
      {"time,every=2,every=3", "'every=3': every is given twice"}};
  for (const auto &[text, words] : cases) {
    const auto flag = parseRebalanceFlag(text);
    ASSERT_FALSE(flag.isOk()) << text;
    EXPECT_EQ(flag.status().code(), StatusCode::InvalidArgument);
    EXPECT_THAT(flag.status().message(), HasSubstr("--rebalance: "));
    EXPECT_THAT(flag.status().message(), HasSubstr(words));
  }
}

} // namespace
