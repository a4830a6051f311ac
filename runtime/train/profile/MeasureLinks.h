//===- MeasureLinks.h - What goes between ranks takes -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part of --profile that is about links. On one node, sums over all ranks of
// one number and of many are timed, as ranks share what moves their bytes. Where
// ranks are on several nodes, messages go back and forth between rank 0 and one
// rank of its own node, and one of another.
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

/// Of each rank something that ranks of one machine have in common and others do
/// not. All processes ask together.
StatusOr<std::vector<uint64_t>> findHosts(RankTeam &ranks);

/// Ranks of each node, where they lie on nodes in rows of as many (the last may
/// have fewer); 0: they do not, or there is one node.
int ranksPerNode(const std::vector<uint64_t> &hosts);

struct MeasuredLinks {
  std::optional<cost::Cluster> cluster; ///< none of one rank
  std::string note;                     ///< what was measured, and what was not
};

/// What cannot be measured here stays as `before` has it, else as it is described
/// for 'host'. Measured by the process of rank 0 alone, others get anything; all
/// ask together. Some milliseconds for each link.
StatusOr<MeasuredLinks> measureLinks(RankTeam &ranks,
                                     const std::vector<uint64_t> &hosts,
                                     const cost::Cluster &before);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_MEASURELINKS_H
