//===- WhatFits.h - Finds a change with which a strategy fits ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_WHATFITS_H
#define DYNA_TOOLS_DYNA_PLAN_WHATFITS_H

#include "runtime/cost/CostModel.h"
#include "runtime/planner/graph/Policy.h"

#include <string>

namespace dyna {

/// Describes, for plans of `request` that do not fit `memory` bytes of a device, the
/// first change that lets the sample of `longest` tokens fit on as many ranks: full
/// recomputation, ZeRO, both, then fewer replicas of more stages. If none does, it
/// says how much memory the last of them needs. Only strategies of the request's
/// tensor degree are tried, as others have to be compiled. One line for people.
std::string describeWhatFits(const CostModel &costs, const PlanRequest &request,
                             int64_t memory, int64_t longest);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_WHATFITS_H
