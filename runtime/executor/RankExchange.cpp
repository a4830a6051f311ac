//===- RankExchange.cpp - What a rank exchanges with others -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/RankExchange.h"

#include "runtime/plan/InstructionBlocks.h"
#include "runtime/plan/Text.h"

#include <algorithm>

namespace dyna {

using plan::Instruction;

StatusOr<std::unique_ptr<RankExchange>>
RankExchange::create(const ExecutableGraph &graph, const ManifestView &view,
                     Transport &transport) {
  if (transport.ranks() != graph.ranks())
    return Status::invalidArgument(
        formatText("strategy '%s' needs %d ranks, but there are %d",
                   describeStrategy(graph.strategy()).c_str(), graph.ranks(),
                   transport.ranks()));
  std::unique_ptr<RankExchange> exchange(
      new RankExchange(graph, view, transport));
  DYNA_RETURN_IF_ERROR(exchange->createGroups());
  return exchange;
}

RankExchange::~RankExchange() = default;

Status RankExchange::createGroups() {
  // Ranks that share several groups must create them in one order: the axes and
  // their factors, the holders' groups as the graph lists them, then everybody.
  std::vector<std::vector<int>> wanted;
  auto mine = [&](const std::vector<int> &ranks) {
    return std::find(ranks.begin(), ranks.end(), rank()) != ranks.end();
  };
  // The groups of compiled code: the axes, then factors of tp as the manifest
  // lists them (those of other tensor degrees are not used here).
  const Mesh &mesh = graph_.mesh();
  std::vector<std::vector<int>> compiled;
  for (const char *axis : {"dp", "tp", "pp"})
    compiled.push_back(
        graph_.groupOf(rank(), {mesh.wholeAxis(*mesh.findAxis(axis))}));
  for (const plan::TensorGroup &group : view_.manifest().groups()) {
    AxisParts parts;
    for (const plan::AxisPart &part : group.parts())
      parts.push_back({*mesh.findAxis("tp"), part.stride(), part.size()});
    compiled.push_back(group.tp() == graph_.strategy().tp
                           ? graph_.groupOf(rank(), parts)
                           : std::vector<int>{rank()});
  }
  wanted = compiled;
  for (const std::vector<int> &ranks : graph_.holderGroups())
    if (mine(ranks))
      wanted.push_back(ranks);
  for (const std::vector<int> &ranks : wanted) {
    if (ranks.size() < 2 || groups_.count(ranks))
      continue;
    auto group = transport_.createGroup(ranks, transport_.deadline());
    if (!group.isOk())
      return group.status();
    groups_[ranks] = std::move(*group);
  }
  std::vector<int> all(graph_.ranks());
  for (int r = 0; r < graph_.ranks(); ++r)
    all[r] = r;
  auto world = transport_.createGroup(all, transport_.deadline());
  if (!world.isOk())
    return world.status();
  world_ = std::move(*world);
  for (const std::vector<int> &ranks : compiled)
    abiGroups_.push_back(
        toAbi(ranks.size() < 2 ? nullptr : groups_.at(ranks).get()));
  holders_.assign(view_.parameters(), nullptr);
  for (int p = 0; p < view_.parameters(); ++p)
    if (view_.holds(p) && view_.place(p).holders > 1)
      holders_[p] = groups_.at(graph_.holders(p, rank())).get();
  return Status::ok();
}

Status RankExchange::message(const Instruction &i, void *data, void *stream) {
  MessageOp op = messageOf(i.op());
  if (!op.starts) {
    auto found = messages_.find({i.op() - 1, i.micro_batch()});
    if (found == messages_.end())
      return Status::internal("waits for a message that was not started");
    Ticket ticket = found->second;
    messages_.erase(found);
    return transport_.wait(ticket, stream, transport_.deadline());
  }
  int32_t tag = 2 * i.micro_batch() + (op.gradient ? 1 : 0);
  StatusOr<Ticket> ticket =
      op.sends
          ? transport_.startSend(i.peer(), tag, data, i.message_bytes(), stream)
          : transport_.startReceive(i.peer(), tag, data, i.message_bytes(),
                                    stream);
  if (!ticket.isOk())
    return ticket.status();
  messages_[{i.op(), i.micro_batch()}] = *ticket;
  return Status::ok();
}

Status RankExchange::start(int parameter, const Collective &collective,
                           void *stream) {
  StatusOr<Ticket> ticket = holders_[parameter]->start(collective, stream);
  if (!ticket.isOk())
    return ticket.status();
  parameters_[parameter] = *ticket;
  return Status::ok();
}

Status RankExchange::startReduction(int parameter, void *gradients,
                                    void *stream) {
  Collective sum;
  sum.kind =
      view_.zero() ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
  sum.element = view_.gradientType();
  sum.outer = 1;
  sum.first = view_.rows(parameter);
  sum.inner = view_.rowElements(parameter);
  sum.in = sum.out = gradients;
  if (view_.zero())
    sum.out = static_cast<char *>(gradients) +
              view_.place(parameter).updateBegin * sum.inner *
                  elementBytes(view_.gradientType());
  return start(parameter, sum, stream);
}

Status RankExchange::startGather(int parameter, void *values, int32_t element,
                                 void *stream) {
  Collective gather;
  gather.kind = CollectiveKind::AllGather;
  gather.element = element;
  gather.outer = 1;
  gather.first = view_.rows(parameter);
  gather.inner = view_.rowElements(parameter);
  gather.out = values;
  gather.in = static_cast<char *>(values) + view_.place(parameter).updateBegin *
                                                gather.inner *
                                                dyna::elementBytes(element);
  return start(parameter, gather, stream);
}

Status RankExchange::wait(int parameter, void *stream) {
  auto found = parameters_.find(parameter);
  if (found == parameters_.end())
    return Status::internal("waits for an exchange that was not started");
  Ticket ticket = found->second;
  parameters_.erase(found);
  return transport_.wait(ticket, stream, transport_.deadline());
}

Status RankExchange::sum(std::vector<double> &values, void *stream) {
  StatusOr<Ticket> ticket = world_->start(
      Collective::flat(CollectiveKind::AllReduce, values.data(), values.data(),
                       static_cast<int64_t>(values.size()), DYNA_ELEMENT_F64),
      stream);
  if (!ticket.isOk())
    return ticket.status();
  return transport_.wait(*ticket, stream, transport_.deadline());
}

} // namespace dyna
