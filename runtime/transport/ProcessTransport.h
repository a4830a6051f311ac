//===- ProcessTransport.h - Ranks as processes, where they are linked in --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A training binary runs ranks as threads; an optional library adds processes.
// `dynac --with=mpi` links it with `-u dyna_process_transport`, and the binary
// finds out like this:
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
  /// "mpi"
  const char *name;
  /// Whether this process is one of several that a launcher started.
  bool (*isLaunched)();
  /// This process's rank among all that were launched; called by all of them.
  /// Fails when there are not exactly `ranks`; 0 stands for as many as there
  /// are. The transport says goodbye to the others when it is destroyed: every
  /// process destroys it before it exits, and returns non-zero from main when
  /// it failed. All others must have come within `timeout`, the transport's own
  /// from then on: else this process ends, with a line and code 2, for a library
  /// that starts cannot be called back.
  StatusOr<std::unique_ptr<Transport>> (*open)(int ranks,
                                               std::chrono::seconds timeout);
};

/// As how many processes a launcher of MPI programs says that it started this
/// one, linked with it or not; 1 if it says nothing.
int launchedProcesses();
/// Of these, on the machine of this one; all, if the launcher does not say.
int launchedProcessesHere();

} // namespace dyna

extern "C" {
/// Null unless a library for processes is linked in.
extern const dyna::ProcessTransport dyna_process_transport
    __attribute__((weak));
}

#endif // DYNA_RUNTIME_TRANSPORT_PROCESSTRANSPORT_H
