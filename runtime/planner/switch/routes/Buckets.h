//===- Buckets.h - Groups messages into buckets -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Pieces come in order. Pieces that can move together are a group. A group has
// a bucket per level, and none of them gives a rank more to send or to receive
// than the limits. The number of groups is given. A piece goes into the group
// of its progress, or into the next one in which all its ranks have room. So a
// group is a small copy of the whole switch, and no rank waits for a busier
// one. Groups overlap like a pipeline, older ones first:
//
//     group 0   level 0   level 1   level 2
//     group 1             level 0   level 1   level 2
//     group 2                       level 0   level 1   level 2
//
// Levels have buckets of their own, so that boxes that exist from the beginning
// do not wait for boxes that must come first.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHES_BUCKETS_H
#define DYNA_RUNTIME_PLANNER_SWITCHES_BUCKETS_H

#include "runtime/planner/switch/SwitchOptions.h"
#include "runtime/planner/switch/routes/Routes.h"

namespace dyna::switches {

class Buckets {
public:
  /// `groups` is at least 1; more are added if they do not suffice.
  Buckets(const SwitchNetwork &network, const SwitchOptions &options,
          int64_t groups)
      : network_(network), options_(options),
        count_(static_cast<size_t>(groups)) {}

  /// Makes room for a piece of `bytes` bytes on this route. `progress` is the
  /// part of the switch that comes before the piece, 0 to 1.
  void makeRoom(const Route &route, int64_t bytes, double progress);
  /// Returns the group that has the room.
  size_t current() const { return current_; }
  /// Adds a hop of the group.
  void add(const Hop &hop, SwitchTransfer transfer);
  /// Returns the plan. Called once, at the end.
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

  enum class Way { Out, In };
  size_t &room(int level, int rank, Way way);

  void take(Group &group, const Route &route, int64_t bytes, int sign) const;
  /// Finds the hops that are the first of their sender or of their receiver in
  /// the group.
  void findFirst(const Group &group, const Route &route);
  bool findFull(const Group &group, const Route &route);

  const SwitchNetwork &network_;
  const SwitchOptions &options_;
  const size_t count_; ///< groups, if these suffice
  std::vector<Group> groups_;
  /// By level, rank and way, the first group that is not nearly full.
  std::vector<size_t> room_;
  size_t current_ = 0;
  /// State of a hop before the piece is added. Alone, a piece may exceed the
  /// limits at each of its ranks and in each direction.
  struct First {
    bool atSender = true, atReceiver = true; ///< the rank has nothing there
    bool sent = true, received = true; ///< it sends, or gets, nothing there
  };
  std::vector<First> isFirst_;
};

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_BUCKETS_H
