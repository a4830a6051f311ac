//===- PartitionMicroBatches.cpp - The best cut into padded micro-batches -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/PartitionMicroBatches.h"

#include "runtime/base/Text.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <queue>

namespace dyna {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::string describe(const SampleLength &length) {
  return length.decoderTokens > 0
             ? formatText("%d + %d tokens", length.tokens, length.decoderTokens)
             : formatText("%d tokens", length.tokens);
}

std::string describe(const PaddedShape &shape) {
  return formatText(shape.samples == 1 ? "%d sample of %s" : "%d samples of %s",
                    shape.samples, describe(shape.longest));
}

void widen(PaddedShape &shape, const SampleLength &length) {
  ++shape.samples;
  shape.longest.tokens = std::max(shape.longest.tokens, length.tokens);
  shape.longest.decoderTokens =
      std::max(shape.longest.decoderTokens, length.decoderTokens);
}

/// The runs that end with one sample: `seconds[k]` of its last k + 1 samples,
/// known up to the first that is above all bounds tried so far. Samples that
/// are alike and as long as all before them share a row.
struct Row {
  int64_t last = 0; ///< the last position that it stands for
  PaddedShape shape;
  std::vector<double> seconds;
};

/// The cut with the smallest sum under a bound.
struct BoundedCut {
  double sum = 0;
  double largest = 0;        ///< of its micro-batches
  double next = infinity;    ///< the smallest t of any run above the bound
  std::vector<int64_t> ends; ///< of the runs, descending
};

class Partitioner {
public:
  Partitioner(std::vector<SampleLength> ordered, const PaddedCosts &costs)
      : ordered_(std::move(ordered)), costs_(costs) {}

  /// The runs that memory has room for.
  Status limit(const std::vector<int64_t> &order,
               const PartitionOptions &options);
  void makeRows();
  /// All t <= bound.
  StatusOr<BoundedCut> solve(double bound);
  /// Largest t of samples alone: no bound below has a cut.
  StatusOr<double> smallestBound();
  /// No cut has a smaller sum, whatever its bound.
  StatusOr<double> smallestSum();
  double secondsOf(int64_t end, int64_t samples) const {
    return rows_[rowOf_[end]].seconds[samples - 1];
  }

private:
  int64_t count() const { return static_cast<int64_t>(ordered_.size()); }
  Status extend(size_t row, double bound);
  StatusOr<double> ask(const PaddedShape &shape) const;

