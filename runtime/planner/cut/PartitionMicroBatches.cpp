//===- PartitionMicroBatches.cpp - Cuts padded micro-batches --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/PartitionMicroBatches.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/cut/PaddedRuns.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <queue>

namespace dyna {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The cut with the smallest sum under a bound.
struct BoundedCut {
  double sum = 0;
  double largest = 0;        ///< of its micro-batches
  std::vector<int64_t> ends; ///< of the runs, descending
};

/// The program of one bound.
class Partitioner {
public:
  explicit Partitioner(PaddedRuns &runs)
      : runs_(runs), sums_(runs.count() + 1 + PaddedRuns::blockRuns, infinity),
        best_(runs.count(), 0) {}

  /// Solves with all t <= bound.
  StatusOr<BoundedCut> solve(double bound);
  /// Returns the largest t of samples alone: no bound below has a cut.
  StatusOr<double> smallestBound();

private:
  /// The runs that end at one position and are within the bound.
  struct Ending {
    PaddedRuns::Row &row;
    int64_t room; ///< samples of the longest
    double bound;
    const double *sums; ///< [k]: of the samples before a run of k
    double smallest;    ///< of all sums found so far
    int64_t block;      ///< and the block that its last run is in

    /// Returns the longest run: no run of blocks up to `last` has more samples.
    int64_t longest(int64_t last) const {
      return std::min((last + 1) * PaddedRuns::blockRuns - 1, room);
    }
  };
  Ending endingAt(int64_t end, double bound);
  void look(Ending &ending, int64_t guess);
  void look(Ending &ending, int64_t guess, int64_t first, double seconds,
            int64_t last);
  void scan(Ending &ending, int64_t block);
  int64_t longestRun(const Ending &ending);
  int64_t longestRun(const Ending &ending, int64_t first, double seconds,
                     int64_t last);

