//===- ProcessTransport.cpp - Finds a linked transport of processes -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/ProcessTransport.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>

namespace dyna {

static int countIn(std::initializer_list<const char *> names, int otherwise) {
  for (const char *name : names)
    if (const char *text = std::getenv(name))
      return static_cast<int>(
          std::clamp(std::strtol(text, nullptr, 10), 1L, 1L << 30));
  return otherwise;
}

int launchedProcesses() {
  return countIn({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1);
}

int launchedProcessesHere() {
  return countIn({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"},
                 launchedProcesses());
}

} // namespace dyna