  std::vector<SampleLength> ordered_;
  const PaddedCosts &costs_;
  /// Samples of the longest run that ends at each position and has room.
  std::vector<int64_t> room_;
  std::vector<size_t> rowOf_; ///< of each position
  std::vector<Row> rows_;
};

/// Both ends of the longest runs with room move forward only, as bytes are
/// monotone. The longest sample of a run is the front of a queue of those that
/// no later one outlasts.
Status Partitioner::limit(const std::vector<int64_t> &order,
                          const PartitionOptions &options) {
  room_.resize(ordered_.size());
  std::vector<int64_t> tokens, decoderTokens;
  size_t tokensFront = 0, decoderFront = 0;
  int64_t begin = 0;
  for (int64_t end = 0; end < count(); ++end) {
    const SampleLength &own = ordered_[end];
    int64_t alone = costs_.bytes ? costs_.bytes({1, own}) : 0;
    if (alone < 0)
      return Status::invalidArgument(
          formatText("1 sample of %s keeps %d bytes", describe(own), alone));
    if (alone > options.limitBytes)
      return Status::resourceExhausted(formatText(
          "sample %d of %s needs %s in a micro-batch of its own, but there are "
          "%s",
          order[end], describe(own), formatBytes(alone),
          formatBytes(options.limitBytes)));
    auto push = [&](std::vector<int64_t> &queue, size_t front,
                    int64_t SampleLength::*key) {
      while (queue.size() > front && ordered_[queue.back()].*key <= own.*key)
        queue.pop_back();
      queue.push_back(end);
    };
    push(tokens, tokensFront, &SampleLength::tokens);
    push(decoderTokens, decoderFront, &SampleLength::decoderTokens);
    for (; begin < end && costs_.bytes; ++begin) {
      tokensFront += tokens[tokensFront] < begin;
      decoderFront += decoderTokens[decoderFront] < begin;
      PaddedShape shape = {
          end + 1 - begin,
          {ordered_[tokens[tokensFront]].tokens,
           ordered_[decoderTokens[decoderFront]].decoderTokens}};
      int64_t bytes = costs_.bytes(shape);
      if (bytes < alone)
        return Status::invalidArgument(formatText(
            "costs must not fall, but %s keep %d bytes, and one of %s %d",
            describe(shape), bytes, describe(own), alone));
      if (bytes <= std::min(options.shareBytes, options.limitBytes))
        break;
    }
    room_[end] = end + 1 - begin;
  }
  return Status::ok();
}

void Partitioner::makeRows() {
  SampleLength before;
  for (int64_t end = 0; end < count(); ++end) {
    const SampleLength &own = ordered_[end];
    bool longest = own.tokens >= before.tokens &&
                   own.decoderTokens >= before.decoderTokens;
    if (end == 0 || !longest || !(own == ordered_[end - 1]))
      rows_.emplace_back();
    rows_.back().last = end;
    rowOf_.push_back(rows_.size() - 1);
    before.tokens = std::max(before.tokens, own.tokens);
    before.decoderTokens = std::max(before.decoderTokens, own.decoderTokens);
  }
}

StatusOr<double> Partitioner::ask(const PaddedShape &shape) const {
  double seconds = costs_.seconds(shape);
  if (!(seconds >= 0) || seconds == infinity)
    return Status::invalidArgument(
        formatText("%s cost %g seconds", describe(shape), seconds));
  return seconds;
}

Status Partitioner::extend(size_t index, double bound) {
  Row &row = rows_[index];
  while (row.shape.samples < room_[row.last] &&
         (row.seconds.empty() || row.seconds.back() <= bound)) {
    widen(row.shape, ordered_[row.last - row.shape.samples]);
    DYNA_ASSIGN_OR_RETURN(double seconds, ask(row.shape));
    // The run without its first sample, and the one without its last.
    double least = row.seconds.empty() ? 0 : row.seconds.back();
    if (index > 0 && row.shape.samples > 1) {
      const Row &before = rows_[index - 1];
      // Both rows reach back to the same first sample.
      int64_t same = row.shape.samples - 1 - (row.last - before.last - 1);
      if (same > 0 && static_cast<size_t>(same) <= before.seconds.size())
        least = std::max(least, before.seconds[same - 1]);
    }
    if (seconds < least)
      return Status::invalidArgument(
          formatText("costs must not fall, but %s cost %g seconds, and a part "
                     "of them %g",
                     describe(row.shape), seconds, least));
    row.seconds.push_back(seconds);
  }
  return Status::ok();
}

/// The smallest of `sums[k] + seconds[k]`, k < count, if below `best`. Both are
/// monotone, `sums` falls and `seconds` rises, so that the last of the one and
/// the first of the other bound a block from below; `hint` is where to look
/// first, and then where the smallest was found.
double smallestRun(const double *sums, const double *seconds, int64_t count,
                   int64_t &hint) {
  constexpr int64_t block = 16, lanes = 4;
  double best = infinity;
  auto scan = [&](int64_t begin) {
    int64_t end = std::min(begin + block, count);
    if (!(sums[end - 1] + seconds[begin] < best))
      return;
    double smallest[lanes] = {best, best, best, best};
    int64_t k = begin;
    // Lanes of their own, so that the compiler makes vectors of them.
    for (; k + lanes <= end; k += lanes)
      for (int64_t lane = 0; lane < lanes; ++lane) {
        double sum = sums[k + lane] + seconds[k + lane];
        smallest[lane] = sum < smallest[lane] ? sum : smallest[lane];
      }
    for (; k < end; ++k)
      smallest[0] = std::min(smallest[0], sums[k] + seconds[k]);
    double found = *std::min_element(smallest, smallest + lanes);
    if (found < best)
      best = found, hint = begin;
  };
  hint = std::min(hint, (count - 1) / block * block);
  scan(hint);
  for (int64_t begin = 0; begin < count; begin += block)
    scan(begin);
  return best;
}

StatusOr<BoundedCut> Partitioner::solve(double bound) {
  BoundedCut cut;
  // sums[n - i]: the smallest sum of the first i samples, so that the runs that
  // end at one position meet them in rising order of both.
  std::vector<double> sums(count() + 1, infinity);
  sums[count()] = 0;
  std::vector<int64_t> within(rows_.size(), -1);
  int64_t hint = 0;
  auto runsAt = [&](int64_t end) {
    return std::min(within[rowOf_[end]], room_[end]);
  };
  for (int64_t end = 0; end < count(); ++end) {
    Row &row = rows_[rowOf_[end]];
    int64_t &runs = within[rowOf_[end]];
    if (runs < 0) {
      DYNA_RETURN_IF_ERROR(extend(rowOf_[end], bound));
      runs = std::upper_bound(row.seconds.begin(), row.seconds.end(), bound) -
             row.seconds.begin();
      if (static_cast<size_t>(runs) < row.seconds.size())
        cut.next = std::min(cut.next, row.seconds[runs]);
    }
    assert(runs > 0 && "the bound is above every sample alone");
    sums[count() - end - 1] = smallestRun(
        sums.data() + count() - end, row.seconds.data(), runsAt(end), hint);
  }
  cut.sum = sums[0];
  for (int64_t end = count() - 1; end >= 0;) {
    const double *before = sums.data() + count() - end;
    const std::vector<double> &seconds = rows_[rowOf_[end]].seconds;
    int64_t run = runsAt(end) - 1;
    while (before[run] + seconds[run] != before[-1])
      --run;
    cut.largest = std::max(cut.largest, seconds[run]);
    cut.ends.push_back(end);
    end -= run + 1;
  }
  return cut;
}

StatusOr<double> Partitioner::smallestBound() {
  double bound = 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    DYNA_ASSIGN_OR_RETURN(double alone, ask({1, ordered_[rows_[row].last]}));
    bound = std::max(bound, alone);
  }
  return bound;
}

