//===- ProfileGrid.h - Chooses what to measure, and summarises times ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part of --profile without ranks and clocks. It chooses the micro-batches
// on which layer functions are timed, their order and their repeats. It also
// turns single times into a table of costs.
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
  /// Tokens of a sample that are in the loss, in per cent.
  int targetShare = 100;
  /// Off the grid: its times are compared with the table and are not entered
  /// into it.
  bool isHeldOut = false;
  /// Tokens of the slices of its only sample, in order; empty: the sample runs
  /// whole.
  std::vector<int64_t> slices = {};

  int64_t tokens() const;
  /// Returns the targets of all samples, as counted by `targetsOf`.
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

/// Returns samples in slices, so that functions are timed with earlier tokens.
/// The first sample is as long as possible. Each further one is a fourth as
/// long, but none is shorter than `shortestSliced`. Between two powers of two
/// of earlier tokens, there are slices of 1, 8, 32, 128, ... tokens as room
/// permits. The rest is one more slice. So a sample has slices of all sizes at
/// all contexts, and takes about as much time as a whole one. By ascending
/// tokens.
std::vector<ProfileShape> contextGrid(int64_t mostTokens, int64_t positions);
constexpr int64_t shortestSliced = 32;

/// Returns samples in slices of random lengths, evenly spread in the logarithm,
/// as are the samples. Empty if samples are shorter than `shortestSliced`.
/// Equal seeds give equal results.
std::vector<ProfileShape> randomSlices(int count, int64_t mostTokens,
                                       int64_t positions, uint64_t seed);

/// Returns micro-batches of samples of random lengths, evenly spread in the
/// logarithm, as are their tokens. Equal seeds give equal results.
std::vector<ProfileShape> randomShapes(int count, int64_t mostTokens,
                                       int64_t positions, uint64_t seed);

/// Returns the median of at least one time.
double medianSeconds(std::vector<double> times);

/// Returns the typical time of the repeats of one call: the median of the
/// densest subset with more than half of them. Among equally dense subsets it
/// takes the shortest times. Disturbances make calls longer by different
/// amounts, so they fall outside of the subset. A plain median of many
/// disturbed calls would be a disturbed one. Needs at least one time.
double typicalSeconds(std::vector<double> times);

/// Seconds of one call, by the wall clock and by the CPU time of its thread.
/// Only the first contains time that other programs of the machine took.
struct CallSeconds {
  double wall = 0;
  double core = -1; ///< -1: ran on a device, which `wall` times
};

/// Disturbance of the measurements by other programs of the machine.
struct MachineNoise {
  /// Share of the ranks' time in which they had no core; -1: all calls ran on
  /// devices.
  double withheld = 0;
  /// Mean relative distance of repeated calls from their typical time. It is
  /// averaged over calls that were repeated and are not short.
  double spread = 0;

  /// Limit above which predictions are not reliable.
  static constexpr double most = 0.1;
  bool isTooMuch() const { return withheld > most || spread > most; }
  /// Formats the noise: "ranks had no core for 3 % of the time, repeats of a
  /// call differ by 2 %".
  std::string describe() const;
};

/// Seconds below which a call has no weight in a step and is dominated by
/// single cache misses.
constexpr double shortCall = 1e-4;

/// Times of calls, by function and load.
class Measurements {
public:
  /// Adds the time of a call. Normally that is the CPU time, and its median is
  /// typical. If the function waits for other ranks (`waits`), the wait belongs
  /// to it, so the wall time is used. Other work disturbs wall time more, so
  /// `typicalSeconds` is typical there.
  void add(const CostKey &function, const Load &load, CallSeconds seconds,
           bool waits);
  bool empty() const { return calls_.empty(); }

  struct Typical {
    CostKey function;
    Load load; ///< in the form of tables (callLoad, sliceLoad)
    double seconds;
  };
  /// Returns the typical times by function, then by load.
  std::vector<Typical> typical() const;
  /// Returns the typical times as entries of a table.
  cost::Table table() const;
  MachineNoise noise() const;

private:
  double wall_ = 0, core_ = 0; ///< of calls that wait for no other rank
  bool isOfDevices_ = false;
  /// Times of the repeats of one call.
  struct Times {
    std::vector<double> seconds;
    bool onWall = false;
    double typical() const {
      return onWall ? typicalSeconds(seconds) : medianSeconds(seconds);
    }
  };
  /// Times by queries, pairs, targets and context.
  std::map<std::pair<CostKey, std::array<int64_t, 4>>, Times> calls_;
};

struct ProfilePasses {
  int passes = 0;     ///< over all shapes
  size_t reached = 0; ///< shapes of the last pass, if it was cut short
};

/// Returns how often a shape runs in a pass. Small shapes are fast and vary
/// most, so they run more often. Shapes off the grid run at least twice,
/// because no neighbours average out cache effects.
int repeatsOf(const ProfileShape &shape);

/// Returns the order of shapes in a pass. The first pass is in the order of the
/// numbers. Later passes start elsewhere and jump. So a disturbance of seconds,
/// or a certain predecessor, does not always hit the same shape.
std::vector<size_t> passOrder(size_t shapes, int pass);

/// Runs every shape `passes` times, pass by pass, so that a long disturbance
/// does not spoil one point. Ends before a shape if `isOver` returns true, but
/// not before the first. Passes are counted from `firstPass`.
StatusOr<ProfilePasses>
runProfile(const std::vector<ProfileShape> &shapes, int firstPass, int passes,
           const std::function<StatusOr<bool>()> &isOver,
           const std::function<Status(const ProfileShape &, int pass)> &run);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROFILEGRID_H
