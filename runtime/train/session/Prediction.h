//===- Prediction.h - Predicted beside measured -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How far what costs say lies from what was measured: of steps, of single
// functions. The error of one is |predicted - measured| / measured.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PREDICTION_H
#define DYNA_RUNTIME_TRAIN_PREDICTION_H

#include "runtime/base/TraceWriter.h"
#include "runtime/planner/report/PlanReport.h"
#include "runtime/train/session/Session.h"

#include <optional>
#include <string>
#include <vector>

namespace dyna {

/// Of a step of these samples that runs this plan; nothing without --costs:
/// estimates alone predict nothing.
StatusOr<std::optional<PlanReport>>
predictStep(const Session &session, const plan::Plan &plan,
            const std::vector<int64_t> &lengths);

/// The same of a step of several graphs: phases one after another, each with a
/// report of its own, and their switches.
StatusOr<std::optional<PlanReport>> predictPhases(const Session &session,
                                                  const PlannedPhases &phases);

/// The same of what ran, in `seconds`, and what it took of each rank: without
/// bounds and stocks, which are none of a measurement.
PlanReport reportMeasured(const Session &session, const VerifiedPlan &plan,
                          double seconds, const std::vector<RankUse> &uses);
PlanReport reportMeasured(const Model &model, const PlannedPhases &phases,
                          double seconds, const std::vector<RankUse> &uses);

/// Writes that step for a trace of the one that was executed: at `begin` seconds,
/// behind the processes of the ranks, "predicted rank 0" and so on. Returns where
/// it ends.
StatusOr<double> tracePrediction(const Session &session, const plan::Plan &plan,
                                 int64_t step, double begin,
                                 TraceWriter &writer);
/// Phases one after another, each between its switches.
StatusOr<double> tracePrediction(const Session &session,
                                 const PlannedPhases &phases, int64_t step,
                                 double begin, TraceWriter &writer);

class PredictionErrors {
public:
  /// Seconds. What took no time, or was predicted by nobody, does not count.
  void add(double predicted, double measured);

  size_t count() const { return errors_.size(); }
  bool empty() const { return errors_.empty(); }
  double mean() const; ///< 0 where there are none, as the next
  /// With each weighted by what was measured: the part of all time that was
  /// predicted wrongly.
  double weighted() const;
  /// The smallest error that 95 of 100 do not exceed.
  double p95() const;
  /// "mean 4.2 %, p95 9.8 %, over 40 steps"; `thing` is one of the things.
  std::string describe(const char *thing, const char *things) const;

private:
  std::vector<double> errors_;
  double wrong_ = 0, measured_ = 0; ///< seconds of all
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PREDICTION_H
