//===- MpiTransport.h - Ranks as processes under mpirun ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Built on MPI's non-blocking messages only, so that every wait has a deadline
// and no call can hang because another process has died; collectives are
// messages straight from each rank to each other, sums are taken by the
// receiver in the order of the ranks, as in the threads transport and with the
// same bits. An all_reduce sends every byte twice, as a ring does.
//
// Receives are posted when their message has been seen (MPI_Improbe): so its
// size is known, and a wrong one is an error with both sizes and not a
// truncated buffer.
//
// Groups have no communicator of their own, since making one blocks without a
// deadline. All messages of groups go through one, and the tag tells them
// apart: [8 bits: which of the groups that these two ranks share][14 bits:
// number of the exchange][1 bit: its first or second half].
//
// A rank that fails tells all others on a communicator for nothing else, which
// every wait looks at. When a rank is gone without a word, mpirun ends the job;
// where it does not, the deadline does.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H
#define DYNA_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H

#include "runtime/transport/Transport.h"

namespace dyna {

/// Whether mpirun, or another launcher that MPI knows, started this process.
bool isUnderMpi();

/// The transport of this process: rank and number of ranks as in
/// MPI_COMM_WORLD. Starts MPI at the first call; all processes call it. `ranks`
/// is what they must be, 0 stands for any number. MPI waits for all processes and
/// gives no deadline: when `timeout` is over the process ends, with a line.
StatusOr<std::unique_ptr<Transport>>
openMpi(int ranks, std::chrono::seconds timeout = std::chrono::minutes(10));

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_MPI_MPITRANSPORT_H
