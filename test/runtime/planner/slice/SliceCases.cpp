//===- SliceCases.cpp - Random slicing problems, and all their plans ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/planner/slice/SliceCases.h"

#include <algorithm>
#include <limits>
#include <map>

namespace dyna {
namespace {

/// From 0 to 1, by all of its arguments.
double drawn(uint64_t seed, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t bits = dyna_mix64(seed);
  for (uint64_t part : {a, b, c, d})
    bits = dyna_mix64(bits ^ part);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

double secondsOf(uint64_t seed, CostKind kind, const SliceShape &shape,
                 bool backward) {
  const double u = drawn(seed, shape.samples * 2 + backward, shape.begin,
                         shape.tokens, shape.mode),
               start = drawn(seed, backward, 1, 2, 3) * 4,
               byToken = drawn(seed, backward, 4, 5, 6),
               byPair = drawn(seed, backward, 7, 8, 9) / 8,
               slow = 1 + (backward ? 0.3 : 0.0) * shape.mode;
  const auto begin = static_cast<double>(shape.begin),
             tokens = static_cast<double>(shape.samples * shape.tokens);
  const double pairs = tokens * (begin + static_cast<double>(shape.tokens) / 2);
  switch (kind) {
  case CostKind::Integers:
    return static_cast<double>(static_cast<int>(u * 12));
  case CostKind::Reals:
    return u * (u < 0.1 ? 0.01 : 1) + (backward ? 0.2 : 0.4) * tokens * u;
  case CostKind::Monotone:
    return slow * (start + byToken * tokens + byPair * pairs);
  case CostKind::Steps:
    return slow * (std::max(start * 2, byToken * tokens) + byPair * pairs);
  }
  return 0;
}

class Visitor {
public:
  Visitor(const SliceProblem &problem, const Visit &visit)
      : problem_(problem), visit_(visit) {
    std::vector<bool> isWhole(problem.lengths.size(), false);
    for (const auto &bundle : problem.bundles)
      for (int64_t sample : bundle)
        isWhole[sample] = true;
    std::map<int64_t, int64_t> counts;
    for (size_t sample = 0; sample < problem.lengths.size(); ++sample)
      if (!isWhole[sample])
        ++counts[problem.lengths[sample]];
    groups_.assign(counts.begin(), counts.end());
  }

  void group(size_t number, const SliceSums &sums) {
    if (number == groups_.size())
      return bundle(0, sums);
    join(number, groups_[number].second, sums);
  }

private:
  void join(size_t number, int64_t left, const SliceSums &sums) {
    if (left == 0)
      return group(number + 1, sums);
    const int64_t most = std::min(left, problem_.options.mostJoined);
    for (int64_t joined = 1; joined <= most; ++joined)
      slice(number, left - joined, joined, 0, sums);
  }

  void slice(size_t number, int64_t left, int64_t joined, int64_t begin,
             const SliceSums &sums) {
    const SliceOptions &options = problem_.options;
    const int64_t length = groups_[number].first;
    if (begin == length)
      return join(number, left, sums);
    for (int64_t tokens = 1; tokens <= length - begin; ++tokens) {
      if (tokens % options.grain != 0 && tokens < length - begin)
        continue;
      if (tokens * joined > options.sliceTokens)
        break;
      for (int mode = 0; mode < problem_.costs.modes; ++mode) {
        SliceCost cost = problem_.costs.slice({joined, begin, tokens, mode});
        if (cost.bytes > options.sliceBytes)
          continue;
        SliceSums more = sums;
        more.add(cost);
        slice(number, left, joined, begin + tokens, more);
      }
    }
  }

  void bundle(size_t number, const SliceSums &sums) {
    if (number == problem_.bundles.size())
      return visit_(sums);
    std::vector<int64_t> lengths;
    for (int64_t sample : problem_.bundles[number])
      lengths.push_back(problem_.lengths[sample]);
    for (int mode = 0; mode < problem_.costs.modes; ++mode) {
      SliceCost cost = problem_.costs.bundle(lengths, mode);
      if (cost.bytes > problem_.options.sliceBytes)
        continue;
      SliceSums more = sums;
      more.add(cost);
      bundle(number + 1, more);
    }
  }

  const SliceProblem &problem_;
  const Visit &visit_;
  std::vector<std::pair<int64_t, int64_t>> groups_; ///< Tokens, samples.
};

} // namespace

SliceCosts drawCosts(uint64_t seed, CostKind kind, int modes) {
  SliceCosts costs;
  costs.modes = modes;
  costs.slice = [=](const SliceShape &shape) {
    SliceCost cost;
    cost.forward = secondsOf(seed, kind, shape, false);
    cost.backward = secondsOf(seed, kind, shape, true);
    // Later modes keep less of a token.
    cost.bytes = shape.samples * shape.tokens * (2 * (modes - shape.mode) + 1);
    if (kind == CostKind::Reals)
      cost.bytes += static_cast<int64_t>(7 * cost.forward);
    return cost;
  };
  costs.bundle = [slice = costs.slice](const std::vector<int64_t> &lengths,
                                       int mode) {
    SliceShape shape;
    shape.mode = mode;
    for (int64_t length : lengths)
      shape.tokens += length;
    return slice(shape);
  };
  return costs;
}

void visitPlans(const SliceProblem &problem, const Visit &visit) {
  Visitor(problem, visit).group(0, {});
}

double bestOfAllPlans(const SliceProblem &problem) {
  double best = std::numeric_limits<double>::infinity();
  visitPlans(problem, [&](const SliceSums &sums) {
    if (sums.bytes <= problem.options.totalBytes)
      best = std::min(best, sums.objective(problem.options));
  });
  return best;
}

} // namespace dyna
