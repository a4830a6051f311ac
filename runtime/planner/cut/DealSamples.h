//===- DealSamples.h - Assigns samples to replicas --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_DEALSAMPLES_H
#define DYNA_RUNTIME_PLANNER_DEALSAMPLES_H

#include <cstdint>
#include <vector>

namespace dyna {

/// Returns the samples of each replica, ascending. Longest first, each sample
/// goes to the replica with the least work so far (Graham's LPT: at most 4/3 of
/// the optimum). Work is tokens, plus `tokensPerPair` for every pair of tokens
/// in attention. O(n log n + replicas), deterministic.
std::vector<std::vector<int64_t>>
dealSamples(const std::vector<int64_t> &lengths, int replicas,
            double tokensPerPair);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_DEALSAMPLES_H
