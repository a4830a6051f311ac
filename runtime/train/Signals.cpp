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

// A signal handler can reach nothing but a global. Holds the signal's number.
static volatile std::sig_atomic_t stopMark = 0;

static void onStopSignal(int signal) {
  if (stopMark)
    _exit(128 + signal);
  stopMark = signal;
}

// The handler has a stack of its own: the matrix library's products use the
// stack pointer for a buffer of theirs, and a signal frame below that would
// overwrite whatever lies there. Signals to the process go to the main thread,
// which asks for this. A frame takes up to 12 KiB where the processor has AMX.
alignas(64) static unsigned char handlerStack[64 << 10];

void catchStopSignals() {
  stack_t stack = {};
  stack.ss_sp = handlerStack;
  stack.ss_size = sizeof(handlerStack);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = onStopSignal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void ignoreFileSizeSignals() { std::signal(SIGXFSZ, SIG_IGN); }

int stopSignal() { return stopMark; }

} // namespace dyna
