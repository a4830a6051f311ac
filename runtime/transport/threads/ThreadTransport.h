//===- ThreadTransport.h - Runs ranks as threads of one process -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This transport needs no installation, and is the oracle for the others. Data
// is copied once, straight from the buffer of one rank to the buffer of
// another.
//
//     Status status = runRanks(4, [&](Transport &transport) -> Status { ... });
//
// An exchange is an object that its parties share: two for a message, one per
// rank of the group for a collective. Each party leaves its pointers there when
// it starts its side. With the last party, the tasks are known: pieces of the
// copies or of the sums. From then on any party that advances claims tasks, and
// runs them for all.
//
// So every rank that has time works. With a core for every rank all of them do.
// With one core the last to arrive does, without a switch of threads in
// between. The result of a task depends on its number only, so the bits do not
// depend on the rank that runs it.
//
// An all_reduce reads every input once and writes every output once, which is
// its lower bound in bytes moved.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_THREADS_THREADTRANSPORT_H
#define DYNA_RUNTIME_TRANSPORT_THREADS_THREADTRANSPORT_H

#include "runtime/transport/Transport.h"

#include <functional>

namespace dyna {

constexpr int kMostThreadRanks = 4096;

/// Returns the transports of `ranks` ranks of this process, by rank.
std::vector<std::unique_ptr<Transport>> makeThreadTransports(int ranks);

/// Runs `body` on `ranks` ranks, each a thread of its own, and joins all. If
/// one returns an error, the others' waits end. Returns the first error that
/// was not caused by another rank's.
Status runRanks(int ranks, const std::function<Status(Transport &)> &body);

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_THREADS_THREADTRANSPORT_H
