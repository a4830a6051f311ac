//===- DropStepTest.cpp - Steps that a signal ends -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One rank is asked to stop at some point of some step. All ranks then have the
// parameters of the step before, bit for bit, and agree on which one that is.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/executor/StrategyRun.h"

#include <atomic>
#include <map>

using namespace dyna;
using namespace dyna::test;

namespace {

// Ranks are threads, and `stops` is told nothing: the first `asked` questions, of
// whichever rank, are answered with no. Later ones of that rank alone get a yes.
std::atomic<int64_t> asked{0};
thread_local bool isStopped = false;
std::atomic<bool> wasStopped{false};

bool stopsAtLast() {
  if (--asked == 0 && !wasStopped.exchange(true))
    isStopped = true;
  return isStopped;
}

class DropStepTest : public testing::TestWithParam<StrategyCase> {};

TEST_P(DropStepTest, LeavesTheStateOfTheStepBefore) {
  std::map<int, Outcome> whole;
  auto after = [&](int steps) -> const Outcome & {
    auto [known, isNew] = whole.try_emplace(steps);
    if (isNew) {
      StrategyCase test = GetParam();
      test.steps = steps;
      known->second = runStrategy(test);
    }
    return known->second;
  };
  std::map<size_t, int> ends;
  for (int64_t questions = 1; ends[3] == 0; questions += 5) {
    SCOPED_TRACE(questions);
    asked = questions;
    isStopped = false;
    wasStopped = false;
    StrategyCase test = GetParam();
    test.stops = stopsAtLast;
    const Outcome got = runStrategy(test);
    const size_t steps = got.losses.size();
    ASSERT_LE(steps, 3u);
    // A question in the last step ends that one.
    EXPECT_EQ(steps == 3, !wasStopped);
    ++ends[steps];
    EXPECT_EQ(got.parameters, after(static_cast<int>(steps)).parameters);
    EXPECT_EQ(got.losses, after(static_cast<int>(steps)).losses);
    if (HasFailure())
      return;
  }
  // Each step was dropped at several points.
  for (size_t steps = 0; steps < 3; ++steps)
    EXPECT_GT(ends[steps], 0) << steps;
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, DropStepTest,
    testing::Values(StrategyCase{"dp=1,layers=5"},
                    StrategyCase{"dp=2,layers=5"},
                    StrategyCase{"dp=2,layers=5,zero=1", Schedule::GPipe},
                    StrategyCase{"pp=3,layers=2+1+2"},
                    StrategyCase{"dp=2,pp=2,layers=3+2,zero=1",
                                 Schedule::OneForwardOneBackward,
                                 plan::RECOMPUTE_FULL, true},
                    StrategyCase{"dp=2,pp=2,layers=3+2,zero=1", Schedule::GPipe,
                                 plan::RECOMPUTE_NONE, false, plan::BF16}));

} // namespace
