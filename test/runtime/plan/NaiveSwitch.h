//===- NaiveSwitch.h - Switches without a planner, for tests ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLAN_NAIVESWITCH_H
#define DYNA_TEST_RUNTIME_PLAN_NAIVESWITCH_H

#include "runtime/plan/graph/SwitchPlan.h"

namespace dyna {

/// What a move sends, cut where boxes begin and end that its sender has: a
/// transfer lies in one of them.
inline std::vector<Box> cutAtBoxes(const Transfer &move,
                                   const std::vector<RankBox> &from) {
  std::vector<Box> pieces = {move.box};
  for (const RankBox &one : from)
    for (int dim = 0; one.rank == move.from && dim < 2; ++dim)
      for (int64_t at :
           {one.box.begin[dim], one.box.begin[dim] + one.box.size[dim]})
        for (size_t i = 0, count = pieces.size(); i < count; ++i) {
          const int64_t before = at - pieces[i].begin[dim];
          if (before <= 0 || before >= pieces[i].size[dim])
            continue;
          Box behind = pieces[i];
          behind.begin[dim] = at;
          behind.size[dim] -= before;
          pieces[i].size[dim] = before;
          pieces.push_back(behind);
        }
  return pieces;
}

/// Every tensor in a bucket of its own, each piece from a rank that has it: its
/// receiver, else the one that sends least.
inline StatusOr<SwitchPlan>
planNaively(const std::vector<SwitchTensor> &tensors) {
  SwitchPlan plan;
  for (size_t t = 0; t < tensors.size(); ++t) {
    std::vector<RankBox> to = tensors[t].to;
    if (tensors[t].delivery == Delivery::Once)
      to.resize(1);
    DYNA_ASSIGN_OR_RETURN(auto moves, planMove(tensors[t].from, to));
    SwitchBucket &bucket = plan.buckets.emplace_back();
    for (const Transfer &move : moves)
      for (Box &box : cutAtBoxes(move, tensors[t].from)) {
        SwitchTransfer transfer;
        transfer.tensor = static_cast<int>(t);
        transfer.from = move.from;
        transfer.to = move.to;
        transfer.box = std::move(box);
        bucket.transfers.push_back(transfer);
      }
  }
  return plan;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLAN_NAIVESWITCH_H
