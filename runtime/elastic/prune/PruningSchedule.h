//===- PruningSchedule.h - Schedules the pruning of weights -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Gradual pruning raises the sparsity of a model in events, fast at first and slower as
// fewer weights are left (DynPipe, appendix B.2, equation 2):
//
//     S(t) = final + (initial - final) * (1 - (t - from) / (until - from))^3
//
//     t = from, from + every, ..., until
//
// The last event is one of them, so that a run ends with the final sparsity.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_PRUNINGSCHEDULE_H
#define DYNA_RUNTIME_ELASTIC_PRUNINGSCHEDULE_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <string>

namespace dyna {

/// Sparsity is the share of weights that are zero, from 0 to below 1.
struct PruningSchedule {
  double initial = 0, final = 0;
  int64_t from = 0;  ///< step of the first event
  int64_t until = 0; ///< step of the last event
  int64_t every = 0; ///< steps between two events; 0 if there is one alone

  int64_t events() const { return every > 0 ? (until - from) / every + 1 : 1; }
  /// Returns true if weights are pruned before this step.
  bool hasEvent(int64_t step) const;
  /// Returns the first step from this one on with an event; -1 if there is none.
  int64_t nextEvent(int64_t step) const;
  /// Returns the sparsity after the last event up to this step; 0 before the first one.
  double sparsityAt(int64_t step) const;
};

/// Reads words such as "final=0.9,from=3000,until=7000,every=1000". `initial`
/// is 0 if it is not given, and `from` alone means one event. Fails with
/// InvalidArgument if a sparsity is outside of [0, 1) or falls, or if events
/// are out of order.
StatusOr<PruningSchedule> parsePruningSchedule(const std::string &text);

/// Returns how many of `weights` weights survive: the nearest number, and at
/// least one.
int64_t survivorsAt(int64_t weights, double sparsity);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_PRUNINGSCHEDULE_H
