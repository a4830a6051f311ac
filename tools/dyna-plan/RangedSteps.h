//===- RangedSteps.h - Plans and simulates steps that switch ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_RANGEDSTEPS_H
#define DYNA_TOOLS_DYNA_PLAN_RANGEDSTEPS_H

#include "tools/dyna-plan/PlanFlags.h"

#include <vector>

namespace dyna {

/// Plans samples of these lengths as a run with --ranges does, simulates the
/// steps, and compares them with each strategy alone. Prints the result, and
/// returns the exit code.
int planRanges(const PlanFlags &flags, const std::vector<int64_t> &lengths);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_RANGEDSTEPS_H
