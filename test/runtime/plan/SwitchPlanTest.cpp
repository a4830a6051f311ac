//===- SwitchPlanTest.cpp -------------------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rules of SwitchPlan.h, each broken once by hand. Plans of the planner
// with any transfer left out, doubled or sent elsewhere are in
// PlanSwitchTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/SwitchPlan.h"
#include "gmock/gmock.h"

using namespace dyna;
using testing::HasSubstr;

namespace {

Box rows(int64_t begin, int64_t end) { return {{begin, 0}, {end - begin, 3}}; }

/// The example of SwitchPlan.h, and a rank 4 that has and needs nothing.
struct Halves {
  std::vector<SwitchTensor> tensors;
  SwitchPlan plan;

  Halves() {
    SwitchTensor tensor;
    tensor.elementBytes = 2;
    tensor.from = {{0, rows(0, 2)}, {1, rows(2, 4)}, {1, rows(4, 4)}};
    tensor.to = {{2, rows(0, 4)}, {3, rows(0, 4)}};
    tensors.push_back(tensor);
    plan.buckets.resize(2);
    plan.buckets[0].transfers = {
        {0, 0, 2, SwitchPlace::Old, SwitchPlace::New, rows(0, 2)},
        {0, 1, 3, SwitchPlace::Old, SwitchPlace::New, rows(2, 4)}};
    plan.buckets[1].transfers = {
        {0, 2, 3, SwitchPlace::New, SwitchPlace::New, rows(0, 2)},
        {0, 3, 2, SwitchPlace::New, SwitchPlace::New, rows(2, 4)}};
    plan.buckets[1].after = 0;
  }

