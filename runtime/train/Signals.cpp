//===- Signals.cpp - A polite end -----------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/Signals.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <unistd.h>

namespace dyna {

// A signal handler can reach nothing but a global. Holds the signal's number.
static volatile std::sig_atomic_t stopMark = 0;

/// When it was set, in nanoseconds of the monotonic clock.
static std::atomic<int64_t> stopTime{0};
static_assert(std::atomic<int64_t>::is_always_lock_free);

/// Launchers and `timeout` signal a process and its group, so that one wish
/// arrives several times within microseconds. Nobody insists that fast.
constexpr int64_t insistsAfter = 1000000000;

static void onStopSignal(int signal) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now); // safe in signal handlers
  int64_t time = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
  if (!stopMark) {
    stopTime = time;
    stopMark = signal;
  } else if (time - stopTime >= insistsAfter) {
    const char said[] =
        "\nended at once by a second signal: the step under way "
        "is lost, what was saved before it is whole\n";
    (void)!write(STDERR_FILENO, said, sizeof(said) - 1); // safe here, too
    _exit(128 + signal);
  }
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
  // One at a time: the other must see mark and time of the first.
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void ignoreWriteSignals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

int stopSignal() { return stopMark; }

} // namespace dyna
