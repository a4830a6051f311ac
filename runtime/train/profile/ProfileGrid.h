//===- ProfileGrid.h - What is measured, and what it comes to -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part of --profile without ranks and clocks: on which micro-batches layer
// functions are timed, in which order and how often, and how single times become
// a table of costs.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PROFILEGRID_H
#define DYNA_RUNTIME_TRAIN_PROFILEGRID_H

#include "runtime/base/error/Status.h"
#include "runtime/cost/CostTable.h"

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dyna {

/// A micro-batch, or the token slices of one sample.
struct ProfileShape {
  std::vector<int64_t> lengths; ///< of its samples
  /// Of a sample's tokens those in the loss, in per cent.
  int targetShare = 100;
  /// Off the grid: times are compared with the table, and are no part of it.
  bool isHeldOut = false;
  /// Tokens of the slices in which its one sample runs, in order; empty: it runs whole.
  std::vector<int64_t> slices = {};

  int64_t tokens() const;
  /// Of all samples, as `targetsOf` counts them.
  int64_t targets() const;
  int64_t targetsOf(int64_t length) const {
    return (length * targetShare + 99) / 100;
  }
};

/// Returns micro-batches with powers of two of tokens up to `mostTokens`, and with that
/// many. Samples are as long as can be. From `shortestProfiled` tokens on, each size comes
/// once more with a fourth of the tokens in the loss. It comes again in samples a fourth as
/// long, and so on, but no shorter than `shortestProfiled`. These have odd numbers of tokens
/// between the power of two and the one below. Libraries are faster with round numbers than
/// with those of real micro-batches. By ascending tokens. `positions` has the tokens of the
/// longest sample; 0: any number.
std::vector<ProfileShape> profileGrid(int64_t mostTokens, int64_t positions);
constexpr int64_t shortestProfiled = 8;

/// Samples in slices, so that functions are timed with earlier tokens: one as long as can
/// be, one a fourth as long, and so on, but none shorter than `shortestSliced`. Between two
/// powers of two of earlier tokens, there are slices of 1, 8, 32, 128, ... tokens as room
/// permits, and one of what is left. So a sample has slices of all sizes at all contexts,
/// and costs about as much time as a whole one. By ascending tokens.
std::vector<ProfileShape> contextGrid(int64_t mostTokens, int64_t positions);
constexpr int64_t shortestSliced = 32;

/// Samples in slices of any lengths, evenly spread in the logarithm, as are the samples.
/// None if samples are shorter than `shortestSliced`. The same for the same seed.
std::vector<ProfileShape> randomSlices(int count, int64_t mostTokens,
                                       int64_t positions, uint64_t seed);

/// Micro-batches of samples of any lengths, evenly spread in the logarithm, as are
/// their tokens. The same for the same seed.
std::vector<ProfileShape> randomShapes(int count, int64_t mostTokens,
                                       int64_t positions, uint64_t seed);

/// At least one time.
double medianSeconds(std::vector<double> times);

/// The time that repeats of one call gather about: the median of those more than
/// half of them that lie closest together, of several such the shortest ones. As
/// disturbances make calls longer, and not all alike, this drops them where a plain
/// median, of many disturbed ones, would be one of these. At least one time.
double typicalSeconds(std::vector<double> times);

/// One run of a function, by two clocks: that on the wall, and what its thread had
/// of a core. Time that others of the machine took is in the first alone.
struct CallSeconds {
  double wall = 0;
  double core =
      -1; ///< -1: a device of its own did it, of which `wall` is the time
};

/// How much else the machine did.
struct MachineNoise {
  /// Of the ranks' time, in which they had no core; -1: devices did all of it.
  double withheld = 0;
  /// Of repeats of one call, the mean distance from its typical time, relative to
  /// that; the mean over the calls that were repeated and are not short.
  double spread = 0;

  /// Beyond which predictions are not to be trusted.
  static constexpr double most = 0.1;
  bool isTooMuch() const { return withheld > most || spread > most; }
  /// "ranks had no core for 3 % of the time, repeats of a call differ by 2 %"
  std::string describe() const;
};

/// Calls below it are of no weight in a step, and single misses of caches in them.
constexpr double shortCall = 1e-4;

/// Times of calls, by function and load.
class Measurements {
public:
  /// What counts is the time of the core, of which the median is typical. Where the
  /// function waits for other ranks (`waits`), that is part of it: the wall's,
  /// which other work disturbs far more: of that, `typicalSeconds`.
  void add(const CostKey &function, const Load &load, CallSeconds seconds,
           bool waits);
  bool empty() const { return calls_.empty(); }

  struct Typical {
    CostKey function;
    Load load; ///< as tables of costs state it (callLoad, sliceLoad)
    double seconds;
  };
  /// Returns the typical times by function, then by load.
  std::vector<Typical> typical() const;
  /// The same as a table's entries.
  cost::Table table() const;
  MachineNoise noise() const;

private:
  double wall_ = 0, core_ = 0; ///< of calls that wait for nobody
  bool isOfDevices_ = false;
  /// Of the repeats of one call.
  struct Times {
    std::vector<double> seconds;
    bool onWall = false;
    double typical() const {
      return onWall ? typicalSeconds(seconds) : medianSeconds(seconds);
    }
  };
  /// By queries, pairs, targets and context.
  std::map<std::pair<CostKey, std::array<int64_t, 4>>, Times> calls_;
};

struct ProfilePasses {
  int passes = 0;     ///< over all shapes
  size_t reached = 0; ///< shapes of the last pass, if it was cut short
};

/// How often a shape is run in a pass: small ones take little, and vary most; of
/// those off the grid no neighbours average what caches do.
int repeatsOf(const ProfileShape &shape);

/// The order of a pass: the first one's is that of the numbers; others begin
/// elsewhere and jump, so that neither a disturbance of seconds nor what ran before
/// is always the same shape's.
std::vector<size_t> passOrder(size_t shapes, int pass);

/// Runs every shape `passes` times, pass by pass, so that what disturbs the
/// machine for a while spoils no point alone. Ends before a shape when `isOver`
/// says so, but not before the first has run. Passes are counted from `firstPass`.
StatusOr<ProfilePasses>
runProfile(const std::vector<ProfileShape> &shapes, int firstPass, int passes,
           const std::function<StatusOr<bool>()> &isOver,
           const std::function<Status(const ProfileShape &, int pass)> &run);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROFILEGRID_H
