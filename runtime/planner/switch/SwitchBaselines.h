//===- SwitchBaselines.h - Plans baselines for switches ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Simpler plans for the same task, for reports and figures. `checkSwitch`
// accepts all of them. They have the fewest possible buckets: everything moves
// at once, without a memory limit, which is their best case.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHBASELINES_H
#define DYNA_RUNTIME_PLANNER_SWITCHBASELINES_H

#include "runtime/planner/switch/SwitchOptions.h"
#include "runtime/planner/switch/SwitchTimes.h"

namespace dyna {

struct SwitchBaseline {
  const char *name;
  const char *description;
  StatusOr<SwitchPlan> (*plan)(const std::vector<SwitchTensor> &tensors,
                               const SwitchNetwork &network);
  Fusing fusing;
};

/// - "algorithm1": HotSPa's (section 5.2). A rank gets a box from the owner in
///   its node that has sent least inside nodes. Without one it gets it from the
///   owner that has sent least between nodes.
/// - "unfused": the same, with a message for each box.
/// - "first-owner": from the first rank that has it.
/// - "gather": every tensor to one rank, in turns, and from there to all.
const std::vector<SwitchBaseline> &switchBaselines();

/// Plans "algorithm1", in buckets within the options' bounds.
StatusOr<SwitchPlan> planAlgorithm1(const std::vector<SwitchTensor> &tensors,
                                    const SwitchNetwork &network,
                                    const SwitchOptions &options);

/// Returns the messages of `planAlgorithm1`, which take less memory than the plan.
StatusOr<SwitchMessages>
messagesOfAlgorithm1(const std::vector<SwitchTensor> &tensors,
                     const SwitchNetwork &network,
                     const SwitchOptions &options);

/// Returns the seconds of the port that is busiest under Algorithm 1, without
/// making the plan: no limits make it faster.
StatusOr<double> secondsOfAlgorithm1(const std::vector<SwitchTensor> &tensors,
                                     const SwitchNetwork &network);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHBASELINES_H
