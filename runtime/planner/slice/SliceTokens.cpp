//===- SliceTokens.cpp - Cuts samples into slices exactly -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/SliceTokens.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/slice/KeptProgram.h"

#include <cmath>
#include <queue>

namespace dyna {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

double above(double value) { return std::nextafter(value, infinity); }
double below(double value) { return std::nextafter(value, -infinity); }

/// Plans by their largest forward F and by T, the sum of their largest forward and
/// their largest backward.
struct Region {
  double lowForward = 0, highForward = 0;
  double lowTotal = 0, highTotal = 0;
  double highBackward = 0;
  double sum = 0;   ///< No plan of the region has a smaller sum ...
  double least = 0; ///< ... or a smaller objective.

  bool operator<(const Region &other) const {
    // The queue pops the most promising region first.
    return least != other.least ? least > other.least
                                : lowForward > other.lowForward;
  }
};

/// Searches the caps for the best plan.
class CapSearch {
public:
  CapSearch(CutProgram &program, int stages)
      : program_(program), stages_(stages) {}

  /// `all` has every plan. False if there is no plan.
  bool run(Region all);
  const SlicePlan &plan() const { return plan_; }
  int tried() const { return tried_; }

private:
  /// Returns the objective. It is monotone in both arguments, also after
  /// rounding; the bounds rely on it.
  double objective(double sum, double largest) const {
    return pipelineSeconds(stages_, sum, largest);
  }
  CappedCuts solve(const Region &region);
  void add(Region region);
  double largestBetter(double sum, double high) const;
  void look(Region region);
  void split(const Region &region, const CappedCuts &cuts);

