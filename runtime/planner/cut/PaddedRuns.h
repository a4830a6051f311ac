//===- PaddedRuns.h - Caches the seconds of runs of an order --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A run is a number of neighbouring samples of an order, and a micro-batch if the
// order is cut there. `partitionMicroBatches` reads the seconds of few of the
// n^2 / 2 runs, but reads those in each of its programs. So a run costs a call when
// it is read for the first time and a load afterwards.
//
// Runs that end at one sample are a row. A row is read in blocks of 16 runs. The first
// run of a block is also read alone, because with it a search can pass over the rest.
// Blocks 2^p to 2^(p+1) - 1 are an octave. Memory for an octave is
// taken when one of its blocks is read.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PADDEDRUNS_H
#define DYNA_RUNTIME_PLANNER_PADDEDRUNS_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/cut/PaddedCosts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace dyna {

class PaddedRuns {
public:
  /// Samples in the order that is cut. `costs` stays valid as long as this object.
  PaddedRuns(std::vector<SampleLength> ordered, const PaddedCosts &costs);

  /// Determines for each end the longest run that memory has room for. Fails if a
  /// sample alone is above the limit; the message has its number of `order`.
  Status limit(const std::vector<int64_t> &order, int64_t shareBytes,
               int64_t limitBytes);

  int64_t count() const { return static_cast<int64_t>(ordered_.size()); }
  /// Samples of the longest run that ends at position `end` and has room.
  int64_t room(int64_t end) const { return room_[end]; }

  /// Block b has the runs of 16 b to 16 b + 15 samples.
  static constexpr int64_t blockRuns = 16;

  /// Runs that end at one position. Samples that are alike and at least as long as
  /// all before them share a row.
  struct Row {
    int64_t last = 0;     ///< The last position that it stands for.
    bool longest = false; ///< No sample before is longer in either key.
    // Negative seconds were not asked for yet.
    std::array<double, blockRuns> block0;
    /// The first run of each octave, and the octaves.
    std::vector<double> firsts;
    std::vector<std::vector<double>> octaves;
  };
  Row &rowAt(int64_t end) { return rows_[rowOf_[end]]; }

  /// Returns the seconds of the runs of a block. Infinite for no sample, for runs without room,
  /// and for all once a cost was refused (`status`).
  const double *block(Row &row, int64_t block) {
    double *seconds = placeOf(row, block);
    if (seconds[blockRuns - 1] < 0)
      fill(row, block, seconds);
    return seconds;
  }

  /// Returns the seconds of the first run of a block.
  double first(Row &row, int64_t block) {
    double &seconds = *firstPlaceOf(row, block);
    if (seconds < 0)
      seconds = ask(shapeOf(row, std::max<int64_t>(block * blockRuns, 1)));
    return seconds;
  }

  double seconds(int64_t end, int64_t samples) {
    return block(rowAt(end), samples / blockRuns)[samples % blockRuns];
  }

  /// Returns an error for the first cost that was negative, not finite or lower
  /// than that of a part.
  const Status &status() const { return status_; }

private:
  static int octaveOf(int64_t block) {
    return 63 - __builtin_clzll(static_cast<unsigned long long>(block));
  }

  void makeRows();
  void makeLongest();
  double *placeOf(Row &row, int64_t block) {
    if (block == 0)
      return row.block0.data();
    int octave = octaveOf(block);
    std::vector<double> &blocks = row.octaves[octave];
    if (blocks.empty())
      blocks.assign(blockRuns << octave, -1);
    return blocks.data() + (block - (INT64_C(1) << octave)) * blockRuns;
  }
  double *firstPlaceOf(Row &row, int64_t block) {
    if (block == 0)
      return &row.block0[1];
    int octave = octaveOf(block);
    return block == INT64_C(1) << octave ? row.firsts.data() + octave
                                         : placeOf(row, block);
  }
  /// Returns the costs of a block; null if no run of its octave was asked for
  /// yet.
  const double *knownBlock(const Row &row, int64_t block) const;
  PaddedShape shapeOf(const Row &row, int64_t samples) const;
  void fill(Row &row, int64_t block, double *seconds);
  double ask(const PaddedShape &shape);
  /// Fails (`status`) if a run of the block costs less than a part of it. Also if it
  /// is a part of a run that costs less.
  void compare(const Row &row, int64_t block, const double *seconds);
  void compareBeside(const Row &row, int64_t block, const double *seconds,
                     const Row &beside);

  std::vector<SampleLength> ordered_;
  const PaddedCosts &costs_;
  std::vector<int64_t> room_;
  std::vector<size_t> rowOf_; ///< Row of each position.
  std::vector<Row> rows_;
  /// [p][i]: both keys' maxima of the 2^p samples that end at i. Empty if no row
  /// needs it.
  std::vector<std::vector<SampleLength>> longest_;
  Status status_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PADDEDRUNS_H
