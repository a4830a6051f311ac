//===- PipelineTimes.h - Times the items of a pipeline ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every item runs as soon as its stage is free and its predecessors have ended
// (StageGraph.h). The makespan, and memory, idle time and safety stock of each stage
// follow from that.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PIPELINETIMES_H
#define DYNA_RUNTIME_PLANNER_PIPELINETIMES_H

#include "runtime/planner/order/schedules/Schedules.h"

namespace dyna {

/// Seconds of items. Costs come from files, and functions may take no time, or
/// a billion times that of others. Later code needs times that grow from each
/// item to the next. So times far below the longest item or message count as a
/// billionth of it, and times far above any clock are limited.
class ItemSeconds {
public:
  explicit ItemSeconds(const PipelineProblem &problem);

  double forward(int stage, int m) const {
    return clamp(problem_.forward[stage][m]);
  }
  /// Returns the seconds of backward in one piece.
  double backward(int stage, int m) const {
    return clamp(problem_.backward[stage][m]);
  }
  // Parts of backward, used by schedules that fill gaps.
  double recompute(int stage, int m) const {
    return std::clamp(problem_.recomputeOf(stage, m), 0.0, most);
  }
  double inputGradient(int stage, int m) const {
    return clamp(problem_.backward[stage][m] - problem_.weightOf(stage, m) -
                 problem_.recomputeOf(stage, m));
  }
  double weight(int stage, int m) const {
    return clamp(problem_.weightOf(stage, m));
  }

private:
  static constexpr double most = 1e18;
  double clamp(double seconds) const {
    return std::clamp(seconds, least_, most);
  }
  const PipelineProblem &problem_;
  double least_ = 0;
};

struct ClockOptions {
  /// True if weight gradients are separate items and recomputation comes before
  /// the wait, as in ScheduleRule.
  bool fillsGaps = false;
  /// Number of micro-batches that a stage may be ahead of those that it links to; 0
  /// if backwards hold it back.
  int sentAhead = 0;
};

/// Fills in when the items run. Fails, with an item that never runs, if the orders
/// wait for each other, and if links form a circle.
/// O(items).
Status timeItems(StageOrders &orders, const PipelineProblem &problem,
                 const ClockOptions &options);

/// A pipeline that shares its stages with another one.
struct MirroredPipeline {
  StageOrders &orders;
  const PipelineProblem &problem;
};

/// Fills in when the items of two pipelines run. Their stages share devices in opposite
/// order: stage s of `down`, and the last stage but s of `up`. A device runs the items of
/// both by their slots (ChimeraSlots.h). Fails as timeItems. O(items).
Status timeMirrored(MirroredPipeline down, MirroredPipeline up,
                    const ClockOptions &options);

// The functions below take orders whose times are filled in.

/// Returns the end of the last item.
double makespanOf(const StageOrders &orders);

/// Bytes that each stage holds at most, by `kept` and `late`.
std::vector<int64_t> peakBytesOf(const StageOrders &orders,
                                 const PipelineProblem &problem);

/// Items that wait for a stage, ready, at the moment it turns to its next one,
/// between its first backward and its last forward. Without any, all that
/// another stage takes longer is time in which this one is idle (DynaPipe,
/// section 5). Forwards of the first stage are always there and do not count.
struct SafetyStock {
  int median = 0;
  double mean = 0;
};
/// Returns the safety stock by stage. O(items log items).
std::vector<SafetyStock> safetyStockOf(const StageOrders &orders,
                                       const PipelineProblem &problem);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PIPELINETIMES_H
