//===- SwitchScrambler.h - Random changes of switch plans -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Changes who sends which piece, from where, to whom, and in which bucket. Most of
// what comes out is wrong. What `checkSwitch` accepts of it must be right.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLAN_SWITCHSCRAMBLER_H
#define DYNA_TEST_RUNTIME_PLAN_SWITCHSCRAMBLER_H

#include "runtime/plan/graph/SwitchPlan.h"

#include <algorithm>
#include <random>
#include <utility>

namespace dyna {

class SwitchScrambler {
public:
  SwitchScrambler(int ranks, uint64_t seed) : ranks_(ranks), random_(seed) {}

  int below(size_t count) { return static_cast<int>(random_() % count); }

  /// Changes a plan that has a transfer at one place, or at two.
  void change(const std::vector<SwitchTensor> &tensors, SwitchPlan &plan) {
    do
      changeOnce(tensors, plan);
    while (below(4) == 0);
  }

private:
  using Transfers = std::vector<SwitchTransfer>;

  void changeOnce(const std::vector<SwitchTensor> &tensors, SwitchPlan &plan) {
    const int b = below(plan.buckets.size());
    SwitchBucket &bucket = plan.buckets[b];
    const int what = below(14);
    if (what == 0)
      bucket.after = below(b + 1) - 1;
    else if (what == 1)
      swapBuckets(plan, b, below(plan.buckets.size()));
    if (what < 2 || bucket.transfers.empty())
      return;
    const int t = below(bucket.transfers.size());
    SwitchTransfer &one = bucket.transfers[t];
    switch (what) {
    case 2:
      return takeElsewhere(tensors, one);
    case 3:
      one.from = below(ranks_);
      return;
    case 4:
      one.to = below(ranks_);
      return;
    case 5:
      one.source = static_cast<SwitchPlace>(below(3));
      return;
    case 6:
      one.target = static_cast<SwitchPlace>(below(3));
      return;
    case 7:
      return moveTo(plan, b, t, below(plan.buckets.size()));
    case 8:
      return erase(bucket, t);
    case 9:
      return bucket.transfers.push_back(SwitchTransfer(one));
    case 10:
      return shift(one.box);
    case 11:
      return split(bucket, t);
    default:
      return what == 12 ? passOn(plan, b, t) : copyOnward(plan, b, t);
    }
  }

  /// Another rank that has the piece sends it.
  void takeElsewhere(const std::vector<SwitchTensor> &tensors,
                     SwitchTransfer &one) {
    const auto &from = tensors[one.tensor].from;
    if (from.empty())
      return;
    one.from = from[below(from.size())].rank;
    one.source = SwitchPlace::Old;
  }

  static void erase(SwitchBucket &bucket, int t) {
    bucket.transfers.erase(bucket.transfers.begin() + t);
  }

  static void moveTo(SwitchPlan &plan, int b, int t, int other) {
    const SwitchTransfer one = plan.buckets[b].transfers[t];
    erase(plan.buckets[b], t);
    plan.buckets[other].transfers.push_back(one);
  }

  static void swapBuckets(SwitchPlan &plan, int a, int b) {
    std::swap(plan.buckets[a], plan.buckets[b]);
    for (SwitchBucket &bucket : plan.buckets)
      if (bucket.after == a || bucket.after == b)
        bucket.after = a + b - bucket.after;
  }

  void shift(MatrixBox &box) {
    const int dim = below(2);
    (below(2) ? box.begin : box.size)[dim] += below(2) ? 1 : -1;
  }

  /// Two pieces for one.
  void split(SwitchBucket &bucket, int t) {
    const int dim = below(2);
    SwitchTransfer behind = bucket.transfers[t];
    MatrixBox &box = bucket.transfers[t].box;
    if (box.size[dim] < 2)
      return;
    const int64_t rows = 1 + below(box.size[dim] - 1);
    behind.box.begin[dim] += rows;
    behind.box.size[dim] -= rows;
    box.size[dim] = rows;
    bucket.transfers.push_back(behind);
  }

  /// A rank between two passes the piece on.
  void passOn(SwitchPlan &plan, int b, int t) {
    SwitchTransfer &one = plan.buckets[b].transfers[t];
    SwitchTransfer onward = one;
    one.to = onward.from = below(ranks_);
    one.target = onward.source = SwitchPlace::Passing;
    plan.buckets.push_back({{onward}, b});
  }

  /// A receiver gets the piece from another one that keeps it.
  void copyOnward(SwitchPlan &plan, int b, int t) {
    const SwitchTransfer kept = plan.buckets[b].transfers[t];
    for (SwitchBucket &bucket : plan.buckets)
      for (size_t other = 0; other < bucket.transfers.size(); ++other) {
        SwitchTransfer onward = bucket.transfers[other];
        if (onward.tensor != kept.tensor || !(onward.box == kept.box) ||
            onward.to == kept.to || below(2) == 0)
          continue;
        erase(bucket, static_cast<int>(other));
        onward.from = kept.to;
        onward.source = kept.target;
        plan.buckets.push_back({{onward}, b});
        return;
      }
  }

  const int ranks_;
  std::mt19937_64 random_;
};

/// Walks from a good plan over plans that `checkSwitch` accepts, as many changes as
/// are tried; `accepted` counts them.
inline SwitchPlan scrambleSwitch(const std::vector<SwitchTensor> &tensors,
                                 int ranks, SwitchPlan plan, int changes,
                                 uint64_t seed, int64_t &accepted) {
  SwitchScrambler scrambler(ranks, seed);
  for (int change = 0; change < changes && !plan.buckets.empty(); ++change) {
    SwitchPlan other = plan;
    scrambler.change(tensors, other);
    if (!checkSwitch(tensors, ranks, other).isOk())
      continue;
    plan = std::move(other);
    ++accepted;
  }
  return plan;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLAN_SWITCHSCRAMBLER_H
