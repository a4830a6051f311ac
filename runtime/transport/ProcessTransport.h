//===- ProcessTransport.h - Finds a linked transport of processes ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A training binary runs ranks as threads; an optional library adds processes.
// `dynac --with=mpi` links it with `-u dyna_process_transport`, and the binary
// finds it like this:
//
//   if (&dyna_process_transport && dyna_process_transport.isLaunched())
//     transport = dyna_process_transport.open(ranks, timeout);
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_PROCESSTRANSPORT_H
#define DYNA_RUNTIME_TRANSPORT_PROCESSTRANSPORT_H

#include "runtime/transport/Transport.h"

namespace dyna {

struct ProcessTransport {
  /// Name of the transport, for example "mpi".
  const char *name;
  /// Returns true if a launcher started this process as one of several.
  bool (*isLaunched)();
  /// Opens the transport of this process, with its rank among all processes.
  /// All of them call it. Fails if there are not exactly `ranks` processes; 0
  /// accepts any number.
  ///
  /// All other processes must call it within `timeout`, which is the
  /// transport's timeout from then on. If they do not, this process ends with a
  /// message and code 2, because a library cannot be interrupted while it
  /// starts.
  ///
  /// The transport says goodbye to the others when it is destroyed. Every
  /// process destroys it before it exits, and returns non-zero from main if it
  /// failed.
  StatusOr<std::unique_ptr<Transport>> (*open)(int ranks,
                                               std::chrono::seconds timeout);
};

/// Returns the number of processes that a launcher of MPI programs reports,
/// whether MPI is linked or not; 1 if it reports nothing.
int launchedProcesses();
/// Returns how many of these run on this machine; all of them if the launcher
/// does not say.
int launchedProcessesHere();

} // namespace dyna

extern "C" {
/// Null unless a library for processes is linked in.
extern const dyna::ProcessTransport dyna_process_transport
    __attribute__((weak));
}

#endif // DYNA_RUNTIME_TRANSPORT_PROCESSTRANSPORT_H
