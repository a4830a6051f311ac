//===- SwitchFlag.h - Plans switches from one strategy to another ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_SWITCHFLAG_H
#define DYNA_TOOLS_DYNA_PLAN_SWITCHFLAG_H

#include "tools/dyna-plan/PlanFlags.h"

namespace dyna {

/// Implements --switch: plans the switch of the parameters from each named
/// strategy to the next one. Prints the result, and returns the exit code.
int planSwitches(const PlanFlags &flags);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_SWITCHFLAG_H
