//===- HostExchange.cpp - Exchanges data between the hosts of ranks -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/HostExchange.h"

#include <numeric>

namespace dyna {

StatusOr<Group *> HostExchange::group(const std::vector<int> &ranks) {
  std::unique_ptr<Group> &group = groups_[ranks];
  if (!group) {
    DYNA_ASSIGN_OR_RETURN(group, wires_.createGroup(ranks, wires_.deadline()));
  }
  return group.get();
}

StatusOr<Group *> HostExchange::world() {
  std::vector<int> all(ranks());
  std::iota(all.begin(), all.end(), 0);
  return group(all);
}

Status HostExchange::wait(const StatusOr<Ticket> &ticket) {
  DYNA_RETURN_IF_ERROR(ticket.status());
  return wires_.wait(*ticket, /*stream=*/nullptr, wires_.deadline());
}

Status HostExchange::carryOut(Group &group, const Collective &collective) {
  return wait(group.start(collective, /*stream=*/nullptr));
}

Status HostExchange::sum(std::vector<double> &values) {
  DYNA_ASSIGN_OR_RETURN(Group * all, world());
  return carryOut(*all, Collective::flat(CollectiveKind::AllReduce,
                                         values.data(), values.data(),
                                         static_cast<int64_t>(values.size()),
                                         DYNA_ELEMENT_F64));
}

StatusOr<std::vector<uint64_t>>
HostExchange::gather(const std::vector<uint64_t> &own) {
  // Numbers are copied and never added, so the element type only gives their
  // size.
  static_assert(sizeof(uint64_t) == sizeof(double), "numbers travel as f64");
  std::vector<uint64_t> numbers(own.size() * ranks());
  DYNA_ASSIGN_OR_RETURN(Group * all, world());
  DYNA_RETURN_IF_ERROR(carryOut(
      *all, Collective::flat(
                CollectiveKind::AllGather, own.data(), numbers.data(),
                static_cast<int64_t>(numbers.size()), DYNA_ELEMENT_F64)));
  return numbers;
}

Status HostExchange::addGroup(const std::vector<int> &ranks) {
  return group(ranks).status();
}

StatusOr<bool> HostExchange::any(const std::vector<int> &ranks, bool here) {
  DYNA_ASSIGN_OR_RETURN(Group * own, group(ranks));
  return own->any(here, /*stream=*/nullptr);
}

Status HostExchange::send(int peer, const void *data, int64_t bytes) {
  return wait(wires_.startSend(peer, Transport::kLargestTag, data, bytes,
                               /*stream=*/nullptr));
}

Status HostExchange::receive(int peer, void *data, int64_t bytes) {
  return wait(wires_.startReceive(peer, Transport::kLargestTag, data, bytes,
                                  /*stream=*/nullptr));
}

StatusOr<bool> HostExchange::hasHeardStop() {
  // The word arrives only with progress, of which there may be none for long.
  DYNA_RETURN_IF_ERROR(wires_.progress());
  return wires_.hasHeardStop();
}

} // namespace dyna
