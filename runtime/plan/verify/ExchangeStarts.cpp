//===- ExchangeStarts.cpp - Lists the exchanges that ranks start together -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/ExchangeStarts.h"

#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace dyna {

using plan::Instruction;
using Wire = ExchangeStarts::Wire;
using Start = ExchangeStarts::Start;

bool callsLayer(const Instruction &i) {
  return roleOf(i) >= 0 && isPerMicroBatch(i.op);
}

//===----------------------------------------------------------------------===//
// Starts of each rank
//===----------------------------------------------------------------------===//

namespace {

class Collector {
public:
  Collector(const ExecutableGraph &graph, const plan::Plan &plan)
      : graph_(graph), plan_(plan),
        holderWires_(graph.holderGroups().size(), -1) {
    all_.starts.resize(graph.ranks());
  }

  ExchangeStarts collectAll() {
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      ends_.clear();
      holderEnds_.assign(graph_.model().parameters(), {});
      compiledEnds_.assign(graph_.compiledGroups(), {});
      for (int index = 0; index < plan_.ranks[rank].count(); ++index)
        collect(rank, index);
    }
    return std::move(all_);
  }

private:
  using Group = ExecutableGraph::HolderGroup;
  /// A rank's end of a wire.
  struct End {
    int wire = -1, side = -1;
  };
  static constexpr int normGroup = -2; ///< all ranks, apart from holders

  const Instruction &at(int rank, int index) const {
    return plan_.ranks[rank].instructions[index];
  }
  const RankView &view(int rank) const { return graph_.replicaView(rank); }

  void collect(int rank, int index) {
    const Instruction &i = at(rank, index);
    ExchangeOp op = exchangeOf(i.op);
    if (op.isSwitch() && op.starts)
      all_.starts[rank].push_back({-1, -1, index});
    else if (op.isMessage())
      collectMessage(rank, index);
    else if (op.kind == ExchangeKind::Norm)
      start(rank, {normWire(), rank}, index);
    else if (op.isOfParameters() && op.starts)
      collectParameters(rank, index);
    else if (callsLayer(i))
      collectCalls(rank, index);
  }

  void start(int rank, End end, int index, int parameter = -1) {
    std::vector<Wire::Entry> &side = all_.wires[end.wire].sides[end.side];
    all_.starts[rank].push_back(
        {end.wire, static_cast<int>(side.size()), index});
    side.push_back({index, parameter});
  }

  int wireOf(const Group &group, bool isChannel = false) {
    auto [found, isNew] = wireIds_.insert(
        {{isChannel, group}, static_cast<int>(all_.wires.size())});
    if (isNew) {
      all_.wires.emplace_back();
      all_.wires.back().isChannel = isChannel;
      all_.wires.back().ranks = group.ranks;
      all_.wires.back().sides.resize(group.ranks.size());
    }
    return found->second;
  }

  /// Returns the end of a small group.
  End endOf(int rank, const Group &group, bool isChannel = false) {
    int wire = wireOf(group, isChannel);
    const std::vector<int> &ranks = all_.wires[wire].ranks;
    auto side = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return {wire, static_cast<int>(side)};
  }

  // Groups that grow with the replicas are listed once, not for each of their
  // ranks.

  int normWire() {
    if (normWire_ < 0) {
      std::vector<int> all(graph_.ranks());
      std::iota(all.begin(), all.end(), 0);
      normWire_ = wireOf({std::move(all), normGroup});
    }
    return normWire_;
  }

  End holderEnd(int rank, int parameter) {
    int group = graph_.holderGroup(parameter, rank);
    if (holderWires_[group] < 0)
      holderWires_[group] = wireOf(graph_.holderGroups()[group]);
    int64_t side = graph_.holderIndex(parameter, rank).index;
    return {holderWires_[group], static_cast<int>(side)};
  }

  void collectMessage(int rank, int index) {
    const Instruction &i = at(rank, index);
    ExchangeOp op = exchangeOf(i.op);
    if (!op.starts)
      return;
    int peer = graph_.peerOf(rank, edgeOf(i), op.isTowardsConsumer());
    auto [found, isNew] = ends_.insert({peer, {}});
    if (isNew)
      found->second =
          endOf(rank, {{std::min(rank, peer), std::max(rank, peer)}, -1}, true);
    start(rank, found->second, index);
  }

  /// Collects the parameters that the layer updates together with other ranks.
  /// RankExchange reduces all parameters of one group in one call.
  void collectParameters(int rank, int index) {
    const RankView &own = view(rank);
    const Instruction &i = at(rank, index);
    std::vector<std::pair<int, int>> parameters; // wire, parameter
    for (int slot : own.sharedSlots(i.layer)) {
      if (!exchangesSlot(i, slot))
        continue;
      int p = own.layer(i.layer).parameters(slot);
      if (holderEnds_[p].wire < 0)
        holderEnds_[p] = holderEnd(rank, p);
      parameters.push_back({holderEnds_[p].wire, p});
    }
    for (size_t first = 0; first < parameters.size(); ++first)
      if (int wire = parameters[first].first; wire >= 0)
        for (size_t next = first; next < parameters.size(); ++next)
          if (parameters[next].first == wire) {
            int p = parameters[next].second;
            start(rank, holderEnds_[p], index, p);
            parameters[next].first = -1;
          }
  }

