//===- StageLoads.h - Computes seconds of stages and steps ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The load of a stage is the seconds of its layers for one micro-batch, forward and
// backward. The seconds that the stage waits for its neighbour's data are added. So a
// slow link shifts work to the other stages (DynPipe, appendix D.2).
//
// A step of `m` micro-batches takes the sum of all loads, and `m - 1` times the largest
// one. This is exact if micro-batches are alike and stages hand on at once. Schedules
// that limit micro-batches in flight can take longer.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_STAGELOADS_H
#define DYNA_RUNTIME_ELASTIC_STAGELOADS_H

#include <cstdint>
#include <vector>

namespace dyna {

/// Returns the load of each stage. `waits` has seconds by stage; empty means none.
std::vector<double> stageLoads(const std::vector<double> &seconds,
                               const std::vector<int> &cut,
                               const std::vector<double> &waits = {});

/// Returns the seconds of a step with this number of micro-batches on one
/// replica.
double stepSeconds(const std::vector<double> &loads, int64_t microBatches);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_STAGELOADS_H
