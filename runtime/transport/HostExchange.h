//===- HostExchange.h - Exchanges data between the hosts of ranks ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank sends data from two kinds of memory. Results of its device lie in
// device memory and travel in the order of a stream, by a transport of the
// device. Data of the hosts lie in host memory: votes, losses and norms that
// people read, rows of checkpoints, measurements of links. They go through this
// class. No vector of the host enters a transport of the device.
//
//     device memory   RankExchange, SwitchCarrier, compiled code   Transport of the device
//     host memory     votes, sums, checkpoints, agreement          HostExchange
//
// For ranks on the host both are the same wires. All functions block, and
// return when this rank's part is done. A failure is the transport's, and it is
// final like there.
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

  /// Sums numbers over all ranks, in place. All ranks call it with the same
  /// count.
  Status sum(std::vector<double> &values);
  /// Returns the numbers of all ranks, rank by rank. All ranks call it with the
  /// same count.
  StatusOr<std::vector<uint64_t>> gather(const std::vector<uint64_t> &own);

  /// Creates a group of ranks for `any`; this rank must be one of them. All of
  /// them call it. Ranks that share several groups create those in one order.
  Status addGroup(const std::vector<int> &ranks);
  /// Returns true if `here` is true on any rank of such a group. All of them
  /// call it. It is not counted as traffic.
  StatusOr<bool> any(const std::vector<int> &ranks, bool here);

  /// Sends `bytes` bytes to another rank, which must receive the same number.
  Status send(int peer, const void *data, int64_t bytes);
  Status receive(int peer, void *data, int64_t bytes);

  /// Tells the other processes, once, that the job is to stop.
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
