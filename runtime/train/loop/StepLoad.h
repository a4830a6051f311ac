//===- StepLoad.h - Times and work of a step --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_STEPLOAD_H
#define DYNA_RUNTIME_TRAIN_STEPLOAD_H

#include "runtime/plan/program/Plan.h"

#include <algorithm>
#include <deque>

namespace dyna {

/// Times and work of a step.
struct StepLoad {
  std::vector<double> layers; ///< seconds of a micro-batch, by layer
  std::vector<double> waits;  ///< of links, by stage; empty: to be measured
  double seconds = 0;         ///< of the step
  int64_t tokens = 0;
  int64_t microBatches = 0;
  double planSeconds = 0;
  /// Micro-batches of the step; empty: a formula weighs cuts.
  std::vector<plan::MicroBatch> work;
};

/// Returns the median seconds of each layer for a micro-batch. All steps have the seconds
/// of equally many layers, and there is a step.
inline std::vector<double> medianSeconds(const std::deque<StepLoad> &steps) {
  std::vector<double> medians;
  for (size_t layer = 0; layer < steps.front().layers.size(); ++layer) {
    std::vector<double> seconds;
    for (const StepLoad &step : steps)
      seconds.push_back(step.layers[layer]);
    const auto half =
        seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), half, seconds.end());
    medians.push_back(*half);
  }
  return medians;
}

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_STEPLOAD_H
