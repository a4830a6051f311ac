//===- MpiTransport.h - Runs ranks as processes under mpirun ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The transport uses only MPI's non-blocking messages. So every wait has a
// deadline, and no call can hang because another process has died. Collectives
// are messages between all pairs of ranks. The receiver sums in the order of
// the ranks, with the same bits as the threads transport. An all_reduce sends
// every byte twice, as a ring does.
//
// A receive is posted after its message has been seen (MPI_Improbe). So its
// size is known, and a wrong size is an error with both sizes, not a truncated
// buffer.
//
// Groups have no communicator of their own, since making one blocks without a
// deadline. All messages of groups share one communicator. The tag has three
// fields:
//
//     8 bits   number of the group among those that the two ranks share
//     14 bits  number of the exchange
//     1 bit    first or second half of the exchange
//
// A rank that fails tells all others on a separate communicator, which every
// wait checks. If a rank dies silently, mpirun ends the job; if mpirun does
// not, the deadline does.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H
#define DYNA_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H

#include "runtime/transport/Transport.h"

namespace dyna {

/// Returns true if mpirun, or another launcher that MPI knows, started this
/// process.
bool isUnderMpi();

/// Opens the transport of this process, with rank and number of ranks as in
/// MPI_COMM_WORLD. The first call starts MPI; all processes call it. Fails
/// unless there are `ranks` processes; 0 accepts any number. MPI waits for all
/// processes without a deadline: after `timeout` the process ends with a
/// message.
StatusOr<std::unique_ptr<Transport>>
openMpi(int ranks, std::chrono::seconds timeout = std::chrono::minutes(10));

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H
