//===- HostExchange.h - What the hosts of ranks tell each other -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank has two kinds of memory on the wire. What its device computes lies in device
// memory and travels in the order of a stream, by a transport of the device. What the
// hosts agree on lies in memory of the host: votes, losses and norms that people read,
// rows of checkpoints, measurements of links. It goes through this class, and no vector
// of the host enters a transport of the device.
//
//     device memory   RankExchange, SwitchCarrier, compiled code   Transport of the device
//     host memory     votes, sums, checkpoints, agreement          HostExchange
//
// For ranks on the host both are the same wires. All functions block, and return when
// this rank's part is done. A failure is that of the transport, and as final.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_HOSTEXCHANGE_H
#define DYNA_RUNTIME_TRANSPORT_HOSTEXCHANGE_H

#include "runtime/transport/Transport.h"

#include <map>
#include <memory>
#include <vector>

namespace dyna {

class HostExchange {
public:
  /// `wires` carry memory of the host, and must outlive the exchange.
  explicit HostExchange(Transport &wires) : wires_(wires) {}
  HostExchange(const HostExchange &) = delete;

  int rank() const { return wires_.rank(); }
  int ranks() const { return wires_.ranks(); }

  /// Sums numbers over all ranks, in place. All ranks call it with equally many.
  Status sum(std::vector<double> &values);
  /// Returns everybody's numbers, rank by rank. All ranks call it with equally many.
  StatusOr<std::vector<uint64_t>> gather(const std::vector<uint64_t> &own);

  /// Creates the group of some ranks, of which this one is one, for `any`. All of them
  /// call it; ranks that share several groups create those in one order.
  Status addGroup(const std::vector<int> &ranks);
  /// Returns true if any rank of such a group says so. All of them call it. It is not
  /// counted as traffic.
  StatusOr<bool> any(const std::vector<int> &ranks, bool here);

  /// Sends `bytes` bytes to another rank, which receives as many.
  Status send(int peer, const void *data, int64_t bytes);
  Status receive(int peer, void *data, int64_t bytes);

  /// Tells the other processes, once, that the job is asked to stop.
  void tellStop() { wires_.tellStop(); }
  /// Returns true if another process has announced a stop.
  StatusOr<bool> hasHeardStop();

private:
  StatusOr<Group *> group(const std::vector<int> &ranks);
  StatusOr<Group *> world();
  Status carryOut(Group &group, const Collective &collective);
  Status wait(const StatusOr<Ticket> &ticket);

  Transport &wires_;
  std::map<std::vector<int>, std::unique_ptr<Group>>
      groups_; ///< by their ranks
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_HOSTEXCHANGE_H
