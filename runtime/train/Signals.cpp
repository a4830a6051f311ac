//===- Signals.cpp - A polite end -----------------------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Signals.h"

#include <csignal>
#include <unistd.h>

namespace dyna {

// A signal handler can reach nothing but a global.
static volatile std::sig_atomic_t stopMark = 0;

static void onStopSignal(int signal) {
  if (stopMark)
    _exit(128 + signal);
  stopMark = 1;
}

void catchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = onStopSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stopRequested() { return stopMark != 0; }

} // namespace dyna
