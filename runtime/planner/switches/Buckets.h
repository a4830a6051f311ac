//===- Buckets.h - What is under way together -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Pieces come in order. What can be under way together is a group: level by
// level a bucket, none of which gives a rank more to send or to receive than
// the limits. A piece comes to the first group in which all its ranks have room,
// so that a rank with little to do does not run ahead of the others with those
// that have much.
// Groups overlap like a pipeline, what is older first:
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
      : network_(network), options_(options), room_(network.ranks, 0),
        last_(network.ranks, 0) {}

  /// Room for a piece of so many bytes that goes this way.
  void makeRoom(const Route &route, int64_t bytes);
  /// A hop of it.
  void add(const Hop &hop, SwitchTransfer transfer);
  /// Once, at the end.
  SwitchPlan finish();

private:
  struct Use {
    int64_t sent = 0, received = 0, transfers = 0;
  };
  struct Level {
    std::vector<SwitchTransfer> transfers;
    std::vector<Use> used; ///< by rank
  };
  using Group = std::vector<Level>;

  void take(Group &group, const Route &route, int64_t bytes, int sign) const;
  /// Which hops are the first that their sender sends there, or their receiver gets.
  void findFirst(const Group &group, const Route &route);
  bool findFull(const Group &group, const Route &route);

  const SwitchNetwork &network_;
  const SwitchOptions &options_;
  std::vector<Group> groups_;
  std::vector<size_t> room_; ///< of each rank the first group that has some
  std::vector<size_t> last_; ///< that each rank came to
  size_t current_ = 0;
  /// By hop, before it is added: alone a piece may be what it is, at each of its
  /// ranks, and in each direction.
  struct First {
    bool atSender = true, atReceiver = true; ///< the rank has nothing there
    bool sent = true, received = true; ///< it sends, or gets, nothing there
  };
  std::vector<First> isFirst_;
};

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_BUCKETS_H
