//===- PackGoals.h - Orders packings by a goal ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_PACKGOALS_H
#define DYNA_RUNTIME_ELASTIC_PACKGOALS_H

#include "runtime/elastic/pack/RepackLayers.h"

#include <array>

namespace dyna {

/// Goals of `--repack auto` (DynPipe, appendix B.4).
enum class PackGoal : uint8_t {
  Fewest,  ///< ranks that hold the model
  PerRank, ///< most tokens per second and rank
  Replicas ///< most tokens per second; free ranks become replicas
};

/// A goal and the word of users for it.
struct PackGoalRow {
  PackGoal goal;
  const char *word;
};
constexpr std::array packGoals = {PackGoalRow{PackGoal::Fewest, "fewest"},
                                  PackGoalRow{PackGoal::PerRank, "per-rank"},
                                  PackGoalRow{PackGoal::Replicas, "replicas"}};

const char *wordOf(PackGoal goal);
/// Returns the goal of a word. For other words it fails with InvalidArgument, and lists
/// the words.
StatusOr<PackGoal> findPackGoal(const std::string &word);

/// Returns the packings that have room, best first. Only `Replicas` packs more than one
/// pipeline. Of packings that are equally near to the goal, the first one has the fewest
/// ranks, and for `PerRank` the most. Calls `packInto` for each number of stages and
/// replicas.
std::vector<Packing> packingsFor(const PackProblem &problem, PackGoal goal);

/// Returns the first of `packingsFor`. If none has room, fails as `packInto` for the number
/// of stages that lacks the fewest bytes.
StatusOr<Packing> packFor(const PackProblem &problem, PackGoal goal);

/// Returns true if a move to `next` is worth its price. It has fewer ranks, or a
/// rate that is higher by at least `leastShare`.
bool isNearer(PackGoal goal, const Packing &next, const Packing &now,
              double leastShare);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_PACKGOALS_H
