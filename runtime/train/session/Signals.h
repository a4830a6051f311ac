//===- Signals.h - Signals that save and end a run --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   SIGUSR1                                      saves, and the run goes on
//   SIGINT, SIGTERM                              save and end the run; a second
//                                                one ends the process at once
//   SIGHUP, SIGUSR2, SIGXCPU, SIGALRM            save and end the run, however
//                                                often they come
//
// Schedulers send the last kind ahead of a limit and SIGTERM at the limit, so a
// SIGTERM behind them does not count as the second. SIGXCPU comes again every
// second. A signal other than SIGINT and SIGTERM that the process ignores from
// its start (nohup) stays ignored.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SIGNALS_H
#define DYNA_RUNTIME_TRAIN_SIGNALS_H

#include <csignal>
#include <cstdint>
#include <vector>

namespace dyna {

/// Signals that save and end a run. If processes of a job got several, the first
/// of this list decides on the exit code.
inline constexpr int kStopSignals[] = {SIGINT,  SIGTERM, SIGHUP,
                                       SIGUSR2, SIGXCPU, SIGALRM};

/// From now on a file that may not grow, or a pipe that nobody reads any more,
/// is an error of the write, which can name it, and no signal that ends the
/// process.
void ignoreWriteSignals();

/// Counts SIGUSR1 from now on. It ends no run, not even one that does not save.
void catchSaveSignal();

/// Remembers the first of `kStopSignals` from now on, so that the run can be
/// saved. A second SIGINT or SIGTERM, at least a second after the first, ends
/// the process at once and says so.
void catchStopSignals();

/// Returns the signal that is to end the run, or 0.
int stopSignal();

/// Returns whether `stopSignal` is not 0: for callers that need a function.
bool isStopped();

/// Number of SIGUSR1 so far.
int64_t saveSignals();

/// Marks of this process: one for each of `kStopSignals`.
std::vector<bool> stopMarks();

/// Returns the first signal with a mark, or 0. `marks` begin with those of
/// `stopMarks`.
int stopSignalOf(const std::vector<bool> &marks);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SIGNALS_H
