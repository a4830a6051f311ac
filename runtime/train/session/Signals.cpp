//===- Signals.cpp - Handles signals that save or end a run ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/Signals.h"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <unistd.h>

namespace dyna {

// Signal handlers reach only globals. This is the first signal that ends the
// run:
static std::atomic<int> stopMark{0};

/// Time of the first SIGINT or SIGTERM, in nanoseconds of the monotonic clock; 0
/// if none has come.
static std::atomic<int64_t> stopTime{0};
static std::atomic<int64_t> saveCount{0};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

/// Launchers and `timeout` signal a process and its group, so that one wish
/// arrives several times within microseconds. Nobody insists that fast.
constexpr int64_t insistsAfter = 1000000000;

/// Returns true if a second signal of this kind ends the process at once.
static bool canInsist(int signal) {
  return signal == SIGINT || signal == SIGTERM;
}

static void onStopSignal(int signal) {
  if (!stopMark)
    stopMark = signal;
  if (!canInsist(signal))
    return;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now); // safe in signal handlers
  int64_t time = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
  if (stopTime == 0) {
    stopTime = time;
  } else if (time - stopTime >= insistsAfter) {
    const char said[] =
        "\nended at once by a second signal: the step under way "
        "is lost, what was saved before it is whole\n";
    (void)!write(STDERR_FILENO, said, sizeof(said) - 1); // safe here, too
    _exit(128 + signal);
  }
}

static void onSaveSignal(int) { ++saveCount; }

// The handler has its own stack. Products of the matrix library use the stack
// pointer for a buffer, and a signal frame below it would overwrite that
// buffer. Signals to the process go to the main thread, which sets this stack.
// A frame takes up to 12 KiB if the processor has AMX.
alignas(64) static unsigned char handlerStack[64 << 10];

static void useHandlerStack() {
  stack_t stack = {};
  stack.ss_sp = handlerStack;
  stack.ss_size = sizeof(handlerStack);
  sigaltstack(&stack, nullptr);
}

static void catchSignal(int signal, void (*handler)(int)) {
  struct sigaction before = {};
  sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN && !canInsist(signal))
    return; // nohup ignores this signal
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  // Block other signals meanwhile: their handlers must see what this one has
  // set.
  sigaddset(&action.sa_mask, SIGUSR1);
  for (int other : kStopSignals)
    sigaddset(&action.sa_mask, other);
  sigaction(signal, &action, nullptr);
}

void catchSaveSignal() {
  useHandlerStack();
  catchSignal(SIGUSR1, onSaveSignal);
}

void catchStopSignals() {
  useHandlerStack();
  for (int signal : kStopSignals)
    catchSignal(signal, onStopSignal);
}

void ignoreWriteSignals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

int stopSignal() { return stopMark; }

bool isStopped() { return stopMark != 0; }

int64_t saveSignals() { return saveCount; }

std::vector<bool> stopMarks() {
  std::vector<bool> marks;
  for (int signal : kStopSignals)
    marks.push_back(stopMark == signal);
  return marks;
}

int stopSignalOf(const std::vector<bool> &marks) {
  for (size_t i = 0; i < std::size(kStopSignals); ++i)
    if (marks[i])
      return kStopSignals[i];
  return 0;
}

} // namespace dyna
