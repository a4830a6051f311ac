//===- ExchangeChecker.cpp - Messages and reductions between ranks --------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/ExchangeChecker.h"

#include "runtime/plan/InstructionBlocks.h"
#include "runtime/plan/Text.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace dyna {
namespace {

using plan::Instruction;

Status bad(const std::string &what) {
  return Status::invalidArgument("plan: " + what);
}

class ExchangeChecker {
public:
  ExchangeChecker(const ExecutableGraph &graph, const plan::Plan &plan,
                  PlanPosition &failedAt)
      : graph_(graph), plan_(plan), failedAt_(failedAt) {}

  Status check() {
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      for (int index = 0; index < program(rank).instructions_size(); ++index)
        DYNA_RETURN_IF_ERROR(collect(rank, index));
    for (const auto &[ends, starts] : channels_)
      if (ends.first < ends.second)
        DYNA_RETURN_IF_ERROR(compareEnds(ends.first, ends.second));
      else if (!channels_.count({ends.second, ends.first}))
        return unmatched(ends.first, starts.front(), ends.second);
    for (const auto &[group, members] : groups_)
      DYNA_RETURN_IF_ERROR(compareMembers(group, members));
    return runAll();
  }

private:
  /// What a group does together: one parameter's gradients or rows, or the
  /// norm (parameter -1).
  struct Exchange {
    Instruction::Op op;
    int parameter;
    int index; ///< of the instruction
    bool operator==(const Exchange &other) const {
      return op == other.op && parameter == other.parameter;
    }
  };
  using Group = ExecutableGraph::HolderGroup;

  /// For messages, of which the first that names a place is noted.
  std::string atRank(int rank, int index, const Instruction &i) const {
    if (failedAt_.rank < 0)
      failedAt_ = {rank, index};
    return formatText("rank %d instruction %d (%s)", rank, index,
                      describeInstruction(i).c_str());
  }

  const plan::RankProgram &program(int rank) const { return plan_.ranks(rank); }
  const Instruction &at(int rank, int index) const {
    return program(rank).instructions(index);
  }
  const ManifestView &view(int rank) const { return graph_.replicaView(rank); }

  //===--------------------------------------------------------------------===//
  // P9, P10
  //===--------------------------------------------------------------------===//

  Status collect(int rank, int index) {
    const Instruction &i = at(rank, index);
    MessageOp op = messageOf(i.op());
    if (op.isMessage)
      return op.starts ? collectMessage(rank, index) : checkPeer(rank, index);
    bool starts = i.op() == Instruction::REDUCE_GRADS_START ||
                  i.op() == Instruction::GATHER_PARAMS_START;
    if (i.op() == Instruction::COMBINE_NORM) {
      Group all = {std::vector<int>(graph_.ranks()), -1};
      for (int r = 0; r < graph_.ranks(); ++r)
        all.ranks[r] = r;
      groups_[all][rank].push_back({i.op(), -1, index});
    }
    for (int p : starts ? shared(rank, i.layer()) : std::vector<int>())
      groups_[graph_.holderGroup(p, rank)][rank].push_back({i.op(), p, index});
    return Status::ok();
  }

  /// The parameters that a layer updates together with other ranks.
  std::vector<int> shared(int rank, int layer) const {
    const ManifestView &own = view(rank);
    std::vector<int> parameters;
    for (int slot = 0; slot < own.layer(layer).parameters_size(); ++slot)
      if (int p = own.layer(layer).parameters(slot);
          own.updates(layer, slot) && own.place(p).holders > 1)
        parameters.push_back(p);
    return parameters;
  }

  Status checkPeer(int rank, int index) {
    const Instruction &i = at(rank, index);
    ExecutableGraph::Place peer = graph_.placeOf(rank);
    MessageOp op = messageOf(i.op());
    peer.stage += op.sends != op.gradient ? 1 : -1;
    if (i.peer() != graph_.rankAt(peer))
      return bad(formatText("%s: the other end of this message is rank %d",
                            atRank(rank, index, i).c_str(),
                            graph_.rankAt(peer)));
    return Status::ok();
  }

  Status collectMessage(int rank, int index) {
    DYNA_RETURN_IF_ERROR(checkPeer(rank, index));
    const Instruction &i = at(rank, index);
    int64_t bytes = view(rank).messageBytes(
        i.layer(), extentOf(plan_.micro_batches(i.micro_batch())));
    if (i.message_bytes() != bytes)
      return bad(formatText(
          "%s: says %lld bytes, but the tensor of its shape and type has %lld",
          atRank(rank, index, i).c_str(),
          static_cast<long long>(i.message_bytes()),
          static_cast<long long>(bytes)));
    auto &starts = channels_[{rank, i.peer()}];
    place_[{rank, i.op(), i.micro_batch()}] = starts.size();
    starts.push_back(index);
    return Status::ok();
  }

  Status unmatched(int rank, int index, int peer) const {
    return bad(formatText("%s has no counterpart on rank %d",
                          atRank(rank, index, at(rank, index)).c_str(), peer));
  }

