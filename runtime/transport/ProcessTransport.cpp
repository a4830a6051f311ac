//===- ProcessTransport.cpp - Ranks that are processes --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/ProcessTransport.h"

#include <algorithm>
#include <cstdlib>

namespace dyna {

int launchedProcesses() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char *text = std::getenv(name))
      return static_cast<int>(
          std::clamp(std::strtol(text, nullptr, 10), 1L, 1L << 30));
  return 1;
}

} // namespace dyna
