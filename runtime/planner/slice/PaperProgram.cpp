//===- PaperProgram.cpp - Runs TeraPipe's own programs --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/planner/slice/CapProgram.h"
#include "runtime/planner/slice/SliceBaselines.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns the problem in the form of the paper: one cost, one mode, no limits.
SliceProblem plain(const SliceProblem &problem) {
  SliceProblem made = problem;
  made.costs.modes = 1;
  made.options = {};
  made.options.stages = problem.options.stages;
  made.options.grain = problem.options.grain;
  made.options.mostJoined = problem.options.mostJoined;
  made.options.joinsDirections = true;
  return made;
}

/// Returns all costs of slices and bundles, each once, ascending.
std::vector<double> costsOf(const SliceTables &tables) {
  std::vector<double> costs;
  for (const JoinedTable &table : tables.tables)
    for (const ModeTable &mode : table.modes)
      costs.insert(costs.end(), mode.forward.begin(), mode.forward.end());
  for (const BundleCosts &bundle : tables.bundles)
    costs.push_back(bundle.modes.front().forward);
  std::sort(costs.begin(), costs.end());
  costs.erase(std::unique(costs.begin(), costs.end()), costs.end());
  return costs;
}

/// Equation 6 with caps at least epsilon apart.
class PaperCaps {
public:
  PaperCaps(const SliceProblem &problem, const SliceTables &tables)
      : stages_(problem.options.stages), costs_(costsOf(tables)),
        program_(problem, tables) {}

  void tryAll(double epsilon) {
    double last = -infinity;
    for (double cap : costs_) {
      if (stages_ * cap > seconds)
        break;
      if (cap - last < epsilon)
        continue;
      last = cap;
      tryOne(cap);
    }
    if (seconds == infinity && !costs_.empty())
      tryOne(costs_.back());
  }

  SlicePlan plan;
  double seconds = infinity; ///< of the plan; infinite without one
  int tried = 0;

private:
  /// Caps below all cuts count as tried, but their program is not run.
  void tryOne(double cap) {
    ++tried;
    if (cap < program_.lowest().total)
      return;
    const double sum = program_.solveWeighted({cap, cap, cap}, {}).sum;
    if (pipelineSeconds(stages_, sum, cap) < seconds) {
      seconds = pipelineSeconds(stages_, sum, cap);
      plan = program_.plan();
    }
  }

  const int stages_;
  const std::vector<double> costs_;
  CapProgram program_;
};

Status checkEpsilon(double epsilon) {
  if (epsilon >= 0 && std::isfinite(epsilon))
    return Status::ok();
  return Status::invalidArgument(
      formatText("caps %g s apart: expects a number from 0 on", epsilon));
}

} // namespace

StatusOr<SlicePlan> sliceByPaperCode(const SliceProblem &problem,
                                     double epsilon) {
  DYNA_RETURN_IF_ERROR(checkSlices(problem));
  DYNA_RETURN_IF_ERROR(checkEpsilon(epsilon));
  const SliceProblem own = plain(problem);
  DYNA_ASSIGN_OR_RETURN(SliceTables tables, makeSliceTables(own));
  PaperCaps caps(own, tables);
  caps.tryAll(epsilon);
  SlicePlan plan = std::move(caps.plan);
  DYNA_RETURN_IF_ERROR(timeSlices(problem, plan));
  plan.tried = caps.tried;
  plan.estimate = problem.lengths.empty() ? 0 : caps.seconds;
  return plan;
}

namespace {

/// Adds cuts of one length to the plan, with the smallest sum of times.
Status addLength(const SliceProblem &problem,
                 const std::vector<int64_t> &samples, double epsilon,
                 SlicePlan &plan) {
  const auto count = static_cast<int64_t>(samples.size()),
             most = std::min(count, problem.options.mostJoined);
  std::vector<std::vector<TokenSlice>> cuts(most + 1);
  std::vector<double> times(most + 1, infinity);
  for (int64_t joined = 1; joined <= most; ++joined) {
    SliceProblem own = plain(problem);
    own.lengths = {problem.lengths[samples.front()]};
    own.bundles.clear();
    own.costs.slice = [&problem, joined](SliceShape shape) {
      shape.samples = joined;
      return problem.costs.slice(shape);
    };
    DYNA_ASSIGN_OR_RETURN(SliceTables tables, makeSliceTables(own));
    PaperCaps caps(own, tables);
    caps.tryAll(epsilon);
    cuts[joined] = caps.plan.cuts.front().slices;
    times[joined] = caps.seconds;
    plan.tried += caps.tried;
  }
  std::vector<double> seconds(count + 1, infinity);
  std::vector<int64_t> last(count + 1, 0);
  seconds[0] = 0;
  for (int64_t left = 1; left <= count; ++left)
    for (int64_t joined = 1; joined <= std::min(most, left); ++joined)
      if (seconds[left - joined] + times[joined] < seconds[left]) {
        seconds[left] = seconds[left - joined] + times[joined];
        last[left] = joined;
      }
  plan.estimate += seconds[count];
  auto sample = samples.begin();
  for (int64_t left = count; left > 0; left -= last[left]) {
    auto end = sample + last[left];
    plan.cuts.push_back({{sample, end}, cuts[last[left]]});
    sample = end;
  }
  return Status::ok();
}

} // namespace

StatusOr<SlicePlan> sliceByPaper(const SliceProblem &problem, double epsilon) {
  DYNA_RETURN_IF_ERROR(checkSlices(problem));
  DYNA_RETURN_IF_ERROR(checkEpsilon(epsilon));
  SlicePlan plan;
  for (const std::vector<int64_t> &bundle : problem.bundles) {
    DYNA_ASSIGN_OR_RETURN(SliceCost cost, costOfBundle(problem, bundle, 0));
    plan.bundles.push_back({bundle, 0});
    plan.estimate += problem.options.stages * (cost.forward + cost.backward);
  }
  for (const LengthGroup &group : groupLengths(problem))
    DYNA_RETURN_IF_ERROR(addLength(problem, group.samples, epsilon, plan));
  const double estimate = plan.estimate;
  DYNA_RETURN_IF_ERROR(timeSlices(problem, plan));
  plan.estimate = estimate;
  return plan;
}

} // namespace dyna
