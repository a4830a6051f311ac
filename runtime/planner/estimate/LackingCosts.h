//===- LackingCosts.h - Finds what a file of costs lacks --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where measured costs have no entry, estimates stand in, which people should
// know: times that were added up of both are no measurement.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_LACKINGCOSTS_H
#define DYNA_RUNTIME_PLANNER_LACKINGCOSTS_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/model/Strategy.h"
#include "runtime/planner/request/RecomputeModes.h"

#include <string>
#include <vector>

namespace dyna {

/// The functions of a strategy's layers whose costs are asked for.
struct AskedCosts {
  /// Each for all layers: which of them there will be may be open.
  std::vector<RecomputeModes> recompute = {{plan::RECOMPUTE_NONE}};
  bool splitBackward = false;
  bool update = false;
};

/// Returns the modes that layers may have: `recompute`, or with `anyMode` also
/// all others.
std::vector<RecomputeModes> possibleModes(const RecomputeModes &recompute,
                                          bool anyMode);

/// Returns the functions among these that were not measured, in the order of
/// layers, as text for people: "block tp=1 BACKWARD". The text is "block tp=2"
/// for a kind without any measured function at this tensor degree.
std::vector<std::string> lackingCosts(const CostModel &costs,
                                      const Strategy &strategy,
                                      const AskedCosts &asked);

/// Returns true if something was measured at the strategy's tensor degree.
bool hasCostsOfDegree(const CostModel &costs, const Strategy &strategy);

/// Joins names: "a", "a and b", "a, b and c".
std::string joinNames(const std::vector<std::string> &names);

/// Describes the source of estimates: "estimated from flops and bytes of device
/// 'host'".
std::string describeEstimate(const CostModel &costs);

/// Returns a line for people if a file of measurements lacks some of these
/// functions. Leaves out what is in `said`, which they know. Empty without such
/// a file: a described device exists to estimate by.
std::string describeLacking(const CostModel &costs, const Strategy &strategy,
                            const AskedCosts &asked,
                            const std::vector<std::string> &said = {});

/// Describes that the memory of the device is unknown, which a search needs;
/// empty if it is known.
std::string describeLackingMemory(const CostModel &costs);

/// Describes the costs that several strategies lack, each different line once.
/// A step of each strategy is assumed, with its update.
std::vector<std::string>
describeLacking(const CostModel &costs,
                const std::vector<Strategy> &strategies);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_LACKINGCOSTS_H
