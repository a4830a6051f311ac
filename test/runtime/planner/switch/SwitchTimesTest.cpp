//===- SwitchTimesTest.cpp - What a switch takes --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/SwitchTimes.h"

#include "test/runtime/planner/switch/SwitchCases.h"

#include <gtest/gtest.h>

using namespace dyna;

namespace {

TEST(SwitchTimes, PortsOfARankWorkAtOnce) {
  SwitchCase one = {{bytesOn({0}, {1, 2}, 80)}, nodesOf(2, 2)};
  one.network.insideLatency = 1;
  one.network.betweenLatency = 2;
  SwitchPlan plan;
  plan.buckets.resize(1);
  for (int to : {1, 2})
    plan.buckets[0].transfers.push_back({0, 0, to, SwitchPlace::Old,
                                         SwitchPlace::New,
                                         one.tensors[0].to[0].box});
  SwitchTimes times = timesOf(one.tensors, plan, one.network);
  EXPECT_DOUBLE_EQ(times.seconds, 82);
  EXPECT_DOUBLE_EQ(times.portSeconds, 80);
  EXPECT_EQ(times.nodeBytes,
            (std::vector<std::vector<int64_t>>{{80, 80}, {0, 0}}));
  // In two buckets they still do; what is handed on waits.
  SwitchTransfer second = plan.buckets[0].transfers[1];
  second.from = 1;
  second.source = SwitchPlace::New;
  plan.buckets[0].transfers.pop_back();
  plan.buckets.push_back({{second}, 0});
  EXPECT_DOUBLE_EQ(timesOf(one.tensors, plan, one.network).seconds,
                   1 + 10 + 82);
}

/// Rank 1 hands ten tensors on, as many at one time as are under way, beside one of its own, before and behind.
TEST(SwitchTimes, PeakHasBothLayoutsAndWhatIsPassedOn) {
  SwitchCase one = {{}, nodesOf(1, 3)};
  SwitchPlan plan;
  for (int t = 0; t < 10; ++t) {
    one.tensors.push_back(bytesOn({0}, {2}, 10));
    const Box box = one.tensors[t].to[0].box;
    plan.buckets.push_back(
        {{{t, 0, 1, SwitchPlace::Old, SwitchPlace::Passing, box}}, -1});
  }
  for (int t = 0; t < 10; ++t)
    plan.buckets.push_back({{{t, 1, 2, SwitchPlace::Passing, SwitchPlace::New,
                              one.tensors[t].to[0].box}},
                            t});
  one.tensors.push_back(bytesOn({1}, {1}, 1000));
  plan.buckets[0].transfers.push_back({10, 1, 1, SwitchPlace::Old,
                                       SwitchPlace::New,
                                       one.tensors[10].to[0].box});
  ASSERT_EQ(refusalOf(one, plan), "");
  EXPECT_EQ(timesOf(one.tensors, plan, one.network).peakBytes,
            2000 + 10 * 10); // none was handed on when the last came

  // Those that were handed on make room once as many others are under way.
  SwitchPlan turns = plan;
  for (int t = 0; t < 10; ++t) {
    turns.buckets[2 * t] = plan.buckets[t];
    turns.buckets[2 * t + 1] = plan.buckets[10 + t];
    turns.buckets[2 * t + 1].after = 2 * t;
  }
  ASSERT_EQ(refusalOf(one, turns), "");
  EXPECT_EQ(
      timesOf(one.tensors, turns, one.network, Fusing::Buckets, 80).peakBytes,
      2000 + 10 * 5);
}

TEST(SwitchTimes, TransfersThatAreNotFusedHaveALatencyEach) {
  SwitchCase one = {{bytesOn({0}, {1}, 80), bytesOn({0}, {1}, 40)},
                    nodesOf(1, 2)};
  one.network.insideLatency = 1;
  SwitchPlan plan = planOf(one);
  EXPECT_DOUBLE_EQ(timesOf(one.tensors, plan, one.network).seconds, 15 + 1);
  EXPECT_DOUBLE_EQ(
      timesOf(one.tensors, plan, one.network, Fusing::None).seconds, 15 + 2);
}

} // namespace
