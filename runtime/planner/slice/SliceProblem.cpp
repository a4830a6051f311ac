//===- SliceProblem.cpp - Describes samples to slice ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/SliceProblem.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {
namespace {

constexpr double mostSeconds = 1e18;
/// Sums of so many bytes are exact as doubles, too.
constexpr int64_t mostBytes = INT64_C(1) << 53;

Status checkOptions(const SliceProblem &problem) {
  const SliceOptions &options = problem.options;
  if (options.stages < 1 || options.grain < 1 || options.mostJoined < 1 ||
      problem.costs.modes < 1)
    return Status::invalidArgument(formatText(
        "slices with grain %d for %d stages, %d samples joined, %d modes: "
        "expects at least 1 of each",
        options.grain, options.stages, options.mostJoined,
        problem.costs.modes));
  if (options.sliceTokens < 1)
    return Status::invalidArgument(
        formatText("slices of at most %d tokens: expects at least 1",
                   options.sliceTokens));
  if (!problem.costs.slice)
    return Status::invalidArgument("there is no function for costs of slices");
  if (!problem.bundles.empty() && !problem.costs.bundle)
    return Status::invalidArgument("there are bundles, but no function for "
                                   "their costs");
  return Status::ok();
}

/// Marks the samples in `seen`. Fails if one does not exist or is marked already.
Status takeSamples(const std::vector<int64_t> &samples, const char *what,
                   std::vector<bool> &seen) {
  if (samples.empty())
    return Status::invalidArgument(formatText("a %s without samples", what));
  for (int64_t sample : samples) {
    if (sample < 0 || static_cast<size_t>(sample) >= seen.size())
      return Status::invalidArgument(
          formatText("a %s has sample %d, but there are %d samples", what,
                     sample, seen.size()));
    if (seen[sample])
      return Status::invalidArgument(formatText(
          "a %s has sample %d, which is in the plan already", what, sample));
    seen[sample] = true;
  }
  return Status::ok();
}

Status checkCost(const SliceCost &cost, const std::string &what) {
  auto isSeconds = [](double value) {
    return value >= 0 && value <= mostSeconds;
  };
  if (isSeconds(cost.forward) && isSeconds(cost.backward) && cost.bytes >= 0 &&
      cost.bytes <= mostBytes)
    return Status::ok();
  return Status::invalidArgument(
      formatText("%s costs %g s forward and %g s backward and keeps %d bytes: "
                 "expects 0 to 1e18 s and 0 to 2^53 bytes",
                 what, cost.forward, cost.backward, cost.bytes));
}

/// Adds a slice or bundle to the sums of the plan.
void add(SlicePlan &plan, const SliceCost &cost) {
  const double total = cost.forward + cost.backward;
  plan.sum += total;
  plan.largestForward = std::max(plan.largestForward, cost.forward);
  plan.largestBackward = std::max(plan.largestBackward, cost.backward);
  plan.largestTotal = std::max(plan.largestTotal, total);
  plan.bytes +=
      std::min(cost.bytes, std::numeric_limits<int64_t>::max() - plan.bytes);
}

Status addCut(const SliceProblem &problem, const SampleCut &cut,
              SlicePlan &plan) {
  const int64_t length = problem.lengths[cut.samples.front()];
  for (int64_t sample : cut.samples)
    if (problem.lengths[sample] != length)
      return Status::invalidArgument(formatText(
          "sample %d has %d tokens and is joined with one of %d tokens", sample,
          problem.lengths[sample], length));
  int64_t begin = 0;
  for (const TokenSlice &slice : cut.slices) {
    if (slice.tokens < 1 || slice.tokens > length - begin)
      return Status::invalidArgument(
          formatText("sample %d has %d tokens after token %d, but its next "
                     "slice has %d",
                     cut.samples.front(), length - begin, begin, slice.tokens));
    if (slice.tokens % problem.options.grain != 0 &&
        slice.tokens < length - begin)
      return Status::invalidArgument(
          formatText("a slice of sample %d has %d tokens, which is no multiple "
                     "of the grain %d",
                     cut.samples.front(), slice.tokens, problem.options.grain));
    DYNA_ASSIGN_OR_RETURN(
        SliceCost cost,
        costOfSlice(problem, {static_cast<int64_t>(cut.samples.size()), begin,
                              slice.tokens, slice.mode}));
    add(plan, cost);
    begin += slice.tokens;
  }
  if (begin != length)
    return Status::invalidArgument(
        formatText("the slices of sample %d have %d tokens, but it has %d",
                   cut.samples.front(), begin, length));
  return Status::ok();
}

} // namespace

