//===- DealtSwitch.h - Groups pieces of a switch ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A piece is a box of a tensor with a branch. A branch is hops that start at
// ranks which have the box from the beginning. Pieces that can move together
// are a group. A group has a bucket per level, and none of them gives a rank
// more to send or to receive than the limits. The number of groups is given. So
// a group is a small copy of the whole switch. Groups overlap like a pipeline,
// older ones first:
//
//     group 0   level 0   level 1   level 2
//     group 1             level 0   level 1   level 2
//     group 2                       level 0   level 1   level 2
//
// Levels have buckets of their own, so that boxes that exist from the beginning
// do not wait for boxes that must come first.
//
// A switch has millions of transfers, but far fewer pieces. It is simulated by
// its messages, and only the chosen plan gets transfers.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHES_DEALTSWITCH_H
#define DYNA_RUNTIME_PLANNER_SWITCHES_DEALTSWITCH_H

#include "runtime/planner/switch/SwitchOptions.h"
#include "runtime/planner/switch/routes/Routes.h"
#include "runtime/sim/SwitchMessages.h"

namespace dyna::switches {

/// Hops of one piece, in the order of their levels.
struct Branch {
  struct Step {
    int from, to;
    SwitchPlace source, target;
  };
  std::vector<Step> steps;
  std::vector<size_t> levels; ///< ends of the levels in `steps`

  /// A port, and its seconds for a byte of the piece.
  struct PortUse {
    size_t port;
    double seconds;
  };
  std::vector<PortUse> ports; ///< each once
  /// Transfers of a rank in one level, and how many of them it sends and receives.
  struct RankUse {
    int level, rank;
    int transfers = 0, sent = 0, received = 0;
  };
  std::vector<RankUse> ranks;
};

/// Returns the branch of these hops, which start at holders of the lot.
Branch branchOf(const Lot &lot, const Route &hops,
                const SwitchNetwork &network);
/// Returns the branch of copies that stay on these ranks.
Branch stayOn(const std::vector<int> &ranks);

/// A part of a list.
template <typename T> struct Range {
  const T *first, *last;
  const T *begin() const { return first; }
  const T *end() const { return last; }
};

class DealtSwitch {
public:
  /// `groups` is at least 1; more are added if they do not suffice. `tensors` and
  /// `network` must outlive this object. Tensors have fewer than 2^31 rows and columns.
  DealtSwitch(const std::vector<SwitchTensor> &tensors,
              const SwitchNetwork &network, const SwitchOptions &limits,
              int64_t groups);

  /// Returns the number of the branch.
  int addBranch(const Branch &branch);
  /// Returns the ports of a branch. Valid until a branch is added.
  Range<Branch::PortUse> portsOf(int branch) const {
    return {ports_.data() + ends_[branch].ports,
            ports_.data() + ends_[branch + 1].ports};
  }
  /// Puts a piece into a group between two parts of the switch (0 to 1). It is
  /// the group in which the piece's busiest port is least busy, or the next one
  /// with room. O(groups between, at most 16, * ports and ranks of the branch).
  void add(int tensor, int branch, const MatrixBox &box, double begin,
           double end);
  int64_t groups() const { return static_cast<int64_t>(count_); }

  /// Returns the messages of the plan in the order of `plan({})`. O(transfers +
  /// buckets * ranks).
  SwitchMessages messages() const;
  /// Returns the plan with its buckets in this order; empty: group by group. Gives up
  /// the pieces, so that they and their transfers are not in memory at one time.
  SwitchPlan plan(const std::vector<int> &order = {}) &&;

private:
  /// A piece in one level of its branch.
  struct Piece {
    std::array<int32_t, 2> begin, size; ///< of its box
    int tensor;
    uint32_t firstStep, endStep; ///< in `steps_`
  };
  struct Use {
    int64_t sent = 0, received = 0, transfers = 0;
  };
  struct Level {
    std::vector<Piece> pieces;
    size_t transfers = 0;
    std::vector<Use> used; ///< by rank
  };
  struct Group {
    std::vector<Level> levels;
    std::vector<float> seconds; ///< by port
  };
  struct Bucket {
    size_t group, level;
    int after;
  };
  /// Ends of a branch in the lists below, which begin where the one before it ends.
  struct Ends {
    uint32_t steps = 0, levels = 0, ports = 0, ranks = 0;
  };

  Group &group(size_t index);
  double busiest(size_t group, int branch, double bytes) const;
  bool tryGroup(size_t index, int branch, int64_t bytes);
  void put(size_t index, int branch, int tensor, const MatrixBox &box);
  /// Returns the first group of a rank in a level that is not nearly full.
  size_t &room(int level, int rank, bool isIn);
  std::vector<Bucket> buckets() const;
  Range<Branch::RankUse> ranksOf(int branch) const {
    return {ranks_.data() + ends_[branch].ranks,
            ranks_.data() + ends_[branch + 1].ranks};
  }
  static MatrixBox boxOf(const Piece &piece) {
    return {{piece.begin[0], piece.begin[1]}, {piece.size[0], piece.size[1]}};
  }
  Range<Branch::Step> stepsOf(const Piece &piece) const {
    return {steps_.data() + piece.firstStep, steps_.data() + piece.endStep};
  }
  int64_t bytesOf(int tensor, const MatrixBox &box) const {
    return box.volume() * tensors_[tensor].elementBytes;
  }

  const std::vector<SwitchTensor> &tensors_;
  const SwitchNetwork &network_;
  const SwitchOptions limits_;
  const size_t count_;
  // Branches are stored one after another; pieces alternate between many
  // branches.
  std::vector<Ends> ends_{1};
  std::vector<Branch::Step> steps_;
  std::vector<uint32_t> levels_; ///< end of each level in `steps_`
  std::vector<Branch::PortUse> ports_;
  std::vector<Branch::RankUse> ranks_;
  std::vector<Group> groups_;
  std::vector<size_t> room_;
};

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_DEALTSWITCH_H
