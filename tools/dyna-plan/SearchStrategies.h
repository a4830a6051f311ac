//===- SearchStrategies.h - Searches the best strategies of a cluster -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_SEARCHSTRATEGIES_H
#define DYNA_TOOLS_DYNA_PLAN_SEARCHSTRATEGIES_H

#include "tools/dyna-plan/PlanFlags.h"

#include <vector>

namespace dyna {

/// Searches one strategy for samples of these lengths on the devices of --cluster
/// (runtime/planner/search/SearchSingles.h), and prints the best first. Returns the exit
/// code.
int searchStrategy(const PlanFlags &flags, const std::vector<int64_t> &lengths);

/// Searches the strategies between which a step should switch by the lengths of its
/// samples, and prints them (runtime/planner/search/ChooseStrategies.h). Returns the exit
/// code.
int searchSets(const PlanFlags &flags, std::vector<int64_t> lengths);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_SEARCHSTRATEGIES_H