  Status compareEnds(int a, int b) {
    const std::vector<int> &left = channels_[{a, b}];
    const std::vector<int> &right = channels_[{b, a}];
    for (size_t k = 0; k < std::max(left.size(), right.size()); ++k) {
      if (k >= right.size())
        return unmatched(a, left[k], b);
      if (k >= left.size())
        return unmatched(b, right[k], a);
      const Instruction &x = at(a, left[k]), &y = at(b, right[k]);
      MessageOp p = messageOf(x.op()), q = messageOf(y.op());
      if (p.sends == q.sends || p.gradient != q.gradient ||
          x.micro_batch() != y.micro_batch() || x.layer() != y.layer()) {
        std::string oneEnd = atRank(a, left[k], x);
        std::string otherEnd = atRank(b, right[k], y);
        return bad(formatText(
            "message %zu between ranks %d and %d is %s at one end, but %s at "
            "the other: both ends of a channel need one order",
            k, a, b, oneEnd.c_str(), otherEnd.c_str()));
      }
    }
    return Status::ok();
  }

  Status
  compareMembers(const Group &group,
                 const std::map<int, std::vector<Exchange>> &members) const {
    const auto &[first, expected] = *members.begin();
    for (int rank : group.ranks) {
      auto found = members.find(rank);
      size_t count = found == members.end() ? 0 : found->second.size();
      size_t k = 0;
      while (k < std::min(count, expected.size()) &&
             found->second[k] == expected[k])
        ++k;
      if (k == count && k == expected.size())
        continue;
      auto name = [&](int r, const std::vector<Exchange> *list) {
        return list && k < list->size()
                   ? atRank(r, (*list)[k].index, at(r, (*list)[k].index))
                   : formatText("rank %d nothing", r);
      };
      std::string oneRank = name(first, &expected);
      std::string otherRank =
          name(rank, found == members.end() ? nullptr : &found->second);
      return bad(formatText(
          "exchange %zu of a group is %s, but %s: all ranks of a group need "
          "one order",
          k, oneRank.c_str(), otherRank.c_str()));
    }
    return Status::ok();
  }

  //===--------------------------------------------------------------------===//
  // P11
  //===--------------------------------------------------------------------===//

  /// The rank that this wait needs first, and how far it must be: -1 if
  /// nothing is missing.
  int blocker(int rank, int index) const {
    const Instruction &i = at(rank, index);
    MessageOp op = messageOf(i.op());
    if (op.isMessage && !op.starts) {
      size_t place = place_.at({rank, i.op() - 1, i.micro_batch()});
      const auto &peer = channels_.at({i.peer(), rank});
      return done_[i.peer()] > peer[place] ? -1 : i.peer();
    }
    bool waits = i.op() == Instruction::REDUCE_GRADS_WAIT ||
                 i.op() == Instruction::GATHER_PARAMS_WAIT;
    if (i.op() == Instruction::COMBINE_NORM) {
      for (int r = 0; r < graph_.ranks(); ++r)
        if (r != rank && !reachedNorm(r))
          return r;
      return -1;
    }
    Instruction::Op start = i.op() == Instruction::REDUCE_GRADS_WAIT
                                ? Instruction::REDUCE_GRADS_START
                                : Instruction::GATHER_PARAMS_START;
    for (int p : waits ? shared(rank, i.layer()) : std::vector<int>())
      for (const auto &[r, list] : groups_.at(graph_.holderGroup(p, rank)))
        for (const Exchange &exchange : list)
          if (exchange.op == start && exchange.parameter == p &&
              done_[r] <= exchange.index)
            return r;
    return -1;
  }

  bool reachedNorm(int rank) const {
    int index = done_[rank];
    for (const auto &[group, members] : groups_)
      if (auto found = members.find(rank); found != members.end())
        for (const Exchange &exchange : found->second)
          if (exchange.op == Instruction::COMBINE_NORM)
            return index >= exchange.index;
    return true;
  }

  Status runAll() {
    done_.assign(graph_.ranks(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (int rank = 0; rank < graph_.ranks(); ++rank)
        while (done_[rank] < program(rank).instructions_size() &&
               blocker(rank, done_[rank]) < 0) {
          ++done_[rank];
          progress = true;
        }
    }
    for (int rank = 0; rank < graph_.ranks(); ++rank)
      if (done_[rank] < program(rank).instructions_size())
        return describeCycle(rank);
    return Status::ok();
  }

  Status describeCycle(int rank) const {
    std::string text;
    std::vector<char> seen(graph_.ranks(), 0);
    for (int r = rank; !seen[r]; r = blocker(r, done_[r])) {
      seen[r] = 1;
      text += (text.empty() ? "" : "; ") +
              atRank(r, done_[r], at(r, done_[r])) +
              formatText(" waits for rank %d", blocker(r, done_[r]));
    }
    return bad("the ranks wait for each other: " + text);
  }

  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  PlanPosition &failedAt_;
  /// Instructions that start messages, by (rank, peer), in order; and the
  /// place in its list of each, by (rank, instruction, micro-batch). A wait's
  /// instruction is numbered one behind its start's.
  std::map<std::pair<int, int>, std::vector<int>> channels_;
  std::map<std::tuple<int, int, int>, size_t> place_;
  std::map<Group, std::map<int, std::vector<Exchange>>> groups_;
  std::vector<int> done_; ///< instructions behind each rank
};

} // namespace

Status verifyExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                       PlanPosition &failedAt) {
  return ExchangeChecker(graph, plan, failedAt).check();
}

} // namespace dyna
