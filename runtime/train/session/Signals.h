//===- Signals.h - Handles signals that save or end a run -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   SIGUSR1                            saves, and the run continues
//   SIGINT, SIGTERM                    save and end the run; a second one ends
//                                      the process at once
//   SIGHUP, SIGUSR2, SIGXCPU, SIGALRM  save and end the run, however often they
//                                      come
//
// Schedulers send the last kind ahead of a limit and SIGTERM at the limit. So a
// SIGTERM after them does not count as the second one. SIGXCPU comes again
// every second. A signal that the process ignores from its start (nohup) stays
// ignored, except SIGINT and SIGTERM.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SIGNALS_H
#define DYNA_RUNTIME_TRAIN_SIGNALS_H

#include <csignal>
#include <cstdint>
#include <vector>

namespace dyna {

/// Signals that save and end a run. If processes of a job receive several, the
/// first in this list determines the exit code.
inline constexpr int kStopSignals[] = {SIGINT,  SIGTERM, SIGHUP,
                                       SIGUSR2, SIGXCPU, SIGALRM};

/// Makes a write to a closed pipe or beyond a file size limit an error. The
/// default would be a signal that ends the process. The error can name the
/// file.
void ignoreWriteSignals();

/// Counts SIGUSR1 from now on. It ends no run, not even one that does not save.
void catchSaveSignal();

/// Remembers the first of `kStopSignals` from now on, so that the run can be
/// saved. A second SIGINT or SIGTERM, at least a second after the first, ends
/// the process at once with a message.
void catchStopSignals();

/// Returns the signal that is to end the run, or 0.
int stopSignal();

/// Returns true if `stopSignal` is not 0, for callers that need a function.
bool isStopped();

/// Returns the number of SIGUSR1 received so far.
int64_t saveSignals();

/// Returns a mark for each of `kStopSignals`: true if this process has received
/// it.
std::vector<bool> stopMarks();

/// Returns the first signal with a mark, or 0. `marks` begin with those of
/// `stopMarks`.
int stopSignalOf(const std::vector<bool> &marks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SIGNALS_H
