//===- PackForPipeline.cpp - Packs bins for the shortest step -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/PackForPipeline.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

namespace dyna {
namespace {

struct Bin {
  std::vector<int64_t> samples;
  Load load;
  double seconds = 0;
};

using Bins = std::vector<Bin>;

class Packer {
public:
  Packer(const std::vector<int64_t> &lengths, const RaggedCosts &costs,
         const PartitionOptions &options)
      : lengths_(lengths), costs_(costs), options_(options) {}

  Status prepare();
  /// Returns the best number of bins, and the number of tries.
  std::pair<Bins, int> search();
  /// Changes what adds to the first term.
  void level(Bins &bins) const;
  double objective(const Bins &bins) const;

private:
  const Load &loadOf(int64_t sample) const { return loads_[sample]; }
  /// Returns true if the bin has room. One sample always has room. If it is
  /// above the share, it stays alone.
  bool hasRoom(const Load &load) const {
    return load.segments < 2 || !costs_.bytes ||
           costs_.bytes(load) <=
               std::min(options_.shareBytes, options_.limitBytes);
  }
  void put(Bin &bin, int64_t sample, const Load &load) const {
    bin.samples.push_back(sample);
    bin.load = load;
    bin.seconds = costs_.seconds(load);
  }
  Bins firstFit() const;
  bool fill(size_t count, Bins &bins) const;
  bool relieve(Bins &bins, size_t from, size_t to) const;
  bool exchange(Bins &bins, size_t from, size_t to, size_t out,
                size_t in) const;
  double largest(const Bins &bins) const;

  const std::vector<int64_t> &lengths_;
  const RaggedCosts &costs_;
  const PartitionOptions &options_;
  std::vector<Load> loads_;    ///< of samples
  std::vector<int64_t> order_; ///< longest first
  double longest_ = 0;         ///< seconds of the longest sample
};

Status Packer::prepare() {
  for (size_t sample = 0; sample < lengths_.size(); ++sample) {
    int64_t length = lengths_[sample];
    if (length < 0)
      return Status::invalidArgument(
          formatText("sample %d has %d tokens", sample, length));
    const Load &load = loads_.emplace_back(loadOfSample(length));
    int64_t bytes = costs_.bytes ? costs_.bytes(load) : 0;
    if (bytes > options_.limitBytes)
      return Status::resourceExhausted(
          formatText("sample %d of %d tokens needs %s in a micro-batch of its "
                     "own, but there are %s",
                     sample, length, formatBytes(bytes),
                     formatBytes(options_.limitBytes)));
    double seconds = costs_.seconds(load);
    if (!(seconds >= 0) || !std::isfinite(seconds))
      return Status::invalidArgument(
          formatText("%d tokens cost %g seconds", length, seconds));
    longest_ = std::max(longest_, seconds);
    order_.push_back(static_cast<int64_t>(sample));
  }
  // The seconds of a sample rise with its length, so sort by length.
  std::sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
    return lengths_[a] != lengths_[b] ? lengths_[a] > lengths_[b] : a < b;
  });
  return Status::ok();
}

Bins Packer::firstFit() const {
  Bins bins;
  // Bins before this one are too full for the shortest sample.
  size_t open = 0;
  for (int64_t sample : order_) {
    while (open < bins.size() &&
           !hasRoom(bins[open].load + loadOf(order_.back())))
      ++open;
    size_t bin = open;
    while (bin < bins.size() && !hasRoom(bins[bin].load + loadOf(sample)))
      ++bin;
    if (bin == bins.size())
      bins.emplace_back();
    bins[bin].samples.push_back(sample);
    bins[bin].load += loadOf(sample);
  }
  for (Bin &bin : bins)
    bin.seconds = costs_.seconds(bin.load);
  return bins;
}

/// Puts each sample into the bin with the fewest seconds that has room.
bool Packer::fill(size_t count, Bins &bins) const {
  bins.assign(count, {});
  using Filled = std::pair<double, size_t>; // seconds, bin
  std::priority_queue<Filled, std::vector<Filled>, std::greater<>> least;
  for (size_t bin = 0; bin < count; ++bin)
    least.push({0, bin});
  std::vector<Filled> full;
  for (int64_t sample : order_) {
    const Load load = loadOf(sample);
    full.clear();
    while (!least.empty() && !hasRoom(bins[least.top().second].load + load)) {
      full.push_back(least.top());
      least.pop();
    }
    if (least.empty())
      return false;
    size_t bin = least.top().second;
    least.pop();
    put(bins[bin], sample, bins[bin].load + load);
    least.push({bins[bin].seconds, bin});
    for (const Filled &bin : full)
      least.push(bin);
  }
  return true;
}

double Packer::largest(const Bins &bins) const {
  double largest = 0;
  for (const Bin &bin : bins)
    largest = std::max(largest, bin.seconds);
  return largest;
}

double Packer::objective(const Bins &bins) const {
  double sum = 0;
  for (const Bin &bin : bins)
    sum += bin.seconds;
  return (options_.stages - 1) * largest(bins) + sum / options_.replicas;
}

