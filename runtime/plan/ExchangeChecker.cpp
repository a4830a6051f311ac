//===- ExchangeChecker.cpp - Messages and exchanges between ranks ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/ExchangeChecker.h"

#include "runtime/base/Text.h"
#include "runtime/plan/InstructionTable.h"
#include "runtime/plan/PlanRules.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace dyna {
namespace {

using plan::Instruction;

/// A function that works on a micro-batch.
bool callsLayer(const Instruction &i) {
  return roleOf(i) >= 0 && isPerMicroBatch(i.op);
}

/// Whether two ranks of a stage that run these do one thing together.
bool isSameCall(const Instruction &a, const Instruction &b) {
  return a.op == b.op && a.layer == b.layer && a.microBatch == b.microBatch &&
         (!hasField(a.op, Field::Recompute) || a.recompute == b.recompute);
}

/// Ranks that exchange something in one order: the two ends of a channel, or a
/// group. What rank `ranks[i]` starts there is in `sides[i]`.
struct Wire {
  struct Entry {
    int instruction;
    /// Whose gradients or rows; -1 for messages, norms and layer functions.
    int parameter;
  };
  bool isChannel = false;
  std::vector<int> ranks;
  std::vector<std::vector<Entry>> sides;
  std::vector<int> arrived; ///< ranks that have reached an entry
};

/// What a rank starts, in order: an entry of a wire.
struct Start {
  int wire, entry, instruction;
};

class ExchangeChecker {
public:
  ExchangeChecker(const ExecutableGraph &graph, const plan::Plan &plan,
                  PlanPosition &failedAt)
      : graph_(graph), plan_(plan), failedAt_(failedAt), starts_(graph.ranks()),
        holderWires_(graph.holderGroups().size(), -1) {}

  Status check() {
    for (int rank = 0; rank < graph_.ranks(); ++rank) {
      ends_.clear();
      holderEnds_.assign(graph_.model().parameters(), {});
      compiledEnds_.assign(graph_.compiledGroups(), {});
      for (int index = 0; index < program(rank).count(); ++index)
        collect(rank, index);
    }
    for (const Wire &wire : wires_)
      if (wire.isChannel)
        DYNA_RETURN_IF_ERROR(compareEnds(wire));
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      if (graph_.placeOf(rank).shard > 0)
        DYNA_RETURN_IF_ERROR(compareShards(rank));
    for (const Wire &wire : wires_)
      if (!wire.isChannel)
        DYNA_RETURN_IF_ERROR(compareMembers(wire));
    return runAll();
  }

private:
  using Group = ExecutableGraph::HolderGroup;
  /// A rank's end of a wire.
  struct End {
    int wire = -1, side = -1;
  };
  static constexpr int normGroup = -2; ///< all ranks, apart from holders

  /// For messages, of which the first that names a place is noted.
  std::string atRank(int rank, int index) const {
    if (failedAt_.rank < 0)
      failedAt_ = {rank, index};
    std::string what = describeInstruction(at(rank, index));
    if (ExchangeOp op = exchangeOf(at(rank, index).op); op.isMessage())
      what += formatText(" %s rank %d", op.sends ? "to" : "from",
                         graph_.peerOf(rank, op.stagesOn()));
    return formatText("rank %d instruction %d (%s)", rank, index, what);
  }

  const plan::RankProgram &program(int rank) const { return plan_.ranks[rank]; }
  const Instruction &at(int rank, int index) const {
    return program(rank).instructions[index];
  }
  const RankView &view(int rank) const { return graph_.replicaView(rank); }

  //===--------------------------------------------------------------------===//
  // What each rank starts
  //===--------------------------------------------------------------------===//

  void collect(int rank, int index) {
    const Instruction &i = at(rank, index);
    ExchangeOp op = exchangeOf(i.op);
    if (op.isMessage())
      collectMessage(rank, index);
    else if (op.kind == ExchangeKind::Norm)
      start(rank, {normWire(), rank}, index);
    else if (op.isOfParameters() && op.starts)
      collectParameters(rank, index);
    else if (callsLayer(i))
      collectCalls(rank, index);
  }

  void start(int rank, End end, int index, int parameter = -1) {
    std::vector<Wire::Entry> &side = wires_[end.wire].sides[end.side];
    starts_[rank].push_back({end.wire, static_cast<int>(side.size()), index});
    side.push_back({index, parameter});
  }

