//===- PlanFile.h - Plans as bytes ------------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan has one encoding: what several ranks do alike is written once, and
// fields of instructions are columns, a byte or two each. (docs/decisions/
// 0033-plans-say-what-is-free.md.)
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PLANFILE_H
#define DYNA_RUNTIME_PLAN_PLANFILE_H

#include "runtime/base/Status.h"
#include "runtime/plan/program/StepPlan.h"

#include <string_view>

namespace dyna {

/// Instructions of all ranks, in all phases, that a file may have.
constexpr int64_t maxPlanInstructions = INT64_C(1) << 23;

/// InvalidArgument where the bytes are no plan, or more than this version
/// knows. Says nothing about whether the plan may run (PlanVerifier.h).
StatusOr<plan::Plan> readPlan(std::string_view bytes);

/// Known instructions and aligned places only: the fields of others have no
/// form in a file.
std::string writePlan(const plan::Plan &plan);

/// Read and write steps. A step of one phase that has the whole mini-batch is its plan
/// byte for byte, and each function reads what the other writes. `readPlan` refuses a
/// step of several phases.
StatusOr<plan::StepPlan> readStepPlan(std::string_view bytes);
std::string writeStepPlan(const plan::StepPlan &step);

/// Returns the step of one phase with all samples that the plan names.
plan::StepPlan stepOf(plan::Plan plan);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PLANFILE_H