  /// Exchanges of one group that follow each other in a function count as one:
  /// ranks that meet there for the first meet for all.
  void collectCalls(int rank, int index) {
    const Instruction &i = at(rank, index);
    int last = -1;
    for (const plan::LayerExchange &exchange :
         view(rank).exchanges(i.layer, roleOf(i))) {
      if (exchange.group() == last)
        continue;
      last = exchange.group();
      End &end = compiledEnds_[last];
      if (end.wire < 0)
        end = endOf(rank, {graph_.compiledGroup(rank, last), -1});
      start(rank, end, index);
    }
  }

  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  ExchangeStarts all_;
  std::map<std::pair<bool, Group>, int> wireIds_;
  int normWire_ = -1;
  std::vector<int> holderWires_; ///< of the graph's groups of holders
  // The rank whose instructions are being collected.
  std::map<int, End> ends_;       ///< of channels, by peer
  std::vector<End> holderEnds_;   ///< by parameter
  std::vector<End> compiledEnds_; ///< by group of compiled code
};

} // namespace

ExchangeStarts ExchangeStarts::of(const ExecutableGraph &graph,
                                  const plan::Plan &plan) {
  return Collector(graph, plan).collectAll();
}

//===----------------------------------------------------------------------===//
// How they meet
//===----------------------------------------------------------------------===//

Rendezvous::Rendezvous(const ExchangeStarts &starts)
    : starts_(starts), next_(starts.starts.size(), 0),
      position_(starts.starts.size(), 0) {}

const Start *Rendezvous::next(int rank) const {
  const std::vector<Start> &own = starts_.starts[rank];
  return next_[rank] < own.size() ? &own[next_[rank]] : nullptr;
}

int Rendezvous::blocker(int rank) const {
  const Start &start = *next(rank);
  for (int other : starts_.wires[start.wire].ranks) {
    const Start *there = next(other);
    if (!there || there->wire != start.wire || there->entry != start.entry)
      return other;
  }
  return rank;
}

void Rendezvous::pass(const Start &start) {
  for (int member : starts_.wires[start.wire].ranks) {
    position_[member] =
        std::max(position_[member], next(member)->instruction + 1);
    ++next_[member];
  }
}

bool Rendezvous::advance(int rank, int instruction) {
  // Each goal after the first is one that the previous goal waits for: a rank
  // must arrive at an entry.
  struct Goal {
    int rank, instruction, wire, entry;
  };
  std::vector<Goal> goals = {{rank, instruction, -1, -1}};
  while (!goals.empty()) {
    const Goal goal = goals.back();
    const Start *start = next(goal.rank);
    const bool isPast = !start || start->instruction >= goal.instruction;
    const bool isThere =
        start && start->wire == goal.wire && start->entry == goal.entry;
    if (goal.wire < 0 ? isPast : isThere) {
      position_[goal.rank] = std::max(position_[goal.rank], goal.instruction);
      goals.pop_back();
      continue;
    }
    if (!start || start->instruction > goal.instruction)
      return false;
    const int other = blocker(goal.rank);
    if (other == goal.rank) {
      pass(*start);
      continue;
    }
    for (const Goal &waiting : goals)
      if (waiting.rank == other)
        return false;
    const Wire &wire = starts_.wires[start->wire];
    const auto side = std::find(wire.ranks.begin(), wire.ranks.end(), other) -
                      wire.ranks.begin();
    goals.push_back({other, wire.sides[side][start->entry].instruction,
                     start->wire, start->entry});
  }
  return true;
}

std::optional<int> Rendezvous::finish() {
  // The ranks that have arrived at each entry. Each rank reports it once.
  std::vector<std::vector<int>> arrived(starts_.wires.size());
  for (size_t w = 0; w < arrived.size(); ++w)
    arrived[w].assign(starts_.wires[w].sides.front().size(), 0);
  std::vector<int> moved;
  for (int rank = static_cast<int>(next_.size()) - 1; rank >= 0; --rank)
    moved.push_back(rank);
  while (!moved.empty()) {
    int rank = moved.back();
    moved.pop_back();
    const Start *start = next(rank);
    if (!start)
      continue;
    const Wire &wire = starts_.wires[start->wire];
    if (++arrived[start->wire][start->entry] <
        static_cast<int>(wire.ranks.size()))
      continue;
    pass(*start);
    moved.insert(moved.end(), wire.ranks.begin(), wire.ranks.end());
  }
  for (size_t rank = 0; rank < next_.size(); ++rank)
    if (next(static_cast<int>(rank)))
      return static_cast<int>(rank);
  return std::nullopt;
}

} // namespace dyna