  int wireOf(const Group &group, bool isChannel = false) {
    auto [found, isNew] =
        wireIds_.insert({{isChannel, group}, static_cast<int>(wires_.size())});
    if (isNew) {
      wires_.emplace_back();
      wires_.back().isChannel = isChannel;
      wires_.back().ranks = group.ranks;
      wires_.back().sides.resize(group.ranks.size());
    }
    return found->second;
  }

  /// Of a group of few ranks.
  End endOf(int rank, const Group &group, bool isChannel = false) {
    int wire = wireOf(group, isChannel);
    const std::vector<int> &ranks = wires_[wire].ranks;
    auto side = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return {wire, static_cast<int>(side)};
  }

  // Groups that grow with the replicas are listed once, not by each of their
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
    ExchangeOp op = exchangeOf(at(rank, index).op);
    if (!op.starts)
      return;
    int peer = graph_.peerOf(rank, op.stagesOn());
    auto [found, isNew] = ends_.insert({peer, {}});
    if (isNew)
      found->second =
          endOf(rank, {{std::min(rank, peer), std::max(rank, peer)}, -1}, true);
    start(rank, found->second, index);
  }

  /// What the layer updates together with other ranks; those of one group are
  /// one call, as RankExchange makes them.
  void collectParameters(int rank, int index) {
    const RankView &own = view(rank);
    int layer = at(rank, index).layer;
    const auto &list = own.layer(layer).parameters();
    std::vector<std::pair<int, int>> parameters; // wire, parameter
    for (int slot = 0; slot < list.size(); ++slot) {
      int p = list.Get(slot);
      if (!own.updates(layer, slot) || own.place(p).holders == 1)
        continue;
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

  //===--------------------------------------------------------------------===//
  // P9, P10
  //===--------------------------------------------------------------------===//

  Status unmatched(int rank, const Wire::Entry &entry, int peer) const {
    return refuse(PlanRule::Matched,
                  formatText("%s has no counterpart on rank %d",
                             atRank(rank, entry.instruction), peer));
  }

  Status compareEnds(const Wire &wire) const {
    int a = wire.ranks[0], b = wire.ranks[1];
    const auto &left = wire.sides[0], &right = wire.sides[1];
    for (size_t k = 0; k < std::max(left.size(), right.size()); ++k) {
      if (k >= right.size())
        return unmatched(a, left[k], b);
      if (k >= left.size())
        return unmatched(b, right[k], a);
      const Instruction &x = at(a, left[k].instruction);
      const Instruction &y = at(b, right[k].instruction);
      ExchangeOp p = exchangeOf(x.op), q = exchangeOf(y.op);
      if (p.sends == q.sends || p.kind != q.kind ||
          x.microBatch != y.microBatch || x.layer != y.layer) {
        std::string oneEnd = atRank(a, left[k].instruction);
        std::string otherEnd = atRank(b, right[k].instruction);
        // What both send, or both receive, neither comes to.
        std::string cycle =
            p.sends == q.sends
                ? formatText("; rank %d waits for rank %d, and that one for "
                             "rank %d",
                             a, b, a)
                : "";
        return refuse(
            PlanRule::Agreed,
            formatText("message %d between ranks %d and %d is %s at one end, "
                       "but %s at "
                       "the other: both ends of a channel need one order%s",
                       k, a, b, oneEnd, otherEnd, cycle));
      }
    }
    return Status::ok();
  }

  /// The rank runs the same layers as the first of its tensor-parallel group.
  /// What a function exchanges does not say of which micro-batch it is, and
  /// where nothing is exchanged, gradients of parameters that all of them have
  /// must still be added up in one order to stay equal to the last bit.
  Status compareShards(int rank) const {
    ExecutableGraph::Place place = graph_.placeOf(rank);
    place.shard = 0;
    int first = graph_.rankAt(place);
    auto skip = [&](int r, int index) {
      while (index < program(r).count() && !callsLayer(at(r, index)))
        ++index;
      return index;
    };
    auto name = [&](int r, int index) {
      return index < program(r).count() ? atRank(r, index)
                                        : formatText("nothing on rank %d", r);
    };
    int i = 0, j = 0;
    for (size_t k = 0;; ++k, ++i, ++j) {
      i = skip(first, i), j = skip(rank, j);
      bool iEnds = i == program(first).count();
      bool jEnds = j == program(rank).count();
      if (iEnds && jEnds)
        return Status::ok();
      if (iEnds || jEnds || !isSameCall(at(first, i), at(rank, j))) {
        std::string expected = name(first, i), got = name(rank, j);
        return refuse(PlanRule::Agreed,
                      formatText("call %d of a layer is %s, but %s: "
                                 "tensor-parallel ranks run the "
                                 "same layers of the same micro-batches in the "
                                 "same modes and order",
                                 k, expected, got));
      }
    }
  }

  bool isSame(int a, const Wire::Entry &x, int b, const Wire::Entry &y) const {
    const Instruction &i = at(a, x.instruction), &j = at(b, y.instruction);
    if (x.parameter >= 0 || y.parameter >= 0 || !callsLayer(i))
      return i.op == j.op && x.parameter == y.parameter;
    return isSameCall(i, j);
  }

  Status compareMembers(const Wire &wire) const {
    size_t first = 0;
    while (wire.sides[first].empty())
      ++first;
    const auto &expected = wire.sides[first];
    int firstRank = wire.ranks[first];
    for (size_t side = 0; side < wire.sides.size(); ++side) {
      const auto &got = wire.sides[side];
      int rank = wire.ranks[side];
      size_t k = 0;
      while (k < std::min(got.size(), expected.size()) &&
             isSame(firstRank, expected[k], rank, got[k]))
        ++k;
      if (k == got.size() && k == expected.size())
        continue;
      auto name = [&](int r, const std::vector<Wire::Entry> &list) {
        return k < list.size() ? atRank(r, list[k].instruction)
                               : formatText("rank %d nothing", r);
      };
      std::string oneRank = name(firstRank, expected);
      std::string otherRank = name(rank, got);
      return refuse(
          PlanRule::Agreed,
          formatText(
              "exchange %d of a group is %s, but %s: all ranks of a group need "
              "one order",
              k, oneRank, otherRank));
    }
    return Status::ok();
  }

  //===--------------------------------------------------------------------===//
  // P11
  //===--------------------------------------------------------------------===//

  /// Lets every rank carry out what it starts, one after another: an entry is
  /// done when all ranks of its wire have reached it. Waits need not be looked
  /// at: what is waited for was started before, and so is done.
  Status runAll() {
    for (Wire &wire : wires_)
      wire.arrived.assign(wire.sides[0].size(), 0);
    next_.assign(graph_.ranks(), 0);
    std::vector<int> moved;
    for (int rank = graph_.ranks() - 1; rank >= 0; --rank)
      moved.push_back(rank);
    while (!moved.empty()) {
      int rank = moved.back();
      moved.pop_back();
      if (isDone(rank))
        continue;
      const Start &start = starts_[rank][next_[rank]];
      Wire &wire = wires_[start.wire];
      if (++wire.arrived[start.entry] < static_cast<int>(wire.ranks.size()))
        continue;
      for (int member : wire.ranks) {
        ++next_[member];
        moved.push_back(member);
      }
    }
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      if (!isDone(rank))
        return describeCycle(rank);
    return Status::ok();
  }

  bool isDone(int rank) const { return next_[rank] == starts_[rank].size(); }

  /// The first rank that has not come to where `rank` stands.
  int blocker(int rank) const {
    const Start &start = starts_[rank][next_[rank]];
    for (int other : wires_[start.wire].ranks) {
      const Start &there = starts_[other][next_[other]];
      if (there.wire != start.wire || there.entry != start.entry)
        return other;
    }
    return rank;
  }

  Status describeCycle(int rank) const {
    std::string text;
    std::vector<char> seen(graph_.ranks(), 0);
    for (int r = rank; !seen[r]; r = blocker(r)) {
      seen[r] = 1;
      text += (text.empty() ? "" : "; ") +
              atRank(r, starts_[r][next_[r]].instruction) +
              formatText(" waits for rank %d", blocker(r));
    }
    return refuse(PlanRule::Ends,
                  "the ranks wait for each other: " + text +
                      "; ranks need one order of all that they start together");
  }

  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  PlanPosition &failedAt_;
  std::vector<Wire> wires_;
  std::map<std::pair<bool, Group>, int> wireIds_;
  int normWire_ = -1;
  std::vector<std::vector<Start>> starts_; ///< by rank
  std::vector<int> holderWires_;           ///< of the graph's groups of holders
  std::vector<size_t> next_;               ///< of each rank's starts
  // Of the rank whose instructions are being collected.
  std::map<int, End> ends_;       ///< of channels, by peer
  std::vector<End> holderEnds_;   ///< by parameter
  std::vector<End> compiledEnds_; ///< by group of compiled code
};

} // namespace

Status verifyExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                       PlanPosition &failedAt) {
  return ExchangeChecker(graph, plan, failedAt).check();
}

} // namespace dyna
