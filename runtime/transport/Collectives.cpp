//===- Collectives.cpp - Exchanges that compiled code calls -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Collectives.h"

#include "runtime/transport/Transport.h"

#include <cstdio>
#include <cstring>

using namespace dyna;

/// Leaves the text in the context.
static dyna_status report(dyna_context *context, const Status &status) {
  if (!status.isOk() && context && context->message &&
      context->message_capacity > 0)
    snprintf(context->message, static_cast<size_t>(context->message_capacity),
             "%s", status.message().c_str());
  return static_cast<dyna_status>(status.code());
}

static dyna_status reportNull(dyna_context *context, const char *function) {
  return report(context, Status::invalidArgument(std::string(function) +
                                                 ": null arguments"));
}

static StatusOr<dyna_group> findGroup(const dyna_context &context,
                                      int32_t index, const char *function) {
  std::string where = std::string(function) + ": ";
  if (index < 0 || index >= context.group_count || !context.groups)
    return Status::invalidArgument(
        where + "group " + std::to_string(index) + " of a context with " +
        std::to_string(context.groups ? context.group_count : 0) + " groups");
  const dyna_group &group = context.groups[index];
  if (!group.handle && group.size != 1)
    return Status::invalidArgument(where + "group " + std::to_string(index) +
                                   " has " + std::to_string(group.size) +
                                   " ranks and no transport");
  return group;
}

/// Copies `in` to `out`, for a group of one.
static Status copyIdentity(const Collective &c) {
  DYNA_RETURN_IF_ERROR(checkCollective(c, 1, 0));
  size_t bytes = static_cast<size_t>(c.inBytes(1, 0));
  if (bytes > 0 && c.in != c.out)
    memmove(c.out, c.in, bytes);
  return Status::ok();
}

static Status exchange(const dyna_context &context, int32_t index,
                       std::vector<Collective> collectives,
                       const char *function) {
  StatusOr<dyna_group> abi = findGroup(context, index, function);
  DYNA_RETURN_IF_ERROR(abi.status());
  if (!abi->handle) {
    for (const Collective &collective : collectives)
      DYNA_RETURN_IF_ERROR(copyIdentity(collective));
    return Status::ok();
  }
  Group &group = *static_cast<Group *>(abi->handle);
  Transport &transport = group.transport();
  Transport::Clock::time_point begin = Transport::Clock::now();
  StatusOr<Ticket> ticket = group.start(std::move(collectives), context.stream);
  DYNA_RETURN_IF_ERROR(ticket.status());
  Status status = transport.wait(*ticket, context.stream, transport.deadline());
  transport.note({function, begin, Transport::Clock::now()});
  return status;
}

static Status slice(const dyna_context &context, int32_t index,
                    const Collective &whole) {
  StatusOr<dyna_group> abi = findGroup(context, index, "slice");
  DYNA_RETURN_IF_ERROR(abi.status());
  if (!abi->handle)
    return copyIdentity(whole);
  return static_cast<Group *>(abi->handle)->slice(whole, context.stream);
}

static dyna_status exchange(dyna_context *context,
                            const dyna_collective *collective,
                            CollectiveKind kind) {
  if (!context || !collective)
    return reportNull(context, nameOf(kind));
  return report(context,
                exchange(*context, collective->group,
                         {Collective::of(kind, *collective)}, nameOf(kind)));
}

dyna_status dyna_all_reduce(dyna_context *context,
                            const dyna_collective *collective) {
  return exchange(context, collective, CollectiveKind::AllReduce);
}

dyna_status dyna_all_gather(dyna_context *context,
                            const dyna_collective *collective) {
  return exchange(context, collective, CollectiveKind::AllGather);
}

dyna_status dyna_reduce_scatter(dyna_context *context,
                                const dyna_collective *collective) {
  return exchange(context, collective, CollectiveKind::ReduceScatter);
}

