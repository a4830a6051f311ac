//===- Buckets.h - What is under way together -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Pieces come in order. What can be under way together is a group: level by
// level a bucket, none of which gives a rank more to send or to receive than
// the limits. Groups overlap like a pipeline, what is older first:
//
//     group 0   level 0   level 1   level 2
//     group 1             level 0   level 1   level 2
//     group 2                       level 0   level 1   level 2
//
// Levels are buckets of their own, so that what is there from the beginning
// does not wait for what has to come first.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHES_BUCKETS_H
#define DYNA_RUNTIME_PLANNER_SWITCHES_BUCKETS_H

#include "runtime/planner/SwitchOptions.h"
#include "runtime/planner/switches/Routes.h"

namespace dyna::switches {

class Buckets {
public:
  Buckets(const SwitchNetwork &network, const SwitchOptions &options)
      : network_(network), options_(options) {}

  /// Room for a piece of so many bytes that goes this way, in the group that is
  /// filled or else in a new one.
  void makeRoom(const Route &route, int64_t bytes);
  /// A hop of it.
  void add(const Hop &hop, SwitchTransfer transfer);
  /// Once, at the end.
  SwitchPlan finish();

private:
  using Group = std::vector<std::vector<SwitchTransfer>>;
  struct Use {
    int64_t sent = 0, received = 0, transfers = 0;
  };
  void take(const Route &route, int64_t bytes);
  bool isTooMuch(const Route &route) const;

  const SwitchNetwork &network_;
  const SwitchOptions &options_;
  std::vector<Group> groups_;
  std::vector<std::vector<Use>> used_; ///< of the last, by level and rank
};

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_BUCKETS_H