  PaddedRuns &runs_;
  /// [n - i]: smallest sum of the first i samples; infinite behind the last. In
  /// this order, the runs that end at one position meet blocks and sums in
  /// ascending order.
  std::vector<double> sums_;
  std::vector<int64_t> best_; ///< Block of each end, in the program before.
};

Partitioner::Ending Partitioner::endingAt(int64_t end, double bound) {
  return {runs_.rowAt(end),
          runs_.room(end),
          bound,
          sums_.data() + runs_.count() - end - 1,
          infinity,
          0};
}

void Partitioner::scan(Ending &ending, int64_t block) {
  constexpr int64_t lanes = 4;
  const double *seconds = runs_.block(ending.row, block);
  const double *sums = ending.sums + block * PaddedRuns::blockRuns;
  const double bound = ending.bound;
  double smallest[lanes] = {infinity, infinity, infinity, infinity};
  // Lanes of their own, so that the compiler makes vectors of them. Seconds do not fall
  // within a block.
  const bool isWithin = seconds[PaddedRuns::blockRuns - 1] <= bound;
  for (int64_t k = 0; isWithin && k < PaddedRuns::blockRuns; k += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const double sum = sums[k + lane] + seconds[k + lane];
      smallest[lane] = sum < smallest[lane] ? sum : smallest[lane];
    }
  for (int64_t k = 0; !isWithin && k < PaddedRuns::blockRuns; k += lanes)
    for (int64_t lane = 0; lane < lanes; ++lane) {
      double sum = sums[k + lane] + seconds[k + lane];
      sum = seconds[k + lane] <= bound ? sum : infinity;
      smallest[lane] = sum < smallest[lane] ? sum : smallest[lane];
    }
  double found = std::min(std::min(smallest[0], smallest[1]),
                          std::min(smallest[2], smallest[3]));
  if (found < ending.smallest)
    ending.smallest = found, ending.block = block;
}

/// A run has at least the seconds of the first run of its block. The samples
/// before it have at least the sum of those before the last run of the block.
/// Both are monotone, also after rounding. `guess` is the block to look at
/// first.
void Partitioner::look(Ending &ending, int64_t guess) {
  scan(ending, guess);
  if (guess > 0)
    look(ending, guess, 0, runs_.first(ending.row, 0), 0);
  const int64_t blocks = ending.room / PaddedRuns::blockRuns;
  for (int64_t first = 1; first <= blocks; first *= 2) {
    double seconds = runs_.first(ending.row, first);
    if (seconds > ending.bound || seconds >= ending.smallest)
      return;
    look(ending, guess, first, seconds, std::min(2 * first - 1, blocks));
  }
}

void Partitioner::look(Ending &ending, int64_t guess, int64_t first,
                       double seconds, int64_t last) {
  while (ending.sums[ending.longest(last)] + seconds < ending.smallest) {
    if (first == last) {
      if (first != guess)
        scan(ending, first);
      return;
    }
    int64_t middle = first + (last - first + 1) / 2;
    double its = runs_.first(ending.row, middle);
    if (its <= ending.bound)
      look(ending, guess, middle, its, last);
    last = middle - 1;
  }
}

/// Returns the samples of the longest run within the bound that reaches the sum
/// at its end. Looks at the blocks from `first` to `last`; 0 if none of them
/// has such a run.
int64_t Partitioner::longestRun(const Ending &ending, int64_t first,
                                double seconds, int64_t last) {
  if (seconds > ending.bound ||
      ending.sums[ending.longest(last)] + seconds > ending.smallest)
    return 0;
  if (first == last) {
    const double *block = runs_.block(ending.row, first);
    for (int64_t k = PaddedRuns::blockRuns - 1; k >= 0; --k) {
      int64_t samples = first * PaddedRuns::blockRuns + k;
      if (block[k] <= ending.bound &&
          ending.sums[samples] + block[k] == ending.smallest)
        return samples;
    }
    return 0;
  }
  int64_t middle = first + (last - first + 1) / 2;
  int64_t found =
      longestRun(ending, middle, runs_.first(ending.row, middle), last);
  return found > 0 ? found : longestRun(ending, first, seconds, middle - 1);
}

int64_t Partitioner::longestRun(const Ending &ending) {
  const int64_t blocks = ending.room / PaddedRuns::blockRuns;
  int64_t first = 1;
  while (first <= blocks && runs_.first(ending.row, first) <=
                                std::min(ending.bound, ending.smallest))
    first *= 2;
  for (first /= 2; first > 0; first /= 2)
    if (int64_t found =
            longestRun(ending, first, runs_.first(ending.row, first),
                       std::min(2 * first - 1, blocks)))
      return found;
  return longestRun(ending, 0, runs_.first(ending.row, 0), 0);
}

StatusOr<BoundedCut> Partitioner::solve(double bound) {
  sums_[runs_.count()] = 0;
  for (int64_t end = 0; end < runs_.count(); ++end) {
    Ending ending = endingAt(end, bound);
    look(ending, best_[end]);
    // Stop here, because later steps cannot use the number of a refused cost.
    if (!runs_.status().isOk())
      return runs_.status();
    assert(ending.smallest < infinity && "the bound is above every sample");
    sums_[runs_.count() - end - 1] = ending.smallest;
    best_[end] = ending.block;
  }
  BoundedCut cut;
  cut.sum = sums_[0];
  for (int64_t end = runs_.count() - 1; end >= 0;) {
    Ending ending = endingAt(end, bound);
    ending.smallest = ending.sums[0];
    int64_t run = longestRun(ending);
    if (!runs_.status().isOk())
      return runs_.status();
    assert(run > 0 && "some run reaches the sum");
    cut.largest = std::max(cut.largest, runs_.seconds(end, run));
    cut.ends.push_back(end);
    end -= run;
  }
  return cut;
}

StatusOr<double> Partitioner::smallestBound() {
  double bound = 0;
  for (int64_t end = 0; end < runs_.count(); ++end)
    bound = std::max(bound, runs_.first(runs_.rowAt(end), 0));
  DYNA_RETURN_IF_ERROR(runs_.status());
  return bound;
}

/// Bounds from `low` on and below `high` that may have a better cut than the best
/// that is known.
struct Gap {
  double low = 0, high = 0;
  double sum = 0;   ///< No cut below `high` has a smaller one ...
  double least = 0; ///< ... nor a smaller objective.

