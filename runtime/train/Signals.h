//===- Signals.h - A polite end ---------------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SIGNALS_H
#define DYNA_RUNTIME_TRAIN_SIGNALS_H

namespace dyna {

/// From now on a file that may not grow, or a pipe that nobody reads any more,
/// is an error of the write, which can name it, and no signal that ends the
/// process.
void ignoreWriteSignals();

/// From now on the first SIGINT or SIGTERM only sets a mark, so that the step
/// can be finished and saved; one that comes a second later, or more, ends the
/// process at once, and says so.
void catchStopSignals();

/// The signal that set the mark; 0: none has.
int stopSignal();

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SIGNALS_H
