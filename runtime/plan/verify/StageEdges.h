//===- StageEdges.h - Edges between a rank's stage and others ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STAGEEDGES_H
#define DYNA_RUNTIME_PLAN_STAGEEDGES_H

#include "runtime/plan/graph/RankView.h"

#include <vector>

namespace dyna {

/// Returns the edges of this rank's layers whose producer is on another stage, or those
/// whose consumer is.
inline std::vector<int> edgesOfStage(const RankView &view, bool isIncoming) {
  std::vector<int> edges;
  for (int e = 0; e < view.model().edges(); ++e) {
    const Edge &edge = view.model().edge(e);
    if (edge.producer < 0)
      continue;
    const bool produces = view.hasLayer(edge.producer);
    const bool consumes = view.hasLayer(edge.consumer);
    if (produces != consumes && consumes == isIncoming)
      edges.push_back(e);
  }
  return edges;
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STAGEEDGES_H
