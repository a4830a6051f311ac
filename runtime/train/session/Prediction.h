//===- Prediction.h - Compares predictions with measurements ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes the errors of predictions of steps and of single functions. The
// error of one is |predicted - measured| / measured.
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

/// Predicts a step by the costs of the session. Returns nothing without
/// --costs, because estimates are too coarse. The step has the programs of all
/// ranks.
StatusOr<std::optional<PlanReport>> predictStep(const Session &session,
                                                const VerifiedStep &step);

/// Reports a step that ran in `seconds`, with the measured use of each rank. A
/// measurement has neither bounds of pipelines nor stocks.
PlanReport reportMeasured(const Session &session, const VerifiedStep &step,
                          double seconds, const std::vector<RankUse> &uses);

/// Writes the prediction of a step to the trace of the executed step. It begins
/// at `begin` seconds, and is placed after the processes of the ranks, as
/// "predicted rank 0" and so on. Returns the second at which it ends.
StatusOr<double> tracePrediction(const Session &session,
                                 const VerifiedStep &verified, int64_t step,
                                 double begin, TraceWriter &writer);

class PredictionErrors {
public:
  /// Adds a pair, in seconds. Ignores it if either is 0.
  void add(double predicted, double measured);

  size_t count() const { return errors_.size(); }
  bool empty() const { return errors_.empty(); }
  double mean() const; ///< 0 without pairs, as the two below
  /// Returns the mean error weighted by measured time: the share of time that
  /// was predicted wrongly.
  double weighted() const;
  /// Returns the smallest error that 95 of 100 do not exceed.
  double p95() const;
  /// Formats the errors: "mean 4.2 %, p95 9.8 %, over 40 steps". `thing` and
  /// `things` are the singular and the plural of the noun.
  std::string describe(const char *thing, const char *things) const;

private:
  std::vector<double> errors_;
  double wrong_ = 0, measured_ = 0; ///< sums, in seconds
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PREDICTION_H