std::pair<Bins, int> Packer::search() {
  Bins best = firstFit();
  const size_t most = order_.size();
  const size_t multiple = static_cast<size_t>(options_.multipleOf);
  auto multipleFrom = [&](size_t count) {
    return std::min((count + multiple - 1) / multiple * multiple, most);
  };
  const size_t fewest = multipleFrom(best.size());
  int tried = 1;
  bool isMultiple = best.size() == fewest;
  auto attempt = [&](size_t count) {
    Bins bins;
    ++tried;
    if (!fill(count, bins))
      return false;
    if (!isMultiple || objective(bins) < objective(best))
      best = std::move(bins);
    isMultiple = true;
    return largest(best) <= longest_;
  };
  // Once the largest bin is only the longest sample, more bins do not help.
  for (size_t count = fewest; count > 0;
       count = multipleFrom(count + 1 + count / 8))
    if (attempt(count) || count == most)
      break;
  for (size_t step = std::max<size_t>(best.size() / 8, multiple);
       step >= multiple; step /= 2)
    for (size_t count :
         {multipleFrom(best.size() - std::min(step, best.size())),
          multipleFrom(best.size() + step)})
      if (count >= fewest && count != best.size())
        attempt(count);
  level(best);
  return {std::move(best), tried};
}

/// Exchanges sample number `out` of one bin for number `in` of another, or
/// moves it there (`in` is behind the last). Does so only if both bins are then
/// below the first one before, and the objective does not rise.
bool Packer::exchange(Bins &bins, size_t from, size_t to, size_t out,
                      size_t in) const {
  const Bin &heavy = bins[from], &light = bins[to];
  int64_t gives = heavy.samples[out];
  Load left = heavy.load - loadOf(gives);
  Load right = light.load + loadOf(gives);
  bool returns = in < light.samples.size();
  if (returns) {
    const Load returned = loadOf(light.samples[in]);
    left += returned;
    right -= returned;
  }
  if (!hasRoom(left) || !hasRoom(right))
    return false;
  double seconds = costs_.seconds(right);
  if (!(seconds < heavy.seconds))
    return false;
  double before = objective(bins);
  Bin heavyBefore = heavy, lightBefore = light;
  Bin &one = bins[from], &two = bins[to];
  two.samples.push_back(gives);
  one.samples.erase(one.samples.begin() + static_cast<std::ptrdiff_t>(out));
  if (returns) {
    one.samples.push_back(two.samples[in]);
    two.samples.erase(two.samples.begin() + static_cast<std::ptrdiff_t>(in));
  }
  one.load = left;
  one.seconds = one.samples.empty() ? 0 : costs_.seconds(left);
  two.load = right;
  two.seconds = seconds;
  if (one.seconds < heavyBefore.seconds && objective(bins) <= before)
    return true;
  one = std::move(heavyBefore);
  two = std::move(lightBefore);
  return false;
}

bool Packer::relieve(Bins &bins, size_t from, size_t to) const {
  // With more pairs than this, exchanges would improve hardly anything.
  constexpr size_t mostPairs = 1024;
  size_t outs = bins[from].samples.size(), ins = bins[to].samples.size();
  if (outs * ins > mostPairs)
    return false;
  for (size_t out = 0; out < outs; ++out)
    for (size_t in = 0; in <= ins; ++in)
      if (exchange(bins, from, to, out, in))
        return true;
  return false;
}

/// Levels the bin with most seconds and one of those with the least, while that
/// helps. Both get less than the former had, so that the sorted list of bins
/// becomes smaller.
void Packer::level(Bins &bins) const {
  constexpr size_t others = 8;
  std::vector<size_t> order(bins.size());
  for (size_t rounds = 4 * bins.size(); rounds > 0; --rounds) {
    for (size_t bin = 0; bin < bins.size(); ++bin)
      order[bin] = bin;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return bins[a].seconds != bins[b].seconds
                 ? bins[a].seconds < bins[b].seconds
                 : a < b;
    });
    size_t from = order.back();
    if (bins[from].seconds <= longest_)
      return;
    bool changed = false;
    for (size_t i = 0; i < others && i + 1 < order.size() && !changed; ++i)
      changed = relieve(bins, from, order[i]);
    if (!changed)
      return;
  }
}

} // namespace

StatusOr<MicroBatchPartition>
packForPipeline(const std::vector<int64_t> &lengths, const RaggedCosts &costs,
                const PartitionOptions &options) {
  DYNA_RETURN_IF_ERROR(checkPipeline(options));
  Packer packer(lengths, costs, options);
  DYNA_RETURN_IF_ERROR(packer.prepare());
  MicroBatchPartition partition;
  auto [bins, tried] = packer.search();
  partition.tried = tried;
  bins.erase(
      std::remove_if(bins.begin(), bins.end(),
                     [](const auto &bin) { return bin.samples.empty(); }),
      bins.end());
  for (Bin &bin : bins)
    std::sort(bin.samples.begin(), bin.samples.end());
  std::sort(bins.begin(), bins.end(),
            [](const Bin &a, const Bin &b) { return a.samples < b.samples; });
  double sum = 0, largest = 0;
  for (Bin &bin : bins) {
    sum += bin.seconds;
    largest = std::max(largest, bin.seconds);
    partition.seconds.push_back(bin.seconds);
    partition.microBatches.push_back(std::move(bin.samples));
  }
  partition.objective = (options.stages - 1) * largest + sum / options.replicas;
  return partition;
}

} // namespace dyna