/// Every sample has at least its part, at least its own length times, of some
/// micro-batch: t(b, length) / b for the best b. Between the b that are asked
/// for, t is at least what it is at the lower one.
StatusOr<double> Partitioner::smallestSum() {
  int64_t most = *std::max_element(room_.begin(), room_.end());
  double sum = 0;
  for (size_t row = 0; row < rows_.size(); ++row) {
    double part = infinity;
    for (int64_t b = 1, next; b <= most; b = next) {
      next = std::min(b + 1 + b / 64, most + 1);
      DYNA_ASSIGN_OR_RETURN(double seconds,
                            ask({b, ordered_[rows_[row].last]}));
      part = std::min(part, seconds / static_cast<double>(next - 1));
    }
    int64_t first = row == 0 ? 0 : rows_[row - 1].last + 1;
    sum += part * static_cast<double>(rows_[row].last + 1 - first);
  }
  // More than rounding can add up to.
  return sum * (1 - 1e-9);
}

/// Bounds from `low` on, below `high`, that have not been tried, and at most
/// this much better than the best.
struct Gap {
  double low = 0, high = infinity;
  double sum = 0;   ///< no cut below `high` has a smaller one
  double least = 0; ///< nor a smaller objective

  bool operator<(const Gap &other) const {
    // The most promising one first.
    return least != other.least ? least > other.least : low > other.low;
  }
};

Status checkArguments(const std::vector<SampleLength> &lengths,
                      const std::vector<int64_t> &order,
                      const PartitionOptions &options) {
  DYNA_RETURN_IF_ERROR(checkPipeline(options));
  if (order.size() != lengths.size())
    return Status::invalidArgument(formatText("an order of %d samples, but "
                                              "there are %d",
                                              order.size(), lengths.size()));
  std::vector<bool> seen(lengths.size(), false);
  for (int64_t sample : order) {
    if (sample < 0 || static_cast<size_t>(sample) >= lengths.size() ||
        seen[sample])
      return Status::invalidArgument(
          formatText("the order has sample %d of %d, or has it twice", sample,
                     lengths.size()));
    seen[sample] = true;
    if (lengths[sample].tokens < 0 || lengths[sample].decoderTokens < 0)
      return Status::invalidArgument(formatText("sample %d has %d + %d tokens",
                                                sample, lengths[sample].tokens,
                                                lengths[sample].decoderTokens));
  }
  return Status::ok();
}

