//===- KeptProgram.cpp - Minimises sums under a byte limit ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/KeptProgram.h"

#include "runtime/planner/slice/KeptLabels.h"

#include <cassert>

namespace dyna {

KeptProgram::Candidate KeptProgram::timed(SlicePlan plan) const {
  Status status = timeSlices(problem_, plan);
  assert(status.isOk() && "all costs were asked for before");
  (void)status;
  Candidate made;
  made.cuts.sum = plan.sum;
  made.cuts.largestForward = plan.largestForward;
  made.cuts.largestBackward = plan.largestBackward;
  if (problem_.options.joinsDirections) {
    made.cuts.largestForward = plan.largestTotal;
    made.cuts.largestBackward = 0;
  }
  made.plan = std::move(plan);
  return made;
}

/// Raises the price of a byte until the bound is largest; returns the bound. `above`
/// keeps too many bytes. The last solve of the program has the price. Cuts within the
/// limit replace `best_` if they have fewer seconds.
double KeptProgram::raiseBound(const SliceCaps &caps, Candidate above) {
  const auto limit = static_cast<double>(problem_.options.totalBytes);
  Candidate below = best_;
  double bound = above.cuts.sum;
  for (int turn = 0; turn < 64; ++turn) {
    const double seconds = below.cuts.sum - above.cuts.sum;
    const double bytes = static_cast<double>(above.plan.bytes) -
                         static_cast<double>(below.plan.bytes);
    price_ = std::max(0.0, seconds / bytes);
    const double sum = program_.solveWeighted(caps, {1, price_}).sum;
    bound = sum - price_ * limit;
    const double line =
        above.cuts.sum + price_ * static_cast<double>(above.plan.bytes);
    // No cuts lie below the line through both candidates.
    if (sum >= line - 1e-12 * line)
      break;
    Candidate made = timed(program_.plan());
    if (made.plan.bytes > problem_.options.totalBytes) {
      above = std::move(made);
      continue;
    }
    // This one is nearer to the limit, and so takes fewer seconds.
    best_ = made;
    below = std::move(made);
  }
  return bound;
}

CappedCuts KeptProgram::solve(const SliceCaps &caps, double mostSeconds) {
  const int64_t limit = problem_.options.totalBytes;
  CappedCuts cuts = program_.solve(caps, mostSeconds);
  if (!cuts.exist() || cuts.sum >= mostSeconds)
    return {};
  Candidate above = timed(program_.plan());
  if (above.plan.bytes <= limit) {
    best_ = std::move(above);
    return best_.cuts;
  }
  program_.solveWeighted(caps, {0, 1});
  best_ = timed(program_.plan());
  if (best_.plan.bytes > limit)
    return {};
  const double bound = raiseBound(caps, std::move(above));
  const double most = std::min(mostSeconds, best_.cuts.sum);
  // The margin covers rounding errors.
  if (bound < most + 1e-12 * most) {
    KeptLabels labels(problem_, tables_, program_, caps, price_);
    SlicePlan plan;
    if (labels.solve(most, plan))
      best_ = timed(std::move(plan));
  }
  return best_.cuts.sum < mostSeconds ? best_.cuts : CappedCuts();
}

} // namespace dyna
