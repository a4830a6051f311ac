//===- SliceBaselines.cpp - Cuts of published systems ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/SliceBaselines.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace dyna {
namespace {

/// Largest number of slices of a sample.
constexpr int64_t mostSlices = 1 << 20;

/// Makes a plan whose cuts are those of `cut`, each of one sample, and whose
/// bundles are the problem's.
StatusOr<SlicePlan>
cutEach(const SliceProblem &problem,
        const std::function<std::vector<TokenSlice>(int64_t length)> &cut) {
  SlicePlan plan;
  std::vector<bool> isWhole(problem.lengths.size(), false);
  for (const std::vector<int64_t> &bundle : problem.bundles) {
    plan.bundles.push_back({bundle, 0});
    for (int64_t sample : bundle)
      isWhole[sample] = true;
  }
  for (size_t sample = 0; sample < problem.lengths.size(); ++sample)
    if (!isWhole[sample])
      plan.cuts.push_back(
          {{static_cast<int64_t>(sample)}, cut(problem.lengths[sample])});
  DYNA_RETURN_IF_ERROR(timeSlices(problem, plan));
  plan.estimate = plan.objective;
  return plan;
}

/// Slices that end after so many units each.
std::vector<TokenSlice> slicesUntil(const std::vector<int64_t> &ends,
                                    int64_t length, int64_t grain) {
  std::vector<TokenSlice> slices;
  int64_t begin = 0;
  for (int64_t end : ends) {
    const int64_t tokens =
        end > length / grain ? length : std::min(end * grain, length);
    slices.push_back({tokens - begin, 0});
    begin = tokens;
  }
  return slices;
}

int64_t unitsOf(int64_t length, int64_t grain) {
  return length / grain + (length % grain > 0);
}

Status checkNumber(int64_t slices) {
  if (slices >= 1 && slices <= mostSlices)
    return Status::ok();
  return Status::invalidArgument(
      formatText("samples in %d slices: expects 1 to %d", slices, mostSlices));
}

/// Returns work of the first tokens of a sample, each of which sees itself and
/// all before it.
double workOf(const SliceWork &work, int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  return work.perToken * count + work.perPair * count * (count + 1) / 2;
}

/// Returns ends, in units, of slices with equal work.
std::vector<int64_t> equalWork(int64_t length, int64_t grain, int64_t slices,
                               const SliceWork &work) {
  const int64_t units = unitsOf(length, grain);
  slices = std::min(slices, units);
  auto until = [&](int64_t end) {
    return workOf(work, end > length / grain ? length : end * grain);
  };
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (int64_t slice = 1; slice <= slices; ++slice) {
    const double aim =
        until(units) * static_cast<double>(slice) / static_cast<double>(slices);
    const int64_t last = units - (slices - slice);
    ++end;
    while (end < last &&
           std::abs(until(end + 1) - aim) < std::abs(until(end) - aim))
      ++end;
    if (slice == slices)
      end = units;
    ends.push_back(end);
  }
  return ends;
}

std::vector<TokenSlice> chunksOf(int64_t length, int64_t count,
                                 const ChunkOptions &chunks) {
  std::vector<TokenSlice> slices;
  for (int64_t chunk = 0; chunk < count; ++chunk)
    slices.push_back({std::min(chunks.tokens, length - chunk * chunks.tokens),
                      chunk < count - chunks.kept ? chunks.droppedMode : 0});
  return slices;
}

} // namespace

StatusOr<SlicePlan> sliceUniformly(const SliceProblem &problem,
                                   int64_t slices) {
  DYNA_RETURN_IF_ERROR(checkSlices(problem));
  DYNA_RETURN_IF_ERROR(checkNumber(slices));
  const int64_t grain = problem.options.grain;
  return cutEach(problem, [&](int64_t length) {
    const int64_t units = unitsOf(length, grain),
                  count = std::min(slices, units);
    std::vector<int64_t> ends;
    for (int64_t slice = 1; slice <= count; ++slice)
      ends.push_back(units / count * slice +
                     (units % count * slice + count - 1) / count);
    return slicesUntil(ends, length, grain);
  });
}

StatusOr<SlicePlan> sliceByWork(const SliceProblem &problem, int64_t slices,
                                const SliceWork &work) {
  DYNA_RETURN_IF_ERROR(checkSlices(problem));
  DYNA_RETURN_IF_ERROR(checkNumber(slices));
  const double both = work.perToken + work.perPair;
  if (!(work.perToken >= 0 && work.perPair >= 0 && both > 0) ||
      std::isinf(both))
    return Status::invalidArgument(
        formatText("work of %g for a token and %g for a pair: expects numbers "
                   "from 0 on, and not both 0",
                   work.perToken, work.perPair));
  const int64_t grain = problem.options.grain;
  return cutEach(problem, [&](int64_t length) {
    return slicesUntil(equalWork(length, grain, slices, work), length, grain);
  });
}

std::vector<std::vector<int64_t>>
packBundles(const std::vector<int64_t> &lengths, int64_t tokens) {
  std::vector<int64_t> order;
  for (size_t sample = 0; sample < lengths.size(); ++sample)
    if (lengths[sample] <= tokens)
      order.push_back(static_cast<int64_t>(sample));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return lengths[a] > lengths[b];
  });
  std::vector<std::vector<int64_t>> bundles;
  std::vector<int64_t> rooms;
  for (int64_t sample : order) {
    const int64_t length = lengths[sample];
    size_t bundle = 0;
    while (bundle < rooms.size() && rooms[bundle] < length)
      ++bundle;
    if (bundle == rooms.size()) {
      rooms.push_back(tokens);
      bundles.emplace_back();
    }
    rooms[bundle] -= length;
    bundles[bundle].push_back(sample);
  }
  return bundles;
}

StatusOr<SlicePlan> sliceInChunks(const SliceProblem &problem,
                                  const ChunkOptions &chunks) {
  DYNA_RETURN_IF_ERROR(checkSlices(problem));
  if (chunks.tokens < 1 || chunks.tokens % problem.options.grain != 0 ||
      chunks.kept < 0)
    return Status::invalidArgument(
        formatText("chunks of %d tokens, %d kept: expects a multiple of the "
                   "grain %d, and no negative number",
                   chunks.tokens, chunks.kept, problem.options.grain));
  // Order long samples by their lengths, as the bundles are.
  std::vector<int64_t> order(problem.lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return problem.lengths[a] > problem.lengths[b];
  });
  SlicePlan plan;
  for (int64_t sample : order) {
    const int64_t length = problem.lengths[sample];
    if (length <= chunks.tokens)
      break;
    const int64_t count = unitsOf(length, chunks.tokens);
    DYNA_RETURN_IF_ERROR(checkNumber(count));
    plan.cuts.push_back({{sample}, chunksOf(length, count, chunks)});
  }
  for (std::vector<int64_t> &samples :
       packBundles(problem.lengths, chunks.tokens))
    plan.bundles.emplace_back().samples = std::move(samples);
  DYNA_RETURN_IF_ERROR(timeSlices(problem, plan));
  plan.estimate = plan.objective;
  return plan;
}

} // namespace dyna