  CutProgram &program_;
  const int stages_;
  int tried_ = 0;
  Region all_; ///< All plans that may be better than the first one.
  double best_ = infinity;
  SlicePlan plan_;
  std::priority_queue<Region> regions_;
};

CappedCuts CapSearch::solve(const Region &region) {
  SliceCaps caps;
  caps.total = region.highTotal;
  caps.forward = std::min(region.highForward, region.highTotal);
  // The cap is slightly above every b with lowForward + b <= highTotal.
  caps.backward =
      std::min(region.highBackward, region.highTotal - region.lowForward +
                                        region.highTotal * epsilon);
  // Larger sums are not better with any total of the region.
  const double most = best_ - (stages_ - 1) * region.lowTotal;
  CappedCuts cuts = program_.solve(caps, most + 1e-12 * best_);
  ++tried_;
  const double largest = cuts.largestForward + cuts.largestBackward;
  if (cuts.exist() && objective(cuts.sum, largest) < best_) {
    best_ = objective(cuts.sum, largest);
    plan_ = program_.plan();
  }
  return cuts;
}

void CapSearch::add(Region region) {
  region.least = objective(region.sum, region.lowTotal);
  if (region.lowForward <= region.highForward &&
      region.lowTotal <= region.highTotal && region.least < best_)
    regions_.push(region);
}

/// Returns a total up to `high` above which no plan with at least this sum is
/// better than the best one.
double CapSearch::largestBetter(double sum, double high) const {
  if (stages_ == 1)
    return high;
  double total = (best_ - sum) / (stages_ - 1);
  // Add what rounding may have removed.
  for (double step =
           std::max(total * epsilon, std::numeric_limits<double>::denorm_min());
       total < high && objective(sum, total) < best_; step *= 2)
    total += step;
  return std::min(total, high);
}

/// Splits a region. The cuts are in neither part: their f is above the forwards
/// of one, and their b above the backwards of the other.
void CapSearch::split(const Region &region, const CappedCuts &cuts) {
  const double f = cuts.largestForward, b = cuts.largestBackward;
  const double least = region.highTotal - b;
  const double middle =
      std::min(std::max(least + (f - least) / 2, region.lowForward), below(f));
  Region lower = region, upper = region;
  lower.highForward = middle;
  upper.lowForward = std::max(above(middle), region.lowForward);
  // Because of rounding this test may miss that b is too large.
  if (upper.lowForward + b > region.highTotal)
    upper.highBackward = std::min(upper.highBackward, below(b));
  add(lower);
  add(upper);
}

void CapSearch::look(Region region) {
  region.highTotal = largestBetter(region.sum, region.highTotal);
  if (region.highTotal < region.lowTotal)
    return;
  // Programs for totals in the middle find a good plan early.
  if (tried_ < 12 && region.lowTotal < region.highTotal) {
    Region upper = region;
    region.highTotal =
        region.lowTotal + (region.highTotal - region.lowTotal) / 2;
    upper.lowTotal = above(region.highTotal);
    add(upper);
  }
  // The first programs have found a good plan by now, so narrow the tables.
  if (tried_ == 12)
    program_.narrow({all_.highForward, all_.highBackward,
                     largestBetter(all_.sum, all_.highTotal)});
  CappedCuts cuts = solve(region);
  if (!cuts.exist())
    return;
  region.sum = cuts.sum;
  const double total = cuts.largestForward + cuts.largestBackward;
  if (total <= region.highTotal) {
    // From this total to the end of the region the sum is the same.
    region.highTotal = below(total);
    add(region);
    return;
  }
  region.highTotal = largestBetter(region.sum, region.highTotal);
  split(region, cuts);
}

bool CapSearch::run(Region all) {
  CappedCuts any = solve(all);
  if (!any.exist())
    return false;
  all.sum = any.sum;
  all.highTotal = below(any.largestForward + any.largestBackward);
  all_ = all;
  add(all);
  while (!regions_.empty()) {
    Region region = regions_.top();
    regions_.pop();
    if (region.least >= best_)
      break;
    look(region);
  }
  return true;
}

/// Says which sample has no cut within the limits of slices, if one has none.
Status checkReach(const SliceProblem &problem, const SliceTables &tables,
                  CapProgram &program) {
  for (size_t number = 0; number < tables.groups.size(); ++number) {
    const LengthGroup &group = tables.groups[number];
    const int64_t end = program.reached(number);
    if (end == group.tokens)
      continue;
    SliceShape shape;
    shape.begin = end;
    shape.tokens = std::min(tables.grain, group.tokens - end);
    int64_t bytes = std::numeric_limits<int64_t>::max();
    for (shape.mode = 0; shape.mode < problem.costs.modes; ++shape.mode) {
      DYNA_ASSIGN_OR_RETURN(SliceCost cost, costOfSlice(problem, shape));
      bytes = std::min(bytes, cost.bytes);
    }
    return Status::resourceExhausted(formatText(
        "sample %d has no cut: a slice of %d tokens after token %d keeps %s, "
        "but a slice may have %s and %d tokens",
        group.samples.front(), shape.tokens, end, formatBytes(bytes),
        formatBytes(problem.options.sliceBytes), problem.options.sliceTokens));
  }
  return Status::ok();
}

/// Fails with the fewest bytes of all plans, if they are above the limit.
Status checkTotalBytes(const SliceProblem &problem, const Region &all,
                       CapProgram &program) {
  program.solveWeighted({all.highForward, all.highBackward, all.highTotal},
                        {0, 1});
  SlicePlan plan = program.plan();
  DYNA_RETURN_IF_ERROR(timeSlices(problem, plan));
  if (plan.bytes <= problem.options.totalBytes)
    return Status::ok();
  return Status::resourceExhausted(formatText(
      "all slices and bundles together keep at least %s, but the limit is %s",
      formatBytes(plan.bytes), formatBytes(problem.options.totalBytes)));
}

} // namespace

StatusOr<SlicePlan> sliceTokens(const SliceProblem &problem) {
  DYNA_ASSIGN_OR_RETURN(SliceTables tables, makeSliceTables(problem));
  CapProgram program(problem, tables);
  Region all;
  const SliceCaps &low = program.lowest();
  all.lowForward = low.forward;
  all.highForward = tables.largestForward;
  all.highBackward = tables.largestBackward;
  all.lowTotal = std::max(low.total, low.forward + low.backward);
  all.highTotal = all.highForward + all.highBackward;
  CapSearch search(program, problem.options.stages);
  if (!search.run(all)) {
    DYNA_RETURN_IF_ERROR(checkReach(problem, tables, program));
    return Status::internal("slices have no plan, but fit");
  }
  SlicePlan plan = search.plan();
  plan.tried = search.tried();
  DYNA_RETURN_IF_ERROR(timeSlices(problem, plan));
  if (plan.bytes > problem.options.totalBytes) {
    CapProgram free(problem, tables);
    DYNA_RETURN_IF_ERROR(checkTotalBytes(problem, all, free));
    KeptProgram kept(problem, tables, free);
    CapSearch within(kept, problem.options.stages);
    if (!within.run(all))
      return Status::internal("slices have no plan, but fit");
    const int tried = plan.tried + within.tried();
    plan = within.plan();
    plan.tried = tried;
    DYNA_RETURN_IF_ERROR(timeSlices(problem, plan));
  }
  plan.estimate = plan.objective;
  return plan;
}

} // namespace dyna