dyna_status dyna_slice(dyna_context *context,
                       const dyna_collective *collective) {
  if (!context || !collective)
    return reportNull(context, "slice");
  Collective whole = Collective::of(CollectiveKind::ReduceScatter, *collective);
  whole.reduction = DYNA_REDUCE_SUM; // not looked at
  return report(context, slice(*context, collective->group, whole));
}

dyna_status dyna_all_to_all(dyna_context *context,
                            const dyna_transposition *transposition) {
  if (!context || !transposition)
    return reportNull(context, "all_to_all");
  return report(context,
                exchange(*context, transposition->group,
                         {Collective::of(*transposition)}, "all_to_all"));
}

/// Returns the exchange at `number`, which must be over `group`.
static StatusOr<Collective> collectiveOf(const dyna_exchange &exchange,
                                         int64_t number, int32_t group) {
  std::string where = "exchange_all: exchange " + std::to_string(number);
  CollectiveKind kind;
  switch (exchange.kind) {
  case DYNA_EXCHANGE_ALL_REDUCE:
    kind = CollectiveKind::AllReduce;
    break;
  case DYNA_EXCHANGE_ALL_GATHER:
    kind = CollectiveKind::AllGather;
    break;
  case DYNA_EXCHANGE_REDUCE_SCATTER:
    kind = CollectiveKind::ReduceScatter;
    break;
  case DYNA_EXCHANGE_ALL_TO_ALL:
    kind = CollectiveKind::AllToAll;
    break;
  default:
    return Status::invalidArgument(where + " is of unknown kind " +
                                   std::to_string(exchange.kind));
  }
  bool isTransposition = kind == CollectiveKind::AllToAll;
  int32_t own = isTransposition ? exchange.transposition.group
                                : exchange.collective.group;
  if (own != group)
    return Status::invalidArgument(
        where + " is over group " + std::to_string(own) +
        ", but the first is over group " + std::to_string(group) +
        "; exchanges of one call share their group");
  return isTransposition ? Collective::of(exchange.transposition)
                         : Collective::of(kind, exchange.collective);
}

static Status exchangeAll(const dyna_context &context,
                          const dyna_exchange *exchanges, int64_t count) {
  if (count < 1)
    return Status::invalidArgument("exchange_all: expects at least one "
                                   "exchange, but got " +
                                   std::to_string(count));
  int32_t group = exchanges->kind == DYNA_EXCHANGE_ALL_TO_ALL
                      ? exchanges->transposition.group
                      : exchanges->collective.group;
  std::vector<Collective> collectives;
  for (int64_t i = 0; i < count; ++i) {
    StatusOr<Collective> collective = collectiveOf(exchanges[i], i, group);
    DYNA_RETURN_IF_ERROR(collective.status());
    collectives.push_back(*collective);
  }
  return exchange(context, group, std::move(collectives), "exchange_all");
}

/// Returns the transport of all groups of the context; null for one rank.
static Transport *transportOf(const dyna_context &context) {
  for (int32_t i = 0; i < context.group_count; ++i)
    if (void *group = context.groups[i].handle)
      return &static_cast<Group *>(group)->transport();
  return nullptr;
}

/// Shorter calls found nothing to do.
static constexpr std::chrono::microseconds leastNoted{2};

dyna_status dyna_progress(dyna_context *context) {
  Transport *transport = transportOf(*context);
  if (!transport || !transport->hasStarted())
    return DYNA_OK;
  Transport::Clock::time_point begin = Transport::Clock::now();
  Status status = transport->progress();
  Transport::Clock::time_point end = Transport::Clock::now();
  if (end - begin >= leastNoted)
    transport->note({"progress", begin, end});
  return report(context, status);
}

dyna_status dyna_exchange_all(dyna_context *context,
                              const dyna_exchange *exchanges, int64_t count) {
  if (!context || !exchanges)
    return reportNull(context, "exchange_all");
  return report(context, exchangeAll(*context, exchanges, count));
}
