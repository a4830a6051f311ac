//===- WhatFits.h - Finds a change with which a strategy fits ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TOOLS_DYNA_PLAN_WHATFITS_H
#define DYNA_TOOLS_DYNA_PLAN_WHATFITS_H

#include "runtime/cost/CostModel.h"
#include "runtime/planner/graph/Policy.h"

#include <string>

namespace dyna {

/// Describes the first change with which plans of `request` fit, if they do not
/// fit `memory` bytes of a device. The sample of `longest` tokens must fit on
/// as many ranks. It tries full recomputation, ZeRO, both, and then fewer
/// replicas of more stages. If none fits, it gives the memory that the nearest
/// one needs. Only strategies of the request's tensor degree are tried, because
/// others have to be compiled. Returns one line for people.
std::string describeWhatFits(const CostModel &costs, const PlanRequest &request,
                             int64_t memory, int64_t longest);

} // namespace dyna

#endif // DYNA_TOOLS_DYNA_PLAN_WHATFITS_H
