//===- RangedSteps.h - Steps that switch, planned and played ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_RANGEDSTEPS_H
#define DYNA_TOOLS_DYNA_PLAN_RANGEDSTEPS_H

#include "tools/dyna-plan/PlanFlags.h"

#include <vector>

namespace dyna {

/// Plans samples of these lengths as a run with --ranges plans them, plays the
/// steps, and prints what they take beside each of the strategies alone. Returns
/// the exit code.
int planRanges(const PlanFlags &flags, const std::vector<int64_t> &lengths);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_RANGEDSTEPS_H
