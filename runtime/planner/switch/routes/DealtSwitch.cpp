//===- DealtSwitch.cpp - Groups pieces of a switch ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/routes/DealtSwitch.h"

#include <algorithm>
#include <numeric>

namespace dyna::switches {
namespace {

/// Groups between two parts of the switch that are looked at.
constexpr size_t kMostLooks = 16;

void countRanks(Branch &branch) {
  size_t begin = 0;
  for (size_t level = 0; level < branch.levels.size(); ++level) {
    const size_t first = branch.ranks.size();
    auto useOf = [&](int rank) -> Branch::RankUse & {
      for (size_t i = first; i < branch.ranks.size(); ++i)
        if (branch.ranks[i].rank == rank)
          return branch.ranks[i];
      branch.ranks.push_back({static_cast<int>(level), rank});
      return branch.ranks.back();
    };
    for (; begin < branch.levels[level]; ++begin) {
      const Branch::Step &step = branch.steps[begin];
      ++useOf(step.from).transfers;
      if (step.from == step.to)
        continue;
      ++useOf(step.from).sent;
      ++useOf(step.to).transfers;
      ++useOf(step.to).received;
    }
  }
}

void countPorts(Branch &branch, const SwitchNetwork &network) {
  auto add = [&](Port kind, int rank, bool isInside) {
    const size_t port =
        static_cast<size_t>(kPorts) * rank + static_cast<size_t>(kind);
    auto same = std::find_if(branch.ports.begin(), branch.ports.end(),
                             [&](const auto &use) { return use.port == port; });
    if (same == branch.ports.end())
      same = branch.ports.insert(same, {port, 0});
    same->seconds += network.secondsPerByte(isInside);
  };
  for (const Branch::Step &step : branch.steps) {
    const bool isInside = network.nodeOf(step.from) == network.nodeOf(step.to);
    add(isInside ? Port::InsideOut : Port::NetworkOut, step.from, isInside);
    add(isInside ? Port::InsideIn : Port::NetworkIn, step.to, isInside);
  }
}

} // namespace

Branch branchOf(const Lot &lot, const Route &hops,
                const SwitchNetwork &network) {
  const bool isAll = lot.delivery == Delivery::All;
  auto needs = [&](int rank) {
    return std::binary_search(lot.lacking.begin(), lot.lacking.end(), rank);
  };
  Branch branch;
  for (int level = 0; branch.steps.size() < hops.size(); ++level) {
    for (const Hop &hop : hops) {
      if (hop.level != level)
        continue;
      Branch::Step step = {hop.from, hop.to, SwitchPlace::Old,
                           SwitchPlace::New};
      if (level > 0)
        step.source =
            isAll && needs(hop.from) ? SwitchPlace::New : SwitchPlace::Passing;
      // With Once, the last receiver keeps it.
      if (isAll ? !needs(hop.to) : branch.steps.size() + 1 < hops.size())
        step.target = SwitchPlace::Passing;
      branch.steps.push_back(step);
    }
    branch.levels.push_back(branch.steps.size());
  }
  countRanks(branch);
  countPorts(branch, network);
  return branch;
}

Branch stayOn(const std::vector<int> &ranks) {
  Branch branch;
  for (int rank : ranks)
    branch.steps.push_back({rank, rank, SwitchPlace::Old, SwitchPlace::New});
  branch.levels = {branch.steps.size()};
  countRanks(branch);
  return branch;
}

DealtSwitch::DealtSwitch(const std::vector<SwitchTensor> &tensors,
                         const SwitchNetwork &network,
                         const SwitchOptions &limits, int64_t groups)
    : tensors_(tensors), network_(network), limits_(limits),
      count_(static_cast<size_t>(groups)) {}

int DealtSwitch::addBranch(const Branch &branch) {
  const auto first = static_cast<uint32_t>(steps_.size());
  for (size_t end : branch.levels)
    levels_.push_back(first + static_cast<uint32_t>(end));
  steps_.insert(steps_.end(), branch.steps.begin(), branch.steps.end());
  ports_.insert(ports_.end(), branch.ports.begin(), branch.ports.end());
  ranks_.insert(ranks_.end(), branch.ranks.begin(), branch.ranks.end());
  ends_.push_back({static_cast<uint32_t>(steps_.size()),
                   static_cast<uint32_t>(levels_.size()),
                   static_cast<uint32_t>(ports_.size()),
                   static_cast<uint32_t>(ranks_.size())});
  return static_cast<int>(ends_.size()) - 2;
}

void DealtSwitch::add(int tensor, int branch, const MatrixBox &box,
                      double begin, double end) {
  const int64_t bytes = bytesOf(tensor, box);
  const auto groupAt = [&](double part) {
    return std::min(count_ - 1,
                    static_cast<size_t>(part * static_cast<double>(count_)));
  };
  size_t first = groupAt(begin), last = std::max(groupAt(end), first);
  for (const Branch::RankUse &use : ranksOf(branch)) {
    first = std::max(first, room(use.level, use.rank, false));
    first = std::max(first, room(use.level, use.rank, true));
  }
  size_t best = first;
  if (last > first) {
    double least = busiest(first, branch, static_cast<double>(bytes));
    const size_t step = (last - first) / kMostLooks + 1;
    for (size_t at = first + step; at <= last; at += step)
      if (double now = busiest(at, branch, static_cast<double>(bytes));
          now < least)
        least = now, best = at;
  }
  while (!tryGroup(best, branch, bytes))
    ++best;
  put(best, branch, tensor, box);
}

DealtSwitch::Group &DealtSwitch::group(size_t index) {
  if (groups_.size() <= index)
    groups_.resize(index + 1);
  Group &result = groups_[index];
  if (result.seconds.empty())
    result.seconds.assign(static_cast<size_t>(kPorts) * network_.ranks, 0);
  return result;
}

/// Returns the seconds of the busiest port of the branch with the piece.
double DealtSwitch::busiest(size_t index, int branch, double bytes) const {
  double most = 0;
  const bool isEmpty =
      index >= groups_.size() || groups_[index].seconds.empty();
  for (const Branch::PortUse &use : portsOf(branch))
    most = std::max(most, bytes * use.seconds +
                              (isEmpty ? 0 : groups_[index].seconds[use.port]));
  return most;
}

/// Takes the room of a piece in a group, or returns false if there is none. Alone a
/// piece may be larger than the limits, at each of its ranks and in each direction.
bool DealtSwitch::tryGroup(size_t index, int branch, int64_t bytes) {
  Group &into = group(index);
  const size_t levels = ends_[branch + 1].levels - ends_[branch].levels;
  if (into.levels.size() < levels)
    into.levels.resize(levels);
  bool fits = true;
  for (const Branch::RankUse &use : ranksOf(branch)) {
    Level &level = into.levels[use.level];
    if (level.used.empty())
      level.used.resize(static_cast<size_t>(network_.ranks));
    const Use &now = level.used[use.rank];
    const bool hasTransfers =
        now.transfers > 0 &&
        now.transfers + use.transfers > limits_.bucketTransfers;
    auto check = [&](bool isIn, int64_t used, int64_t more) {
      if (more == 0 && use.sent + use.received > 0)
        return;
      // Do not look again at groups that are nearly full.
      if (size_t &from = room(use.level, use.rank, isIn);
          from == index &&
          (now.transfers + use.transfers >= limits_.bucketTransfers ||
           used + more >= limits_.bucketBytes - limits_.bucketBytes / 16))
        ++from;
      fits &=
          !hasTransfers && (used == 0 || used + more <= limits_.bucketBytes);
    };
    check(false, now.sent, use.sent * bytes);
    check(true, now.received, use.received * bytes);
  }
  if (!fits)
    return false;
  for (const Branch::RankUse &use : ranksOf(branch)) {
    Use &now = into.levels[use.level].used[use.rank];
    now.transfers += use.transfers;
    now.sent += use.sent * bytes;
    now.received += use.received * bytes;
  }
  for (const Branch::PortUse &use : portsOf(branch))
    into.seconds[use.port] +=
        static_cast<float>(static_cast<double>(bytes) * use.seconds);
  return true;
}

/// Puts a piece into each of its levels in a group that has room.
void DealtSwitch::put(size_t index, int branch, int tensor,
                      const MatrixBox &box) {
  uint32_t step = ends_[branch].steps;
  uint32_t number = ends_[branch].levels;
  for (Level &level : groups_[index].levels) {
    if (number == ends_[branch + 1].levels)
      break;
    const uint32_t end = levels_[number++];
    level.pieces.push_back(
        {{static_cast<int32_t>(box.begin[0]),
          static_cast<int32_t>(box.begin[1])},
         {static_cast<int32_t>(box.size[0]), static_cast<int32_t>(box.size[1])},
         tensor,
         step,
         end});
    level.transfers += end - step;
    step = end;
  }
}

size_t &DealtSwitch::room(int level, int rank, bool isIn) {
  const size_t index =
      (static_cast<size_t>(level) * network_.ranks + rank) * 2 + isIn;
  if (room_.size() <= index)
    room_.resize(static_cast<size_t>(level + 1) * network_.ranks * 2, 0);
  return room_[index];
}

std::vector<DealtSwitch::Bucket> DealtSwitch::buckets() const {
  std::vector<Bucket> result;
  size_t most = 0;
  for (const Group &one : groups_)
    most = std::max(most, one.levels.size());
  std::vector<int> last(groups_.size(), -1);
  for (size_t turn = 0; turn + 1 < groups_.size() + most; ++turn)
    for (size_t g = turn + 1 > most ? turn + 1 - most : 0;
         g < groups_.size() && g <= turn; ++g) {
      const size_t level = turn - g;
      if (level >= groups_[g].levels.size() ||
          groups_[g].levels[level].transfers == 0)
        continue;
      result.push_back({g, level, last[g]});
      last[g] = static_cast<int>(result.size()) - 1;
    }
  return result;
}

SwitchMessages DealtSwitch::messages() const {
  const std::vector<Bucket> all = buckets();
  size_t transfers = 0;
  for (const Bucket &bucket : all)
    transfers += groups_[bucket.group].levels[bucket.level].transfers;
  SwitchMessages result;
  result.messages.reserve(transfers);
  MessageJoiner joiner(network_.ranks, result);
  for (const Bucket &bucket : all) {
    joiner.begin();
    for (const Piece &piece :
         groups_[bucket.group].levels[bucket.level].pieces) {
      const int64_t bytes = bytesOf(piece.tensor, boxOf(piece));
      for (const Branch::Step &step : stepsOf(piece))
        joiner.add(step.from, step.to, bytes, step.source, step.target);
    }
    joiner.end(bucket.after);
  }
  return result;
}

SwitchPlan DealtSwitch::plan(const std::vector<int> &order) && {
  const std::vector<Bucket> all = buckets();
  std::vector<int> sequence = order;
  if (sequence.empty()) {
    sequence.resize(all.size());
    std::iota(sequence.begin(), sequence.end(), 0);
  }
  std::vector<int> place(all.size());
  SwitchPlan result;
  result.buckets.resize(all.size());
  for (size_t at = 0; at < sequence.size(); ++at) {
    place[sequence[at]] = static_cast<int>(at);
    const Bucket &bucket = all[sequence[at]];
    SwitchBucket &into = result.buckets[at];
    into.after = bucket.after < 0 ? -1 : place[bucket.after];
    Level &level = groups_[bucket.group].levels[bucket.level];
    into.transfers.reserve(level.transfers);
    for (const Piece &piece : level.pieces)
      for (const Branch::Step &step : stepsOf(piece))
        into.transfers.push_back({piece.tensor, step.from, step.to, step.source,
                                  step.target, boxOf(piece)});
    level = Level();
  }
  return result;
}

} // namespace dyna::switches