Status checkSlices(const SliceProblem &problem) {
  DYNA_RETURN_IF_ERROR(checkOptions(problem));
  for (size_t sample = 0; sample < problem.lengths.size(); ++sample)
    if (problem.lengths[sample] < 1)
      return Status::invalidArgument(
          formatText("sample %d has %d tokens: expects at least 1", sample,
                     problem.lengths[sample]));
  std::vector<bool> seen(problem.lengths.size(), false);
  for (const std::vector<int64_t> &bundle : problem.bundles)
    DYNA_RETURN_IF_ERROR(takeSamples(bundle, "bundle", seen));
  return Status::ok();
}

StatusOr<SliceCost> costOfSlice(const SliceProblem &problem,
                                const SliceShape &shape) {
  if (shape.mode < 0 || shape.mode >= problem.costs.modes)
    return Status::invalidArgument(formatText("a slice in mode %d of %d",
                                              shape.mode, problem.costs.modes));
  SliceCost cost = problem.costs.slice(shape);
  if (Status fits = checkCost(cost, ""); !fits.isOk())
    return checkCost(cost, formatText("a slice of %d tokens after %d tokens of "
                                      "%d samples, in mode %d,",
                                      shape.tokens, shape.begin, shape.samples,
                                      shape.mode));
  return cost;
}

StatusOr<SliceCost> costOfBundle(const SliceProblem &problem,
                                 const std::vector<int64_t> &samples,
                                 int mode) {
  if (mode < 0 || mode >= problem.costs.modes)
    return Status::invalidArgument(
        formatText("a bundle in mode %d of %d", mode, problem.costs.modes));
  if (!problem.costs.bundle)
    return Status::invalidArgument("there are bundles, but no function for "
                                   "their costs");
  std::vector<int64_t> lengths;
  for (int64_t sample : samples)
    lengths.push_back(problem.lengths[sample]);
  SliceCost cost = problem.costs.bundle(lengths, mode);
  DYNA_RETURN_IF_ERROR(
      checkCost(cost, formatText("a bundle of %d samples in mode %d",
                                 samples.size(), mode)));
  return cost;
}

Status timeSlices(const SliceProblem &problem, SlicePlan &plan) {
  DYNA_RETURN_IF_ERROR(checkOptions(problem));
  plan.sum = plan.largestForward = plan.largestBackward = plan.largestTotal = 0;
  plan.bytes = 0;
  std::vector<bool> seen(problem.lengths.size(), false);
  for (const SampleCut &cut : plan.cuts) {
    DYNA_RETURN_IF_ERROR(takeSamples(cut.samples, "cut", seen));
    DYNA_RETURN_IF_ERROR(addCut(problem, cut, plan));
  }
  for (const SliceBundle &bundle : plan.bundles) {
    DYNA_RETURN_IF_ERROR(takeSamples(bundle.samples, "bundle", seen));
    DYNA_ASSIGN_OR_RETURN(SliceCost cost,
                          costOfBundle(problem, bundle.samples, bundle.mode));
    add(plan, cost);
  }
  auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end())
    return Status::invalidArgument(formatText(
        "sample %d is in no cut and in no bundle", missing - seen.begin()));
  const SliceOptions &options = problem.options;
  plan.objective = pipelineSeconds(
      options.stages, plan.sum,
      options.joinsDirections ? plan.largestTotal
                              : plan.largestForward + plan.largestBackward);
  return Status::ok();
}

} // namespace dyna