  SwitchTransfer &at(int bucket, int index) {
    return plan.buckets[bucket].transfers[index];
  }
  std::string refusal() const {
    return checkSwitch(tensors, 5, plan).message();
  }
};

TEST(SwitchPlan, EveryHalfCrossesOnce) {
  Status status = checkSwitch(Halves().tensors, 5, Halves().plan);
  EXPECT_TRUE(status.isOk()) << status.message();
}

TEST(SwitchPlan, AnIdleRankMayPassOn) {
  Halves one;
  one.at(0, 1).to = 4;
  one.at(0, 1).target = SwitchPlace::Passing;
  one.at(1, 1).from = 4;
  one.at(1, 1).source = SwitchPlace::Passing;
  one.plan.buckets[1].transfers.push_back(
      {0, 4, 3, SwitchPlace::Passing, SwitchPlace::New, rows(2, 4)});
  EXPECT_EQ(one.refusal(), "");
  // The memory is that of bucket 0 alone.
  one.plan.buckets.push_back(one.plan.buckets[1]);
  one.plan.buckets[2].after = 1;
  one.plan.buckets[1].transfers.resize(1);
  one.plan.buckets[2].transfers.erase(one.plan.buckets[2].transfers.begin());
  EXPECT_THAT(one.refusal(), HasSubstr("rank 4 does not have it (S3)"));
  // Where it is needed it stays.
  Halves other;
  other.plan.buckets.push_back(other.plan.buckets[1]);
  other.plan.buckets[2].after = 1;
  other.plan.buckets[1].transfers.pop_back();
  other.plan.buckets[2].transfers.erase(
      other.plan.buckets[2].transfers.begin());
  EXPECT_EQ(other.refusal(), "");
}

TEST(SwitchPlan, TensorsAndTransfersAreBoxesOfRanks) {
  Halves one;
  one.tensors[0].elementBytes = 0;
  EXPECT_THAT(one.refusal(), HasSubstr("elements of 0 bytes (S1)"));
  one = Halves();
  one.tensors[0].from[0].rank = 5;
  EXPECT_THAT(one.refusal(), HasSubstr("on rank 5, but there are 5 (S1)"));
  one = Halves();
  one.tensors[0].to[0].box = Box::whole({4});
  EXPECT_THAT(one.refusal(), HasSubstr("rows and columns (S1)"));
  one = Halves();
  one.tensors[0].to.push_back({2, rows(3, 4)});
  EXPECT_THAT(one.refusal(), HasSubstr("which overlap (S1)"));
  one = Halves();
  one.at(0, 0).tensor = 1;
  EXPECT_THAT(one.refusal(), HasSubstr("tensor 1, but there are 1 (S1)"));
  one = Halves();
  one.at(0, 0).to = -1;
  EXPECT_THAT(one.refusal(), HasSubstr("by rank -1, but there are 5 (S1)"));
  one = Halves();
  one.at(0, 0).box = rows(1, 1);
  EXPECT_THAT(one.refusal(), HasSubstr("moves [1:1, 0:3] of tensor 0 (S1)"));
}

TEST(SwitchPlan, BucketsComeAfterEarlierOnes) {
  Halves one;
  one.plan.buckets[1].after = 1;
  EXPECT_THAT(one.refusal(), HasSubstr("1 comes after bucket 1 (S2)"));
  one.plan.buckets[1].after = -2;
  EXPECT_THAT(one.refusal(), HasSubstr("(S2)"));
}

TEST(SwitchPlan, SendersHaveWhatTheySend) {
  Halves one;
  one.plan.buckets[1].after = -1;
  EXPECT_EQ(one.refusal(), "switch: tensor 0 [2:4, 0:3] from rank 3 to rank 2 "
                           "in bucket 1, but rank 3 does not have it (S3)");
  one = Halves();
  one.at(0, 0).box = rows(0, 3);
  EXPECT_THAT(one.refusal(), HasSubstr("rank 0 does not have it (S3)"));
  one = Halves();
  one.at(1, 0).source = SwitchPlace::Old;
  EXPECT_THAT(one.refusal(), HasSubstr("rank 2 does not have it (S3)"));
  one = Halves();
  one.at(1, 0).source = SwitchPlace::Passing;
  EXPECT_THAT(one.refusal(), HasSubstr("rank 2 does not have it (S3)"));
  // What comes in the same bucket is not there yet.
  one = Halves();
  one.plan.buckets[0].transfers.push_back(one.at(1, 0));
  one.plan.buckets[1].transfers.erase(one.plan.buckets[1].transfers.begin());
  EXPECT_THAT(one.refusal(), HasSubstr("rank 2 does not have it (S3)"));
}

/// An earlier bucket that this one does not come after, even in several steps,
/// may still be under way.
TEST(SwitchPlan, EarlierBucketsAreNotThereUnlessComeAfter) {
  for (bool isChained : {false, true}) {
    Halves one;
    // Bucket 1 has nothing to do with what 2 and 3 pass on.
    one.tensors.push_back(one.tensors[0]);
    one.tensors[1].to = {{4, rows(0, 4)}};
    SwitchBucket passing = one.plan.buckets[1];
    one.plan.buckets[1] = {
        {{1, 0, 4, SwitchPlace::Old, SwitchPlace::New, rows(0, 2)}},
        isChained ? 0 : -1};
    passing.after = 1;
    one.plan.buckets.push_back(passing);
    one.plan.buckets.push_back(
        {{{1, 1, 4, SwitchPlace::Old, SwitchPlace::New, rows(2, 4)}}, 2});
    if (isChained)
      EXPECT_EQ(one.refusal(), "");
    else
      EXPECT_THAT(one.refusal(), HasSubstr("in bucket 2, but rank 3 does not "
                                           "have it (S3)"));
    // Nor is it there for who comes after that bucket.
    std::swap(one.plan.buckets[2].transfers, one.plan.buckets[3].transfers);
    if (isChained)
      EXPECT_EQ(one.refusal(), "");
    else
      EXPECT_THAT(one.refusal(), HasSubstr("(S3)"));
  }
}

TEST(SwitchPlan, ReceiversNeedWhatTheyGet) {
  Halves one;
  one.plan.buckets[0].transfers.push_back(
      {0, 0, 4, SwitchPlace::Old, SwitchPlace::New, rows(0, 1)});
  EXPECT_THAT(one.refusal(), HasSubstr("rank 4 does not need it (S4)"));
  one.plan.buckets[0].transfers.back().target = SwitchPlace::Passing;
  EXPECT_THAT(one.refusal(), HasSubstr("in bucket 0 is not handed on (S4)"));
  one.plan.buckets[0].transfers.back().target = SwitchPlace::Old;
  EXPECT_THAT(one.refusal(), HasSubstr("where it was before (S4)"));
}

TEST(SwitchPlan, EverythingArrivesOnce) {
  Halves one;
  one.plan.buckets[1].transfers.pop_back();
  EXPECT_EQ(one.refusal(),
            "switch: tensor 0: 6 of 12 elements arrive at rank 2 (S5)");
  one = Halves();
  one.plan.buckets[1].transfers.push_back(one.at(1, 0));
  EXPECT_EQ(one.refusal(),
            "switch: tensor 0: [0:2, 0:3] arrives twice at rank 3 (S5)");
}

TEST(SwitchPlan, SummandsArriveAtOneRankOnly) {
  Halves one;
  one.tensors[0].delivery = Delivery::Once;
  EXPECT_THAT(one.refusal(), HasSubstr("arrives twice at all ranks together"));
  one.plan.buckets.pop_back();
  EXPECT_EQ(one.refusal(), "");
  one.plan.buckets[0].transfers.pop_back();
  EXPECT_THAT(one.refusal(), HasSubstr("6 of 12 elements arrive"));
  // Boxes of several ranks that overlap in part.
  one = Halves();
  one.tensors[0].delivery = Delivery::Once;
  one.tensors[0].to = {{2, rows(0, 3)}, {3, rows(1, 4)}, {4, rows(1, 4)}};
  one.plan.buckets.pop_back();
  EXPECT_EQ(one.refusal(), "");
}

} // namespace
