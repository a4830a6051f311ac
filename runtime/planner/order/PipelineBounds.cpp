//===- PipelineBounds.cpp - Bounds the time of all schedules --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/PipelineBounds.h"

#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/order/schedules/StageGraph.h"

#include <limits>
#include <numeric>

namespace dyna {

/// Returns a lower bound of the time from the start of a pipeline to its end,
/// by one stage. Micro-batch m reaches it after `down[m]`, works there for
/// `work[m]`, and leaves `up[m]` after it. Every subset of micro-batches gives
/// a bound. This compares the subsets with the largest down + up, because short
/// micro-batches come early and add little work.
static double loadOf(const double *down, const std::vector<double> &work,
                     const double *up) {
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
  const StageGraph graph(problem);
  // Seconds of each micro-batch from its start to the stage (`down`), and from
  // the end of its backward there to the end of all (`up`).
  std::vector<double> down(static_cast<size_t>(stages) * count, 0);
  std::vector<double> up = down, turn = down, work(count);
  const std::vector<double> none(count, 0);
  auto rowOf = [&](std::vector<double> &table, int s) {
    return table.data() + static_cast<size_t>(s) * count;
  };
  // Seconds from the stage to the end and back.
  const StageGraph::Stages order = graph.order();
  for (const int *stage = order.end(); stage != order.begin();)
    for (int s = *--stage, m = 0; m < count; ++m) {
      // The last stage cannot recompute while it waits.
      double behind = graph.outOf(s).empty() ? seconds.recompute(s, m) : 0;
      for (const StageLink &link : graph.outOf(s))
        behind = std::max(behind, rowOf(turn, link.to)[m] + link.bothWays());
      rowOf(turn, s)[m] =
          seconds.forward(s, m) + behind + seconds.inputGradient(s, m);
    }
  for (int s : order) {
    const double *downs = rowOf(down, s), *ups = rowOf(up, s);
    const double *turns = rowOf(turn, s);
    double memory = 0;
    for (int m = 0; m < count; ++m) {
      double weight = split ? seconds.weight(s, m) : 0;
      work[m] = seconds.forward(s, m) + seconds.recompute(s, m) +
                seconds.inputGradient(s, m) + weight;
      bounds.path =
          std::max(bounds.path, downs[m] + turns[m] + std::max(ups[m], weight));
      memory += static_cast<double>(problem.keptBytes(s, m)) * turns[m] +
                static_cast<double>(problem.lateBytes(s, m)) * weight;
      bounds.bytes[s] = std::max(bounds.bytes[s], problem.heldBytes(s, m));
    }
    // Nothing needs to follow a weight gradient.
    bounds.load =
        std::max(bounds.load, loadOf(downs, work, split ? none.data() : ups));
    if (!problem.limits.empty() && problem.limits[s] > 0)
      bounds.memory = std::max(bounds.memory,
                               memory / static_cast<double>(problem.limits[s]));
    for (const StageLink &link : graph.outOf(s))
      for (int m = 0; m < count; ++m) {
        double &behind = rowOf(down, link.to)[m];
        double &back = rowOf(up, link.to)[m];
        behind =
            std::max(behind, downs[m] + (seconds.forward(s, m) + link.seconds));
        back = std::max(
            back, ups[m] + (seconds.inputGradient(s, m) + link.secondsBack()));
      }
  }
  return bounds;
}

} // namespace dyna
