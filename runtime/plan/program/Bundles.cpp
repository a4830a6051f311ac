//===- Bundles.cpp - Finds samples whose slices share a key store ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/Bundles.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace dyna {

namespace {

/// Slices of one sample, in order of micro-batches.
struct SlicedSample {
  struct Slice {
    int index; ///< in the list of micro-batches
    int segment;
  };
  std::vector<Slice> slices;
  int64_t tokens = 0;
};

/// Sets of micro-batches, by index in the list; the smallest index names a set.
class Sets {
public:
  explicit Sets(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }
  int find(int index) {
    while (parents_[index] != index)
      index = parents_[index] = parents_[parents_[index]];
    return index;
  }
  void join(int a, int b) {
    a = find(a), b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

private:
  std::vector<int> parents_;
};

/// Returns the samples with more than one segment, in order of their first slices.
std::vector<SlicedSample> slicedSamples(const plan::Plan &plan,
                                        const std::vector<int> &microBatches) {
  std::unordered_map<int64_t, SlicedSample> samples;
  for (int index = 0; index < static_cast<int>(microBatches.size()); ++index) {
    const auto &segments = plan.microBatches[microBatches[index]].segments;
    for (int s = 0; s < static_cast<int>(segments.size()); ++s) {
      SlicedSample &sample = samples[segments[s].sample];
      sample.slices.push_back({index, s});
      sample.tokens = std::max(sample.tokens, segments[s].queries().end());
    }
  }
  std::vector<SlicedSample> sliced;
  for (auto &[number, sample] : samples)
    if (sample.slices.size() > 1)
      sliced.push_back(std::move(sample));
  std::sort(sliced.begin(), sliced.end(),
            [](const SlicedSample &a, const SlicedSample &b) {
              const auto &x = a.slices.front(), &y = b.slices.front();
              return x.index != y.index ? x.index < y.index
                                        : x.segment < y.segment;
            });
  return sliced;
}

void addOnce(std::vector<int> &list, int value) {
  if (std::find(list.begin(), list.end(), value) == list.end())
    list.push_back(value);
}

} // namespace

bool continuesSample(const plan::MicroBatch &microBatch) {
  for (const plan::Segment &segment : microBatch.segments)
    if (segment.begin > 0)
      return true;
  return false;
}

SliceCount countSlices(const plan::Plan &plan) {
  SliceCount count;
  if (std::none_of(plan.microBatches.begin(), plan.microBatches.end(),
                   continuesSample))
    return count;
  std::unordered_set<int64_t> sliced;
  for (const plan::MicroBatch &microBatch : plan.microBatches)
    for (const plan::Segment &segment : microBatch.segments)
      if (segment.begin > 0)
        sliced.insert(segment.sample);
  for (const plan::MicroBatch &microBatch : plan.microBatches)
    for (const plan::Segment &segment : microBatch.segments)
      count.slices += static_cast<int64_t>(sliced.count(segment.sample));
  count.samples = static_cast<int64_t>(sliced.size());
  return count;
}

TraceTokens tokensOf(const plan::MicroBatch &microBatch) {
  TraceTokens tokens;
  for (const plan::Segment &segment : microBatch.segments) {
    ++tokens.samples;
    tokens.sample = tokens.samples == 1 ? segment.sample : -1;
    tokens.tokens += segment.length;
    tokens.context += segment.begin;
  }
  return tokens;
}

Bundles findBundles(const plan::Plan &plan,
                    const std::vector<int> &microBatches) {
  for (int m : microBatches)
    if (continuesSample(plan.microBatches[m]))
      return Bundles(plan, microBatches);
  return Bundles();
}

std::vector<int> Bundles::previous(const std::vector<int> &microBatches) const {
  if (empty())
    return {};
  std::vector<int> previous(microBatches.size(), -1);
  std::unordered_map<int, int> last; // index of the last slice, by bundle
  for (int index = 0; index < static_cast<int>(microBatches.size()); ++index) {
    const int bundle = of(microBatches[index]).bundle;
    if (bundle < 0)
      continue;
    auto [found, isFirst] = last.try_emplace(bundle, -1);
    previous[index] = found->second;
    found->second = index;
  }
  return previous;
}

Bundles::Bundles(const plan::Plan &plan, const std::vector<int> &microBatches) {
  const std::vector<SlicedSample> sliced = slicedSamples(plan, microBatches);
  Sets sets(microBatches.size());
  for (const SlicedSample &sample : sliced)
    for (const auto &slice : sample.slices)
      sets.join(sample.slices.front().index, slice.index);
  std::vector<int64_t> rows(microBatches.size(), 0); // by set
  for (const SlicedSample &sample : sliced) {
    const int set = sets.find(sample.slices.front().index);
    for (size_t number = 0; number < sample.slices.size(); ++number) {
      const auto &slice = sample.slices[number];
      const int m = microBatches[slice.index];
      BundlePart &part = parts_[m];
      part.bundle = microBatches[set];
      part.storeRows.resize(plan.microBatches[m].segments.size(), -1);
      part.storeRows[slice.segment] = rows[set];
      if (number > 0)
        addOnce(part.before, microBatches[sample.slices[number - 1].index]);
      if (number + 1 < sample.slices.size())
        addOnce(part.behind, microBatches[sample.slices[number + 1].index]);
    }
    rows[set] += sample.tokens;
  }
  for (int index = 0; index < static_cast<int>(microBatches.size()); ++index) {
    auto found = parts_.find(microBatches[index]);
    if (found == parts_.end())
      continue;
    found->second.rows = rows[sets.find(index)];
    parts_[found->second.bundle].last = microBatches[index];
  }
  for (auto &[m, part] : parts_)
    part.last = parts_[part.bundle].last;
}

} // namespace dyna
