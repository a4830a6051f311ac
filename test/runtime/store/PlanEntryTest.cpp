//===- PlanEntryTest.cpp - Parts of plans in a store ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/store/PlanEntry.h"

#include "runtime/base/Text.h"
#include "runtime/plan/VerifiedPlan.h"
#include "test/runtime/plan/TinyPlans.h"

#include <gmock/gmock.h>

#include <cmath>

using namespace dyna;
using testing::HasSubstr;

namespace {

class PlanEntryTest : public testing::Test {
protected:
  Planner planner_{*ExecutableGraph::create(
      modelWithDegrees(), *parseStrategy("dp=2,pp=2,layers=2+3"))};
  plan::Plan plan_ = *planner_.training(equalLengths, 100, tinyPlanOptions());
};

TEST_F(PlanEntryTest, APartHasTheRanksProgramAlone) {
  for (int rank = 0; rank < 4; ++rank) {
    std::string bytes = writePlanEntry(plan_, 7, rank, 0.125 * rank);
    auto part = readPlanEntry(bytes, 7, rank);
    ASSERT_TRUE(part.isOk()) << part.status().message();
    EXPECT_EQ(part->predictedSeconds, 0.125 * rank);
    for (int other = 0; other < 4; ++other)
      EXPECT_EQ(part->plan.ranks[other].instructions,
                other == rank ? plan_.ranks[other].instructions
                              : std::vector<plan::Instruction>());
    auto prove = [&](std::vector<int> ranks) {
      return VerifiedPlan::proveRanks(planner_.graph(), part->plan,
                                      std::move(ranks), equalLengths,
                                      {enoughBytes, -1, 100});
    };
    auto proven = prove({rank});
    ASSERT_TRUE(proven.isOk()) << proven.status().message();
    EXPECT_TRUE(proven->covers(rank));
    EXPECT_FALSE(proven->covers((rank + 1) % 4));
    EXPECT_FALSE(prove({rank, (rank + 1) % 4}).isOk());
    part->plan.ranks[rank].instructions.pop_back();
    EXPECT_THAT(prove({rank}).status().message(),
                HasSubstr(formatText("rank %d: ", rank)));
  }
}

TEST_F(PlanEntryTest, EveryChangedByteIsSeen) {
  std::string good = writePlanEntry(plan_, 3, 1, 1.5);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(readPlanEntry(bad, 3, 1).isOk()) << at;
  }
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(readPlanEntry(good.substr(0, size), 3, 1).isOk()) << size;
}

TEST_F(PlanEntryTest, RefusalsHaveNumbers) {
  std::string bytes = writePlanEntry(plan_, 3, 1, 1.5);
  EXPECT_THAT(
      readPlanEntry(bytes, 4, 1).status().message(),
      HasSubstr("that of rank 1 in step 4, but that of rank 1 in step 5"));
  EXPECT_THAT(readPlanEntry(bytes, 3, 0).status().message(),
              HasSubstr("but that of rank 0"));
  bytes[8] = 9;
  EXPECT_THAT(readPlanEntry(bytes, 3, 1).status().message(),
              HasSubstr("of format 9, but this program's are of 2"));
  for (double seconds : {-1.0, std::nan("")})
    EXPECT_THAT(readPlanEntry(writePlanEntry(plan_, 3, 1, seconds), 3, 1)
                    .status()
                    .message(),
                HasSubstr("of step 4 predicts"));
  EXPECT_THAT(readPlanEntry("", 3, 1).status().message(), HasSubstr("0 bytes"));
}

} // namespace
