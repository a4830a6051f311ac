//===- BalanceReplicas.h - Which replica runs which micro-batch -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_BALANCEREPLICAS_H
#define DYNA_RUNTIME_PLANNER_BALANCEREPLICAS_H

#include <cstdint>
#include <vector>

namespace dyna {

/// Numbers of items, ascending, of each replica.
using Dealt = std::vector<std::vector<int64_t>>;

/// Largest first, each to the replica with the least so far (Graham's LPT):
/// the largest sum is at most 4/3 - 1/(3 replicas) of the smallest possible.
/// O(n log n + n log replicas).
Dealt dealLargestFirst(const std::vector<double> &seconds, int replicas);

/// Micro-batches, which take `seconds` (none negative), to replicas so that the
/// largest sum of one is small (DynaPipe, section 4). By the largest differencing
/// method of Karmarkar and Karp: parts of all replicas begin as one micro-batch
/// and nothing each; the two whose sums lie furthest apart are joined, the
/// largest sums of the one with the smallest of the other, until one is left. If
/// that ends worse than `dealLargestFirst`, which happens to few micro-batches,
/// the latter is taken (the paper is content with the method alone): so the
/// bound of that holds, and the largest sum is never above its.
///
/// Replicas may get different numbers of micro-batches, and none where there are
/// fewer than replicas; the paper's pad with empty ones. In the order of their
/// first micro-batch, those without any last. Deterministic. O(n (log n +
/// replicas log replicas)); of more than some four million parts
/// (n * replicas), which would take seconds, `dealLargestFirst` alone.
Dealt balanceReplicas(const std::vector<double> &seconds, int replicas);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_BALANCEREPLICAS_H
