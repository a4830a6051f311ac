//===- SearchStrategies.h - The best degrees of a cluster -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_SEARCHSTRATEGIES_H
#define DYNA_TOOLS_DYNA_PLAN_SEARCHSTRATEGIES_H

#include "tools/dyna-plan/PlanFlags.h"

#include <vector>

namespace dyna {

/// Plans samples of these lengths under all strategies that use the devices of
/// --cluster, and prints the best first. Returns the exit code.
int search(const PlanFlags &flags, const std::vector<int64_t> &lengths);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_SEARCHSTRATEGIES_H
