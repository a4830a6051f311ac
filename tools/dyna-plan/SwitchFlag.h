//===- SwitchFlag.h - From one strategy to another --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_SWITCHFLAG_H
#define DYNA_TOOLS_DYNA_PLAN_SWITCHFLAG_H

#include "tools/dyna-plan/PlanFlags.h"

namespace dyna {

/// What --switch asks for: the parameters' way from each strategy that it names
/// to the one behind it. Prints, and returns the exit code.
int planSwitches(const PlanFlags &flags);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_SWITCHFLAG_H
