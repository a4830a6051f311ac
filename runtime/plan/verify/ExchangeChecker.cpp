//===- ExchangeChecker.cpp - Verifies exchanges between ranks -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/ExchangeChecker.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/PlanRules.h"

#include <algorithm>
#include <set>

namespace dyna {
namespace {

using plan::Instruction;
using Wire = ExchangeStarts::Wire;

/// Returns true if these instructions of two ranks of a stage are one call.
bool isSameCall(const Instruction &a, const Instruction &b) {
  return a.op == b.op && a.layer == b.layer && a.microBatch == b.microBatch &&
         (!hasField(a.op, Field::Recompute) || a.recompute == b.recompute);
}

class ExchangeChecker {
public:
  ExchangeChecker(const ExecutableGraph &graph, const plan::Plan &plan,
                  PlanPosition &failedAt)
      : graph_(graph), plan_(plan), failedAt_(failedAt),
        starts_(ExchangeStarts::of(graph, plan)) {}

  /// Verifies P9 and P10.
  Status compare() {
    for (const Wire &wire : starts_.wires)
      if (wire.isChannel)
        DYNA_RETURN_IF_ERROR(compareEnds(wire));
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      if (graph_.placeOf(rank).shard > 0)
        DYNA_RETURN_IF_ERROR(compareShards(rank));
    for (const Wire &wire : starts_.wires)
      if (!wire.isChannel)
        DYNA_RETURN_IF_ERROR(compareMembers(wire));
    return Status::ok();
  }

  ExchangeStarts takeStarts() { return std::move(starts_); }

private:
  /// Describes a place for messages, and records the first one.
  std::string atRank(int rank, int index) const {
    if (failedAt_.rank < 0)
      failedAt_ = {rank, index};
    return describeAt(graph_, plan_, rank, index);
  }

  const plan::RankProgram &program(int rank) const { return plan_.ranks[rank]; }
  const Instruction &at(int rank, int index) const {
    return program(rank).instructions[index];
  }
  const RankView &view(int rank) const { return graph_.replicaView(rank); }

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
          x.microBatch != y.microBatch || edgeOf(x) != edgeOf(y)) {
        std::string oneEnd = atRank(a, left[k].instruction);
        std::string otherEnd = atRank(b, right[k].instruction);
        // If both send or both receive, they wait for ever.
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

  /// Checks that the rank runs the same layers as the first of its
  /// tensor-parallel group. Exchanges of functions do not name their
  /// micro-batch. Without exchanges, gradients of shared parameters must still
  /// be added in one order, so that they are equal to the last bit.
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

  /// Parameters that one instruction exchanges with one group are one call.
  static bool isSameAsBefore(const std::vector<Wire::Entry> &side, size_t k) {
    return k > 0 && side[k].instruction == side[k - 1].instruction;
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
             isSame(firstRank, expected[k], rank, got[k]) &&
             isSameAsBefore(expected, k) == isSameAsBefore(got, k))
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

  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  PlanPosition &failedAt_;
  ExchangeStarts starts_;
};

} // namespace

Status compareExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                        PlanPosition &failedAt, ExchangeStarts &starts) {
  ExchangeChecker checker(graph, plan, failedAt);
  DYNA_RETURN_IF_ERROR(checker.compare());
  starts = checker.takeStarts();
  return Status::ok();
}

Status carryOutExchanges(const ExchangeStarts &starts,
                         const NameStart &nameOf) {
  Rendezvous run(starts);
  const std::optional<int> stuck = run.finish();
  if (!stuck)
    return Status::ok();
  std::string text;
  std::set<int> seen;
  for (int rank = *stuck; seen.insert(rank).second; rank = run.blocker(rank)) {
    text += text.empty() ? "" : "; ";
    if (!run.next(rank)) {
      text += formatText("rank %d has come to its end", rank);
      break;
    }
    text += nameOf(rank, *run.next(rank)) +
            formatText(" waits for rank %d", run.blocker(rank));
  }
  return refuse(PlanRule::Ends,
                "the ranks wait for each other: " + text +
                    "; ranks need one order of all that they start together");
}

std::string describeAt(const ExecutableGraph &graph, const plan::Plan &plan,
                       int rank, int index) {
  const Instruction &i = plan.ranks[rank].instructions[index];
  std::string what = describeInstruction(i);
  if (ExchangeOp op = exchangeOf(i.op); op.isMessage())
    what += formatText(" %s rank %d", op.sends ? "to" : "from",
                       graph.peerOf(rank, edgeOf(i), op.isTowardsConsumer()));
  return formatText("rank %d instruction %d (%s)", rank, index, what);
}

Status verifyExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                       PlanPosition &failedAt) {
  ExchangeStarts starts;
  DYNA_RETURN_IF_ERROR(compareExchanges(graph, plan, failedAt, starts));
  return carryOutExchanges(
      starts, [&](int rank, const ExchangeStarts::Start &start) {
        if (failedAt.rank < 0)
          failedAt = {rank, start.instruction};
        return describeAt(graph, plan, rank, start.instruction);
      });
}

} // namespace dyna