/// The best of all bounds.
StatusOr<BoundedCut> search(Partitioner &partitioner,
                            const PartitionOptions &options, int &tried) {
  const double behind = options.stages - 1, replicas = options.replicas;
  // Monotone in both, rounded too: what bounds rest on.
  auto objective = [&](double largest, double sum) {
    return behind * largest + sum / replicas;
  };
  tried = 1;
  if (options.stages == 1)
    return partitioner.solve(infinity);
  DYNA_ASSIGN_OR_RETURN(double low, partitioner.smallestBound());
  DYNA_ASSIGN_OR_RETURN(BoundedCut best, partitioner.solve(low));
  DYNA_ASSIGN_OR_RETURN(double least, partitioner.smallestSum());
  double bestObjective = objective(best.largest, best.sum);
  std::priority_queue<Gap> gaps;
  auto add = [&](double low, double high, double sum) {
    double least = objective(low, sum);
    if (low < high && least < bestObjective)
      gaps.push({low, high, sum, least});
  };
  add(best.next, infinity, least);
  while (!gaps.empty()) {
    Gap gap = gaps.top();
    gaps.pop();
    if (gap.least >= bestObjective)
      break;
    // No bound above this one is better. Rounding does no harm: what is left
    // above it goes through `add`.
    double high = (bestObjective - gap.sum / replicas) / behind;
    high = std::max(std::min(gap.high, high), gap.low);
    double bound = gap.low + (high - gap.low) / 2;
    if (gap.high == infinity)
      bound = std::min(bound, 2 * gap.low);
    if (!(bound >= gap.low && bound < gap.high))
      bound = gap.low;
    DYNA_ASSIGN_OR_RETURN(BoundedCut cut, partitioner.solve(bound));
    ++tried;
    if (objective(cut.largest, cut.sum) < bestObjective) {
      bestObjective = objective(cut.largest, cut.sum);
      best = cut;
    }
    add(std::max(cut.next, gap.low), gap.high, gap.sum);
    add(gap.low, cut.largest, cut.sum);
  }
  return best;
}

} // namespace

Status checkPipeline(const PartitionOptions &options) {
  if (options.stages >= 1 && options.replicas >= 1 && options.multipleOf >= 1)
    return Status::ok();
  return Status::invalidArgument(
      formatText("micro-batches for %d replicas of %d stages, in multiples of "
                 "%d: expects at least 1 of each",
                 options.replicas, options.stages, options.multipleOf));
}

StatusOr<MicroBatchPartition> partitionMicroBatches(
    const std::vector<SampleLength> &lengths, const std::vector<int64_t> &order,
    const PaddedCosts &costs, const PartitionOptions &options) {
  DYNA_RETURN_IF_ERROR(checkArguments(lengths, order, options));
  MicroBatchPartition partition;
  if (order.empty())
    return partition;
  std::vector<SampleLength> ordered;
  for (int64_t sample : order)
    ordered.push_back(lengths[sample]);
  Partitioner partitioner(std::move(ordered), costs);
  DYNA_RETURN_IF_ERROR(partitioner.limit(order, options));
  partitioner.makeRows();
  DYNA_ASSIGN_OR_RETURN(BoundedCut cut,
                        search(partitioner, options, partition.tried));
  auto begin = order.begin();
  for (auto end = cut.ends.rbegin(); end != cut.ends.rend(); ++end) {
    auto stop = order.begin() + *end + 1;
    partition.seconds.push_back(partitioner.secondsOf(*end, stop - begin));
    partition.microBatches.emplace_back(begin, stop);
    begin = stop;
  }
  partition.objective =
      (options.stages - 1) * cut.largest + cut.sum / options.replicas;
  return partition;
}

} // namespace dyna
