//===- RankExchange.cpp - Exchanges data of one graph with other ranks ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/RankExchange.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"

#include <algorithm>

namespace dyna {

using plan::Instruction;

StatusOr<Group *> SharedGroups::find(const Key &key, Transport &transport) {
  std::unique_ptr<Group> &group = groups_[key];
  if (!group) {
    DYNA_ASSIGN_OR_RETURN(
        group, transport.createGroup(key.ranks, transport.deadline()));
  }
  return group.get();
}

/// Stands for all ranks in a key, beside holders of parameters.
static constexpr int kAllRanks = -2;

StatusOr<std::unique_ptr<RankExchange>>
RankExchange::create(const ExecutableGraph &graph, const RankView &view,
                     Transport &transport, SharedGroups &groups) {
  // Ranks of the machine that have no place in the graph take no part.
  if (transport.ranks() < graph.ranks())
    return Status::invalidArgument(formatText(
        "strategy '%s' needs %d ranks, but there are %d",
        describeStrategy(graph.strategy()), graph.ranks(), transport.ranks()));
  std::unique_ptr<RankExchange> exchange(
      new RankExchange(graph, view, transport));
  DYNA_RETURN_IF_ERROR(exchange->createGroups(groups));
  return exchange;
}

RankExchange::~RankExchange() = default;

Status RankExchange::createGroups(SharedGroups &groups) {
  // Ranks that share several groups must create them in one order. This is axes
  // and their factors, then groups of holders in the order of the graph, then
  // all ranks.
  std::vector<ExecutableGraph::HolderGroup> wanted;
  auto mine = [&](const std::vector<int> &ranks) {
    return std::find(ranks.begin(), ranks.end(), rank()) != ranks.end();
  };
  std::vector<std::vector<int>> compiled;
  for (int index = 0; index < graph_.compiledGroups(); ++index)
    compiled.push_back(graph_.compiledGroup(rank(), index));
  for (const std::vector<int> &ranks : compiled)
    wanted.push_back({ranks, -1});
  for (const ExecutableGraph::HolderGroup &group : graph_.holderGroups())
    if (group.ranks.size() > 1 && mine(group.ranks))
      wanted.push_back(group);
  for (const ExecutableGraph::HolderGroup &want : wanted) {
    if (want.ranks.size() < 2 || groups_.count(want))
      continue;
    DYNA_ASSIGN_OR_RETURN(groups_[want], groups.find(want, transport_));
  }
  std::vector<int> all(graph_.ranks());
  for (int r = 0; r < graph_.ranks(); ++r)
    all[r] = r;
  DYNA_ASSIGN_OR_RETURN(world_, groups.find({all, kAllRanks}, transport_));
  for (const std::vector<int> &ranks : compiled)
    abiGroups_.push_back(
        toAbi(ranks.size() < 2 ? nullptr : groups_.at({ranks, -1})));
  holders_.assign(view_.parameters(), nullptr);
  for (int p = 0; p < view_.parameters(); ++p)
    if (view_.holds(p) && view_.place(p).holders > 1)
      holders_[p] =
          groups_.at(graph_.holderGroups()[graph_.holderGroup(p, rank())]);
  return Status::ok();
}

Status RankExchange::message(const Instruction &i, void *data, int64_t bytes,
                             void *stream) {
  ExchangeOp op = exchangeOf(i.op);
  std::tuple<ExchangeKind, bool, int, int> key = {op.kind, op.sends, edgeOf(i),
                                                  i.microBatch};
  if (!op.starts) {
    auto found = messages_.find(key);
    if (found == messages_.end())
      return Status::internal("waits for a message that was not started");
    Ticket ticket = found->second;
    messages_.erase(found);
    return transport_.wait(ticket, stream, transport_.deadline());
  }
  // The last tags are those of switches (SwitchCarrier.cpp).
  static_assert(2 * plan::maxMicroBatches < Transport::kLargestTag - 8);
  // Edges between the same stages share a tag. Their messages arrive in the order in
  // which both ends start them (P10).
  int32_t tag = 2 * i.microBatch + (op.isGradient() ? 1 : 0);
  int peer = graph_.peerOf(rank(), edgeOf(i), op.isTowardsConsumer());
  DYNA_ASSIGN_OR_RETURN(
      Ticket ticket,
      op.sends ? transport_.startSend(peer, tag, data, bytes, stream)
               : transport_.startReceive(peer, tag, data, bytes, stream));
  messages_[key] = ticket;
  return Status::ok();
}

/// Returns the collective along a parameter's rows, which are split over its
/// holders.
Collective RankExchange::along(const ParameterData &parameter) const {
  Collective rows;
  rows.element = parameter.element;
  rows.outer = 1;
  rows.first = view_.rows(parameter.parameter);
  rows.inner = view_.rowElements(parameter.parameter);
  return rows;
}

template <typename Make>
Status RankExchange::start(int layer,
                           const std::vector<ParameterData> &parameters,
                           Make make, void *stream) {
  // Start exchanges in the order of the layer. Ranks of one group have the same
  // layers, or start each shared parameter by itself (ProgramWriter.h).
  std::vector<std::pair<Group *, std::vector<Collective>>> calls;
  for (const ParameterData &parameter : parameters) {
    Group *group = holders_[parameter.parameter];
    auto call = std::find_if(calls.begin(), calls.end(), [&](const auto &one) {
      return one.first == group;
    });
    if (call == calls.end())
      call = calls.insert(calls.end(), {group, {}});
    int64_t own = view_.place(parameter.parameter).updateBegin *
                  view_.rowElements(parameter.parameter) *
                  elementBytes(parameter.element);
    call->second.push_back(make(along(parameter),
                                static_cast<char *>(parameter.data) + own,
                                parameter.data));
  }
  for (auto &[group, collectives] : calls) {
    DYNA_ASSIGN_OR_RETURN(Ticket ticket,
                          group->start(std::move(collectives), stream));
    layers_[layer].push_back(ticket);
  }
  return Status::ok();
}

Status RankExchange::startReductions(
    int layer, const std::vector<ParameterData> &gradients, void *stream) {
  return start(
      layer, gradients,
      [&](Collective sum, void *ownRows, void *all) {
        sum.kind = view_.zero() ? CollectiveKind::ReduceScatter
                                : CollectiveKind::AllReduce;
        sum.in = all;
        sum.out = view_.zero() ? ownRows : all;
        return sum;
      },
      stream);
}

Status RankExchange::startGathers(int layer,
                                  const std::vector<ParameterData> &values,
                                  void *stream) {
  return start(
      layer, values,
      [&](Collective gather, void *ownRows, void *all) {
        gather.kind = CollectiveKind::AllGather;
        gather.in = ownRows;
        gather.out = all;
        return gather;
      },
      stream);
}

Status RankExchange::wait(int layer, void *stream) {
  auto found = layers_.find(layer);
  if (found == layers_.end())
    return Status::internal("waits for an exchange that was not started");
  std::vector<Ticket> tickets = std::move(found->second);
  layers_.erase(found);
  for (const Ticket &ticket : tickets)
    DYNA_RETURN_IF_ERROR(
        transport_.wait(ticket, stream, transport_.deadline()));
  return Status::ok();
}

Status RankExchange::sum(double *values, int64_t count, void *stream) {
  DYNA_ASSIGN_OR_RETURN(
      Ticket ticket,
      world_->start(Collective::flat(CollectiveKind::AllReduce, values, values,
                                     count, DYNA_ELEMENT_F64),
                    stream));
  return transport_.wait(ticket, stream, transport_.deadline());
}

} // namespace dyna
