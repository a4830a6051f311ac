//===- PackGoals.h - What re-packing looks for ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_PACKGOALS_H
#define DYNA_RUNTIME_ELASTIC_PACKGOALS_H

#include "runtime/elastic/pack/RepackLayers.h"

#include <array>

namespace dyna {

enum class PackGoal : uint8_t {
  Fewest,  ///< ranks that hold the model
  PerRank, ///< most tokens per second and rank
  Replicas ///< most tokens per second; free ranks become replicas
};

/// A goal as users name it.
struct PackGoalRow {
  PackGoal goal;
  const char *word;
};
constexpr std::array packGoals = {PackGoalRow{PackGoal::Fewest, "fewest"},
                                  PackGoalRow{PackGoal::PerRank, "per-rank"},
                                  PackGoalRow{PackGoal::Replicas, "replicas"}};

const char *wordOf(PackGoal goal);
/// Fails with InvalidArgument, and lists the words.
StatusOr<PackGoal> findPackGoal(const std::string &word);

/// Returns the packings that have room, the one that is nearest to the goal first. So a
/// caller who finds that the first one is not possible takes the next. The first ones are
/// those of `packFewest`, `packMostPerRank` and `packWithReplicas`. Each number of stages
/// and replicas takes as long as `packInto`.
std::vector<Packing> packingsFor(const PackProblem &problem, PackGoal goal);

/// Returns true if a move to `next` is worth its price. It has fewer ranks, or a
/// rate that is higher by at least `leastShare`.
bool isNearer(PackGoal goal, const Packing &next, const Packing &now,
              double leastShare);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_PACKGOALS_H
