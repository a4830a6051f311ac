//===- SwitchEstimate.h - Estimates the cost of a switch --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A search needs estimates of a thousand pairs of graphs in the time in which
// one switch is planned. So the estimate counts the bytes that cross each cut.
// These are bytes that a node lacks, over the network ports of its ranks, and
// bytes that a rank lacks, over its own port. Parameters that lie alike are a
// class, and classes are cut into lots as for a plan (switches/Lots.h).
//
// Data for one of several ranks (gradients) stay on a rank that has them, or go
// to all of them evenly. Ports are full duplex; network and node work at once.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHESTIMATE_H
#define DYNA_RUNTIME_PLANNER_SWITCHESTIMATE_H

#include "runtime/cost/Cluster.h"
#include "runtime/plan/graph/ExecutableGraph.h"

#include <vector>

namespace dyna {

/// Home's phase is the last one (Orchestrate.h): values go from phase to phase, or
/// from home, and the gradients of each straight home.
enum class SwitchKind {
  First,     ///< values, from home
  Next,      ///< values, from the phase before
  Gradients, ///< gradients, to home
};

/// Distribution of a graph's parameters, as far as switches depend on it.
class SwitchLayout {
public:
  /// O(parameters * ranks).
  explicit SwitchLayout(const ExecutableGraph &graph);

  int ranks() const { return ranks_; }

private:
  friend class SwitchEstimator;
  struct Lists {
    std::vector<RankBox> boxes, current;
  };
  int ranks_;
  std::vector<Lists> lists_;
  std::vector<int> listOf_; ///< of each parameter
};

class SwitchEstimator {
public:
  /// All layouts are of graphs of `model`, which may go once this is made.
  SwitchEstimator(const Model &model, const Cluster &cluster);

  /// Seconds until the last rank has what it needs, latency and waiting left out.
  /// O(parameters + pairs of classes * cells * ranks).
  double seconds(SwitchKind kind, const SwitchLayout &from,
                 const SwitchLayout &to) const;

private:
  struct Parameter {
    int64_t valueBytes, gradientBytes; ///< of an element
  };
  std::vector<Parameter> parameters_;
  Cluster cluster_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SWITCHESTIMATE_H
