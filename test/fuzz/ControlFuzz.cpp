//===- ControlFuzz.cpp - Faults that must be found ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include <climits>
#include <string_view>

using namespace dyna::test;

/// One fault for each thing that a build for fuzzing is made for.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  volatile int sink = 0;
  if (text == "past the end")
    sink = sink + data[size];
  if (text == "undefined") {
    volatile int large = INT_MAX;
    sink = large + static_cast<int>(size);
  }
  return 0;
}
