//===- ThreadTransport.h - Ranks as threads of one process ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Nothing to install, and the oracle for the other transports. Data is copied
// once, straight from the buffer of one rank to that of another.
//
//   Status status = runRanks(4, [&](Transport &transport) -> Status { ... });
//
// An exchange (a message has two parties, a collective one per rank of its
// group) is an object that its parties share. Each leaves its pointers there
// when it starts its side; with the last one, the work is known: a number of
// tasks, pieces of the copies or of the sums. From then on any party that
// advances claims tasks, and does them for all. So whoever has time works:
// with a core for every rank all of them, with one core the last to arrive,
// without a change of threads in between. What a task computes depends on its
// number only, hence the bits do not depend on who did it.
//
// An all_reduce reads every input once and writes every output once; that is
// its lower bound in bytes moved.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_THREADS_THREADTRANSPORT_H
#define DYNA_RUNTIME_TRANSPORT_THREADS_THREADTRANSPORT_H

#include "runtime/transport/Transport.h"

#include <functional>

namespace dyna {

constexpr int kMostThreadRanks = 4096;

/// The transports of `ranks` ranks of this process, by rank.
std::vector<std::unique_ptr<Transport>> makeThreadTransports(int ranks);

/// Runs `body` on `ranks` ranks, each a thread of its own, and joins all. When
/// one returns an error, the others' waits end. Returns the first error that
/// was not caused by another rank's.
Status runRanks(int ranks, const std::function<Status(Transport &)> &body);

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_THREADS_THREADTRANSPORT_H
