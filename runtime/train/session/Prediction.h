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

#include "runtime/base/text/TraceWriter.h"
#include "runtime/planner/report/PlanReport.h"
#include "runtime/train/session/Session.h"

#include <optional>
#include <string>
#include <vector>

namespace dyna {

/// Predicts a step by the costs of the session; nothing without --costs, as estimates
/// alone predict nothing. The step has the programs of all ranks.
StatusOr<std::optional<PlanReport>> predictStep(const Session &session,
                                                const VerifiedStep &step);

/// Reports a step that ran in `seconds`, with what it took of each rank. A measurement
/// has neither bounds of pipelines nor stocks.
PlanReport reportMeasured(const Session &session, const VerifiedStep &step,
                          double seconds, const std::vector<RankUse> &uses);

/// Writes the prediction of a step to the trace of the one that was executed: at `begin`
/// seconds, behind the processes of the ranks, as "predicted rank 0" and so on. Returns
/// the second at which it ends.
StatusOr<double> tracePrediction(const Session &session,
                                 const VerifiedStep &verified, int64_t step,
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
