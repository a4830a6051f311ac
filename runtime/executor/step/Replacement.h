//===- Replacement.h - Describes graphs that replace others -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STEP_REPLACEMENT_H
#define DYNA_RUNTIME_EXECUTOR_STEP_REPLACEMENT_H

#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/SwitchTable.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// A graph whose plans are run, and the parts of parameters that it holds.
struct GraphUse {
  const ExecutableGraph *graph;
  Persistent persistent = Persistent::Training;
};

/// Graphs that replace those of a machine between two steps.
struct Replacement {
  /// The next graphs. They have one model and one number of ranks, and the
  /// first is home. The machine may have more ranks. Ranks without a place hold
  /// nothing, and wait.
  std::vector<GraphUse> graphs;
  /// Switch of the state (StateTensors.h) from the present home to the next one.
  const GraphSwitch *state = nullptr;
  /// Largest number of bytes that a rank has under way, sent or received, in
  /// started buckets. A larger bucket goes alone
  /// (SwitchOptions::bytesUnderWay).
  int64_t bytesUnderWay = int64_t{2} << 30;
  /// Bytes of the region that plans use on each rank with a place. Empty: all
  /// of it.
  std::vector<int64_t> regionBytes;
  int64_t step = 0; ///< graphs are replaced before it, from 0
  /// Number of replacements since the run began, this one included.
  int64_t version = 1;

  const ExecutableGraph &home() const { return *graphs.front().graph; }
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_STEP_REPLACEMENT_H
