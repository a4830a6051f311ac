//===- PackMicroBatches.h - Packs bins under a token limit ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PACKMICROBATCHES_H
#define DYNA_RUNTIME_PLANNER_PACKMICROBATCHES_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <vector>

namespace dyna {

struct PackOptions {
  /// Tokens of one micro-batch; a longer sample is an error.
  int64_t maxTokens = 0;
  /// Cost of one (query, key) pair of attention beside that of one token: what
  /// the bins are balanced by, besides fitting.
  double tokensPerPair = 1.0 / 1024;
};

/// Packs the samples into ragged micro-batches. There are as few as first-fit
/// decreasing needs (at most 11/9 of the optimum and one more). Their work
/// (tokens and attention pairs) is balanced if that many bins can be filled
/// evenly. Samples keep their order within a bin; bins are ordered by their
/// first sample. O(n log n + n * bins), deterministic. Empty samples need no
/// bin of their own.
StatusOr<std::vector<std::vector<int64_t>>>
packMicroBatches(const std::vector<int64_t> &lengths,
                 const PackOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PACKMICROBATCHES_H
