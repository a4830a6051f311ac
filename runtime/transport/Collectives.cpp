//===- Collectives.cpp - Exchanges that compiled code calls -----*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
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

/// In a group of one, `out` gets what `in` holds.
static Status copyIdentity(const Collective &c) {
  DYNA_RETURN_IF_ERROR(checkCollective(c, 1, 0));
  size_t bytes = static_cast<size_t>(c.inBytes(1, 0));
  if (bytes > 0 && c.in != c.out)
    memmove(c.out, c.in, bytes);
  return Status::ok();
}

static Status exchange(const dyna_context &context, int32_t index,
                       const Collective &collective, bool isSlice) {
  StatusOr<dyna_group> abi =
      findGroup(context, index, isSlice ? "slice" : nameOf(collective.kind));
  DYNA_RETURN_IF_ERROR(abi.status());
  if (!abi->handle)
    return copyIdentity(collective);
  Group &group = *static_cast<Group *>(abi->handle);
  if (isSlice)
    return group.slice(collective, context.stream);
  StatusOr<Ticket> ticket = group.start(collective, context.stream);
  DYNA_RETURN_IF_ERROR(ticket.status());
  Transport &transport = group.transport();
  return transport.wait(*ticket, context.stream, transport.deadline());
}

static dyna_status exchange(dyna_context *context,
                            const dyna_collective *collective,
                            CollectiveKind kind, bool isSlice = false) {
  if (!context || !collective)
    return report(context, Status::invalidArgument(
                               std::string(isSlice ? "slice" : nameOf(kind)) +
                               ": null arguments"));
  return report(context, exchange(*context, collective->group,
                                  Collective::of(kind, *collective), isSlice));
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
    return exchange(context, collective, CollectiveKind::ReduceScatter, true);
  dyna_collective slice = *collective;
  slice.reduction = DYNA_REDUCE_SUM; // not looked at
  return exchange(context, &slice, CollectiveKind::ReduceScatter, true);
}

dyna_status dyna_all_to_all(dyna_context *context,
                            const dyna_transposition *transposition) {
  if (!context || !transposition)
    return report(context,
                  Status::invalidArgument("all_to_all: null arguments"));
  return report(context, exchange(*context, transposition->group,
                                  Collective::of(*transposition), false));
}
