//===- MeasureLinks.h - Measures link latency and bandwidth -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the links for --profile. On one node it times sums over all ranks,
// of one number and of many, because all ranks share the memory that moves
// their bytes. On several nodes it times messages between rank 0 and one rank
// of its own node, and one rank of another node.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_MEASURELINKS_H
#define DYNA_RUNTIME_TRAIN_MEASURELINKS_H

#include "runtime/cost/Costs.pb.h"
#include "runtime/executor/run/RankTeam.h"

#include <optional>
#include <string>
#include <vector>

namespace dyna {

/// Returns a number for each rank that only ranks of the same machine share.
/// All processes call it together.
StatusOr<std::vector<uint64_t>> findHosts(RankTeam &ranks);

/// Returns the ranks of each node, if consecutive ranks fill nodes of equal
/// size (the last may be smaller). Returns 0 if they do not, or if there is one
/// node.
int ranksPerNode(const std::vector<uint64_t> &hosts);

struct MeasuredLinks {
  std::optional<cost::Cluster> cluster; ///< empty if there is one rank
  std::string note;                     ///< names measured and unmeasured links
};

/// Measures the links. A link that cannot be measured here keeps its value of
/// `before`, or else that of the described cluster 'host'. Only the process of
/// rank 0 gets the result, but all must call it together. Takes some
/// milliseconds for each link.
StatusOr<MeasuredLinks> measureLinks(RankTeam &ranks,
                                     const std::vector<uint64_t> &hosts,
                                     const cost::Cluster &before);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_MEASURELINKS_H
