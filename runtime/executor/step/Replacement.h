//===- Replacement.h - Graphs that take the place of others -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STEP_REPLACEMENT_H
#define DYNA_RUNTIME_EXECUTOR_STEP_REPLACEMENT_H

#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/SwitchTable.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// A graph whose plans are run, and what it has of the parameters.
struct GraphUse {
  const ExecutableGraph *graph;
  Persistent persistent = Persistent::Training;
};

/// Graphs that take the place of those of a machine, between two steps.
struct Replacement {
  /// The next graphs. They have one model and equally many ranks, and the first is home.
  /// The machine may have more ranks: those without a place hold nothing, and wait.
  std::vector<GraphUse> graphs;
  /// Switch of the state (StateTensors.h) from the present home to the next one.
  const GraphSwitch *state = nullptr;
  /// Bytes that a rank sends, or gets, in buckets that it has begun and not ended; a
  /// larger bucket goes alone (SwitchOptions::bytesUnderWay).
  int64_t bytesUnderWay = int64_t{2} << 30;
  /// Bytes that plans use of the region of each rank that has a place. Empty: all that
  /// there are.
  std::vector<int64_t> regionBytes;
  int64_t step = 0; ///< before which graphs are replaced, from 0
  /// Number of replacements since the run began, this one included.
  int64_t version = 1;

  const ExecutableGraph &home() const { return *graphs.front().graph; }
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_STEP_REPLACEMENT_H
