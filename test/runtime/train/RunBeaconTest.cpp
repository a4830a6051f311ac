//===- RunBeaconTest.cpp - Runs that share a store --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/RunBeacon.h"

#include "test/runtime/store/MemoryStore.h"

#include <gmock/gmock.h>

#include <set>

using namespace dyna;
using namespace std::chrono_literals;
using testing::HasSubstr;

namespace {

PlanMark markOf(uint64_t run, int64_t step) {
  PlanMark mark;
  mark.run = run;
  mark.step = step;
  return mark;
}

class RunBeaconTest : public testing::Test {
protected:
  /// The run and step in a slot; nothing where it is free.
  std::optional<std::pair<uint64_t, int64_t>> slot(int number) {
    auto text = store_.find(slotKey("dyna:1", number));
    if (!text->has_value())
      return std::nullopt;
    StatusOr<PlanMark> mark = PlanMark::fromJson(**text);
    EXPECT_TRUE(mark.isOk()) << **text;
    return std::pair(mark->run, mark->step);
  }

  MemoryStore store_;
};

using Slot = std::pair<uint64_t, int64_t>;

TEST_F(RunBeaconTest, EveryRunHasASlotAndLeavesIt) {
  RunBeacon first(store_, "dyna:1"), second(store_, "dyna:1"),
      other(store_, "dyna:2");
  ASSERT_TRUE(first.say(markOf(7, 0)).isOk());
  ASSERT_TRUE(second.say(markOf(8, 5)).isOk());
  ASSERT_TRUE(other.say(markOf(9, 1)).isOk());
  ASSERT_TRUE(first.say(markOf(7, 1)).isOk());
  EXPECT_EQ(slot(0), Slot(7, 1));
  EXPECT_EQ(slot(1), Slot(8, 5));
  EXPECT_EQ(slot(2), std::nullopt);
  first.end();
  EXPECT_EQ(slot(0), std::nullopt);
  EXPECT_EQ(**store_.find(endedKey(runPrefix("dyna:1", 7))), "1");
  RunBeacon third(store_, "dyna:1");
  ASSERT_TRUE(third.say(markOf(10, 0)).isOk());
  EXPECT_EQ(slot(0), Slot(10, 0));
  EXPECT_EQ(slot(1), Slot(8, 5));
}

// As after a pause of the whole process, in which its mark was forgotten.
TEST_F(RunBeaconTest, ARunThatLostItsSlotFindsAnother) {
  RunBeacon first(store_, "dyna:1"), second(store_, "dyna:1");
  ASSERT_TRUE(first.say(markOf(7, 0)).isOk());
  ASSERT_TRUE(store_.remove(slotKey("dyna:1", 0)).isOk());
  ASSERT_TRUE(second.say(markOf(8, 0)).isOk());
  ASSERT_TRUE(first.say(markOf(7, 1)).isOk());
  EXPECT_EQ(slot(0), Slot(8, 0));
  EXPECT_EQ(slot(1), Slot(7, 1));
}

TEST_F(RunBeaconTest, MoreRunsThanSlotsAreRefused) {
  std::vector<std::unique_ptr<RunBeacon>> beacons;
  for (int i = 0; i <= kMostRuns; ++i) {
    beacons.push_back(std::make_unique<RunBeacon>(store_, "dyna:1"));
    Status said = beacons.back()->say(markOf(100 + i, 0));
    EXPECT_EQ(said.isOk(), i < kMostRuns) << said.message();
    if (i == kMostRuns)
      EXPECT_THAT(said.message(), HasSubstr("use memory at this moment"));
  }
}

TEST(DrawRunTest, NumbersDiffer) {
  std::set<uint64_t> drawn;
  for (int i = 0; i < 1000; ++i)
    drawn.insert(drawRun());
  EXPECT_EQ(drawn.size(), 1000u);
  EXPECT_EQ(drawn.count(0), 0u);
}

} // namespace
