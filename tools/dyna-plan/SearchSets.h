//===- SearchSets.h - The best strategies of a step -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_SEARCHSETS_H
#define DYNA_TOOLS_DYNA_PLAN_SEARCHSETS_H

#include "tools/dyna-plan/PlanFlags.h"

#include <vector>

namespace dyna {

/// Prints the strategies between which a step of samples of such lengths should
/// switch on the devices of --cluster, their ranges, order and home, beside the best
/// single strategy. Returns the exit code.
int searchSets(const PlanFlags &flags, std::vector<int64_t> lengths);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_SEARCHSETS_H
