//===- DrawnPipelines.h - Random pipelines ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_DRAWNPIPELINES_H
#define DYNA_TEST_RUNTIME_PLANNER_DRAWNPIPELINES_H

#include "runtime/planner/order/schedules/PipelineProblem.h"
#include "test/runtime/planner/Draw.h"

#include <algorithm>
#include <vector>

namespace dyna {

/// Whole numbers, so that sums are exact in any order. Work is mostly that of
/// the micro-batch on a stage of some speed; limits let one to all in.
inline PipelineProblem drawn(Draw &draw, int stages, int microBatches,
                             bool limited) {
  PipelineProblem problem;
  bool split = draw.below(2), recompute = draw.below(2),
       own = draw.below(3) == 0;
  problem.links = chainOf(stages, draw.below(3) == 0 ? draw.below(5) : 0);
  std::vector<int> sizes;
  int spread = 1 + draw.below(draw.below(2) ? 40 : 4);
  for (int m = 0; m < microBatches; ++m)
    sizes.push_back(1 + draw.below(spread));
  for (int s = 0; s < stages; ++s) {
    int speed = draw.below(2) ? 4 : 1 + draw.below(8);
    std::vector<double> forward, backward, weight, again;
    std::vector<int64_t> kept, late;
    for (int m = 0; m < microBatches; ++m) {
      int size = own ? 1 + draw.below(spread) : sizes[static_cast<size_t>(m)];
      forward.push_back(size * speed);
      weight.push_back(size * speed);
      again.push_back(recompute ? draw.below(size * speed + 1) : 0);
      backward.push_back(2 * size * speed + again.back());
      kept.push_back(size * 10 + draw.below(3));
      late.push_back(draw.below(static_cast<int>(2 * kept.back())));
    }
    problem.forward.push_back(forward);
    problem.backward.push_back(backward);
    problem.kept.push_back(kept);
    if (split) {
      problem.weight.push_back(weight);
      problem.late.push_back(late);
    }
    if (recompute)
      problem.recompute.push_back(again);
  }
  for (int s = 0; limited && s < stages; ++s) {
    int64_t largest = 0, all = 0;
    for (int m = 0; m < microBatches; ++m) {
      largest = std::max(largest, problem.heldBytes(s, m));
      all += problem.heldBytes(s, m);
    }
    problem.limits.push_back(
        largest +
        draw.below(static_cast<int>(all - largest) / (1 + draw.below(4)) + 1));
  }
  return problem;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_DRAWNPIPELINES_H
