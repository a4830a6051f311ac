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

#include "runtime/base/Status.h"
#include "runtime/cost/CostTable.h"

#include <array>
#include <functional>
#include <map>
#include <vector>

namespace dyna {

/// A micro-batch.
struct ProfileShape {
  std::vector<int64_t> lengths; ///< of its samples
  /// Of a sample's tokens those in the loss, in per cent.
  int targetShare = 100;

  int64_t tokens() const;
  /// Of all samples, as `targetsOf` counts them.
  int64_t targets() const;
  int64_t targetsOf(int64_t length) const {
    return (length * targetShare + 99) / 100;
  }
};

/// Tokens in powers of two up to `mostTokens`, which is there too; each in samples
/// as long as can be, a fourth as long, and so on, but no shorter than
/// `shortestProfiled`; and with a fourth of them in the loss. By ascending tokens.
/// `positions`: tokens of the longest sample, 0: any number.
std::vector<ProfileShape> profileGrid(int64_t mostTokens, int64_t positions);
constexpr int64_t shortestProfiled = 8;

/// Micro-batches of samples of any lengths, evenly spread in the logarithm, as are
/// their tokens. The same for the same seed.
std::vector<ProfileShape> randomShapes(int count, int64_t mostTokens,
                                       int64_t positions, uint64_t seed);

/// Times of calls, by function and work.
class Measurements {
public:
  void add(const CostKey &function, const Work &work, double seconds);
  bool empty() const { return calls_.empty(); }

  struct Median {
    CostKey function;
    Work work;
    double seconds;
  };
  /// By function, then by work; of an even number of times the mean of the two in
  /// the middle.
  std::vector<Median> medians() const;
  /// The same as a table's entries.
  cost::Table table() const;

private:
  std::map<std::pair<CostKey, std::array<int64_t, 3>>, std::vector<double>>
      calls_;
};

struct ProfilePasses {
  int passes = 0;     ///< over all shapes
  size_t reached = 0; ///< shapes of the last pass, if it was cut short
};

/// Runs every shape `passes` times, pass by pass, so that what disturbs the
/// machine for a while spoils no point alone. Ends before a shape when `isOver`
/// says so, but not before the first has run.
StatusOr<ProfilePasses>
runProfile(const std::vector<ProfileShape> &shapes, int passes,
           const std::function<StatusOr<bool>()> &isOver,
           const std::function<Status(const ProfileShape &, int pass)> &run);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PROFILEGRID_H
