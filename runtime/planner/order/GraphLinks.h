//===- GraphLinks.h - Lists links between stages of a graph -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_GRAPHLINKS_H
#define DYNA_RUNTIME_PLANNER_GRAPHLINKS_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/order/schedules/PipelineProblem.h"

namespace dyna {

/// Returns a link for each edge between stages, with messages of `seconds`
/// seconds.
inline std::vector<StageLink> linksOf(const ExecutableGraph &graph,
                                      double seconds) {
  std::vector<StageLink> links;
  for (int edge : graph.crossingEdges()) {
    const ExecutableGraph::Ends &ends = graph.endsOf(edge);
    links.push_back({ends.producer, ends.consumer, seconds, edge,
                     graph.model().hasGradient(edge)});
  }
  return links;
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_GRAPHLINKS_H