  bool operator<(const Gap &other) const {
    // The queue pops the most promising gap first.
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

/// Searches the bounds of one order for the best cut.
class BoundSearch {
public:
  BoundSearch(Partitioner &partitioner, const PartitionOptions &options)
      : partitioner_(partitioner), behind_(options.stages - 1),
        replicas_(options.replicas) {}

  StatusOr<BoundedCut> run();
  /// Programs that were solved.
  int tried() const { return tried_; }

private:
  /// Returns the objective. It is monotone in both arguments, also after
  /// rounding; the bounds rely on it.
  double objective(double largest, double sum) const {
    return behind_ * largest + sum / replicas_;
  }
  StatusOr<BoundedCut> solve(double bound);
  void add(double low, double high, double sum);
  double boundOf(Gap &gap) const;

  Partitioner &partitioner_;
  const double behind_, replicas_;
  int tried_ = 0;
  BoundedCut best_;
  double bestObjective_ = infinity;
  std::priority_queue<Gap> gaps_;
};

StatusOr<BoundedCut> BoundSearch::solve(double bound) {
  DYNA_ASSIGN_OR_RETURN(BoundedCut cut, partitioner_.solve(bound));
  ++tried_;
  if (objective(cut.largest, cut.sum) < bestObjective_) {
    bestObjective_ = objective(cut.largest, cut.sum);
    best_ = cut;
  }
  return cut;
}

void BoundSearch::add(double low, double high, double sum) {
  double least = objective(low, sum);
  if (low < high && least < bestObjective_)
    gaps_.push({low, high, sum, least});
}

/// Returns the bound of a gap to try, and removes bounds from the gap that
/// cannot be better.  The sum of the next higher bound that was tried rules out
/// all bounds down to some point. The program just below that point rules out
/// as many more as one program can, if the best is known. So the first programs
/// and every third go to the middle, to find a good cut, and the others to the
/// top. Middles alone need two to four times as many programs where many bounds
/// are nearly as good.
double BoundSearch::boundOf(Gap &gap) const {
  double high = (bestObjective_ - gap.sum / replicas_) / behind_;
  // Add what rounding may have removed.
  for (double step = std::max(high * std::numeric_limits<double>::epsilon(),
                              std::numeric_limits<double>::denorm_min());
       high < gap.high && objective(high, gap.sum) < bestObjective_; step *= 2)
    high += step;
  gap.high = std::min(gap.high, high);
  double top = std::nextafter(gap.high, 0);
  bool middle = tried_ < 6 || tried_ % 3 == 0;
  double bound = middle ? gap.low + (top - gap.low) / 2 : top;
  return std::max(bound, gap.low);
}

StatusOr<BoundedCut> BoundSearch::run() {
  DYNA_ASSIGN_OR_RETURN(BoundedCut all, solve(infinity));
  DYNA_ASSIGN_OR_RETURN(double low, partitioner_.smallestBound());
  if (behind_ > 0 && low < all.largest) {
    DYNA_ASSIGN_OR_RETURN(BoundedCut lowest, solve(low));
    add(std::nextafter(low, infinity), all.largest, all.sum);
  }
  while (!gaps_.empty()) {
    Gap gap = gaps_.top();
    gaps_.pop();
    if (gap.least >= bestObjective_)
      break;
    double bound = boundOf(gap);
    DYNA_ASSIGN_OR_RETURN(BoundedCut cut, solve(bound));
    add(std::nextafter(bound, infinity), gap.high, gap.sum);
    add(gap.low, cut.largest, cut.sum);
  }
  return best_;
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
  PaddedRuns runs(std::move(ordered), costs);
  DYNA_RETURN_IF_ERROR(
      runs.limit(order, options.shareBytes, options.limitBytes));
  Partitioner partitioner(runs);
  BoundSearch search(partitioner, options);
  DYNA_ASSIGN_OR_RETURN(BoundedCut cut, search.run());
  partition.tried = search.tried();
  auto begin = order.begin();
  for (auto end = cut.ends.rbegin(); end != cut.ends.rend(); ++end) {
    auto stop = order.begin() + *end + 1;
    partition.seconds.push_back(runs.seconds(*end, stop - begin));
    partition.microBatches.emplace_back(begin, stop);
    begin = stop;
  }
  partition.objective =
      (options.stages - 1) * cut.largest + cut.sum / options.replicas;
  return partition;
}

} // namespace dyna
