//===- ProfileGrid.cpp - What is measured, and what it comes to -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/ProfileGrid.h"

#include "runtime/abi/Random.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dyna {
namespace {

constexpr int fewTargets = 25; ///< per cent

/// Samples of this length, and one of what is left.
std::vector<int64_t> fill(int64_t tokens, int64_t length) {
  std::vector<int64_t> lengths(tokens / length, length);
  if (tokens % length != 0)
    lengths.push_back(tokens % length);
  return lengths;
}

/// Between 0 and 1, the next of a sequence.
double nextPart(uint64_t &state) {
  constexpr double scale = 1.0 / (UINT64_C(1) << 53);
  return static_cast<double>(dyna_mix64(state++) >> 11) * scale;
}

/// Between the two, evenly in the logarithm.
int64_t between(int64_t low, int64_t high, double part) {
  double factor = static_cast<double>(high) / static_cast<double>(low);
  auto value =
      static_cast<int64_t>(static_cast<double>(low) * std::pow(factor, part));
  return std::clamp(value, low, high);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

} // namespace

int64_t ProfileShape::tokens() const {
  return std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
}

int64_t ProfileShape::targets() const {
  int64_t targets = 0;
  for (int64_t length : lengths)
    targets += targetsOf(length);
  return targets;
}

std::vector<ProfileShape> profileGrid(int64_t mostTokens, int64_t positions) {
  std::vector<int64_t> sizes;
  for (int64_t tokens = shortestProfiled; tokens < mostTokens; tokens *= 2)
    sizes.push_back(tokens);
  sizes.push_back(mostTokens);
  std::vector<ProfileShape> grid;
  for (int64_t tokens : sizes) {
    int64_t longest = positions > 0 ? std::min(tokens, positions) : tokens;
    grid.push_back({fill(tokens, longest), fewTargets});
    for (int64_t length = longest;
         length == longest || length >= shortestProfiled; length /= 4)
      grid.push_back({fill(tokens, length)});
  }
  return grid;
}

std::vector<ProfileShape> randomShapes(int count, int64_t mostTokens,
                                       int64_t positions, uint64_t seed) {
  uint64_t state = dyna_mix64(seed);
  const int64_t least = std::min(shortestProfiled, mostTokens);
  const int64_t longest =
      positions > 0 ? std::min(positions, mostTokens) : mostTokens;
  std::vector<ProfileShape> shapes(count);
  for (ProfileShape &shape : shapes) {
    int64_t tokens = between(least, mostTokens, nextPart(state));
    // One kind of sample in a micro-batch, or all kinds: real ones are both.
    int64_t limit = between(std::min(least, longest), longest, nextPart(state));
    while (tokens > 0) {
      int64_t length = std::min(
          tokens, between(std::min(least, limit), limit, nextPart(state)));
      shape.lengths.push_back(length);
      tokens -= length;
    }
  }
  return shapes;
}

void Measurements::add(const CostKey &function, const Work &work,
                       double seconds) {
  calls_[{function, {work.tokens, work.pairs, work.targets}}].push_back(
      seconds);
}

std::vector<Measurements::Median> Measurements::medians() const {
  std::vector<Median> result;
  for (const auto &[call, seconds] : calls_) {
    const auto &[tokens, pairs, targets] = call.second;
    result.push_back({call.first, {tokens, pairs, targets}, median(seconds)});
  }
  return result;
}

cost::Table Measurements::table() const {
  cost::Table table;
  const CostKey *last = nullptr;
  const std::vector<Median> all = medians();
  for (const Median &one : all) {
    const CostKey &key = one.function;
    if (!last || *last < key || key < *last) {
      cost::Entry &entry = *table.add_entries();
      entry.set_kind(key.kind);
      if (key.tp > 1 || key.sp)
        entry.set_tp(key.tp);
      entry.set_sp(key.sp);
      entry.set_direction(key.direction);
    }
    last = &key;
    cost::Point &point =
        *table.mutable_entries(table.entries_size() - 1)->add_points();
    point.set_tokens(one.work.tokens);
    point.set_pairs(one.work.pairs);
    point.set_targets(one.work.targets);
    point.set_seconds(one.seconds);
  }
  return table;
}

StatusOr<ProfilePasses>
runProfile(const std::vector<ProfileShape> &shapes, int passes,
           const std::function<StatusOr<bool>()> &isOver,
           const std::function<Status(const ProfileShape &, int pass)> &run) {
  ProfilePasses done;
  for (; done.passes < passes; ++done.passes, done.reached = 0)
    for (const ProfileShape &shape : shapes) {
      if (done.passes > 0 || done.reached > 0) {
        DYNA_ASSIGN_OR_RETURN(bool over, isOver());
        if (over)
          return done;
      }
      DYNA_RETURN_IF_ERROR(run(shape, done.passes));
      ++done.reached;
    }
  return done;
}

} // namespace dyna
