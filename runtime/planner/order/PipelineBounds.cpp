//===- PipelineBounds.cpp - What no schedule can do better ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/PipelineBounds.h"

#include "runtime/planner/order/PipelineTimes.h"

#include <limits>
#include <numeric>

namespace dyna {

/// What a stage takes at least, from the start of all to its end, if micro-batch m
/// comes to it after `down[m]`, works there for `work[m]` and leaves `up[m]` behind
/// it. That holds for any of the micro-batches alone, too: small ones come early,
/// but have soon been done, and the others still have their long ways.
static double loadOf(const std::vector<double> &down,
                     const std::vector<double> &work,
                     const std::vector<double> &up) {
  std::vector<int> order(work.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const double first = down[a] + up[a], second = down[b] + up[b];
    return first != second ? first > second : a < b;
  });
  double bound = 0, sum = 0;
  double lead = std::numeric_limits<double>::infinity(), tail = lead;
  for (int m : order) {
    lead = std::min(lead, down[m]);
    tail = std::min(tail, up[m]);
    sum += work[m];
    bound = std::max(bound, lead + sum + tail);
  }
  return bound;
}

PipelineBounds boundPipeline(const PipelineProblem &problem) {
  const int stages = problem.stages(), count = problem.microBatches();
  PipelineBounds bounds;
  bounds.bytes.assign(stages, 0);
  if (count == 0)
    return bounds;
  ItemSeconds seconds(problem);
  const bool split = problem.splitsBackward();
  const double message = problem.messageSeconds;
  // Of each micro-batch: from its start to when it comes to the stage, and from
  // the end of its backward there to the end of all.
  std::vector<double> down(count, 0), up(count, 0), work(count);
  const std::vector<double> none(count, 0);
  // From there to there: what comes behind the stage, counted from the last.
  std::vector<std::vector<double>> turn(stages, std::vector<double>(count));
  for (int s = stages - 1; s >= 0; --s)
    for (int m = 0; m < count; ++m) {
      // What a stage computes again it may compute while others work; not so the
      // last one.
      double behind = s + 1 < stages ? turn[s + 1][m] + 2 * message
                                     : seconds.recompute(s, m);
      turn[s][m] = seconds.forward(s, m) + behind + seconds.inputGradient(s, m);
    }
  for (int s = 0; s < stages; ++s) {
    double memory = 0;
    for (int m = 0; m < count; ++m) {
      double weight = split ? seconds.weight(s, m) : 0;
      work[m] = seconds.forward(s, m) + seconds.recompute(s, m) +
                seconds.inputGradient(s, m) + weight;
      bounds.path =
          std::max(bounds.path, down[m] + turn[s][m] + std::max(up[m], weight));
      memory += static_cast<double>(problem.keptBytes(s, m)) * turn[s][m] +
                static_cast<double>(problem.lateBytes(s, m)) * weight;
      bounds.bytes[s] = std::max(bounds.bytes[s], problem.heldBytes(s, m));
    }
    // A weight gradient may be a stage's last item, behind which nothing comes.
    bounds.load = std::max(bounds.load, loadOf(down, work, split ? none : up));
    if (!problem.limits.empty() && problem.limits[s] > 0)
      bounds.memory = std::max(bounds.memory,
                               memory / static_cast<double>(problem.limits[s]));
    for (int m = 0; m < count; ++m) {
      down[m] += seconds.forward(s, m) + message;
      up[m] += seconds.inputGradient(s, m) + message;
    }
  }
  return bounds;
}

} // namespace dyna
