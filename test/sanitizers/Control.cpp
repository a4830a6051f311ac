//===- Control.cpp - Faults that a sanitizer has to report ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// A run without reports says something only if reports come where faults are:
// `sanitizers_control FAULT` has the fault, and must not end well.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

/// What the optimizer may know nothing of.
static volatile int one = 1;
static int shared = 0;
static int *volatile lost = nullptr;

static void race() {
  std::thread other([] { shared += one; });
  shared += one;
  other.join();
}

static void readPastEnd() {
  int *block = new int[4]();
  shared = block[3 + one];
  delete[] block;
}

static void overflow() {
  int largest = std::numeric_limits<int>::max();
  shared = largest + one;
}

static void leak() {
  lost = new int[1000];
  lost = nullptr;
}

int main(int argc, char **argv) {
  const char *fault = argc > 1 ? argv[1] : "";
  // The environment of tests: see environment.cmake.in.
  if (!std::getenv("DYNA_SANITIZE") || !std::getenv("LSAN_OPTIONS") ||
      !std::getenv("TSAN_OPTIONS")) {
    std::puts("ctest has not set the environment of sanitized tests");
    return 1;
  }
  if (!std::strcmp(fault, "race"))
    race();
  else if (!std::strcmp(fault, "address"))
    readPastEnd();
  else if (!std::strcmp(fault, "undefined"))
    overflow();
  else if (!std::strcmp(fault, "leak"))
    leak();
  return 0;
}
