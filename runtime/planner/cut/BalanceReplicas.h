//===- BalanceReplicas.h - Assigns micro-batches to replicas ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_BALANCEREPLICAS_H
#define DYNA_RUNTIME_PLANNER_BALANCEREPLICAS_H

#include <cstdint>
#include <vector>

namespace dyna {

/// Numbers of items, ascending, of each replica.
using Dealt = std::vector<std::vector<int64_t>>;

/// Deals micro-batches, largest first, each to the replica with the least so
/// far (Graham's LPT). The largest sum is at most 4/3 - 1/(3 replicas) of the
/// smallest possible. O(n log n + n log replicas).
Dealt dealLargestFirst(const std::vector<double> &seconds, int replicas);

/// Deals micro-batches, which take `seconds` (none negative), to replicas so
/// that the largest sum is small (DynaPipe, section 4). It uses the largest
/// differencing method of Karmarkar and Karp. At the start there is one part
/// per micro-batch: that micro-batch on one replica, and nothing on the others.
/// The two parts whose sums lie furthest apart are joined, the largest sums of
/// one with the smallest of the other, until one is left.
///
/// With few micro-batches the result may be worse than `dealLargestFirst`. Then
/// the latter is returned, so the bound of that function holds here too. The
/// paper uses the method alone.
///
/// Replicas may get different numbers of micro-batches, and none if there are
/// fewer than replicas; the paper pads with empty ones. Replicas are ordered by
/// their first micro-batch, those without any last. Deterministic. O(n (log n +
/// replicas log replicas)). Above some four million parts (n * replicas), which
/// would take seconds, only `dealLargestFirst` is used.
Dealt balanceReplicas(const std::vector<double> &seconds, int replicas);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_BALANCEREPLICAS_H
