//===- PlanFile.h - Reads and writes plans -----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan has exactly one encoding. A program that several ranks share is written
// once. Fields of instructions are columns of one or two bytes a value
// (docs/decisions/0033-plans-say-what-is-free.md).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PLANFILE_H
#define DYNA_RUNTIME_PLAN_PLANFILE_H

#include "runtime/base/error/Status.h"
#include "runtime/plan/program/StepPlan.h"

#include <string_view>

namespace dyna {

/// Largest number of instructions in a file, over all ranks and phases.
constexpr int64_t maxPlanInstructions = INT64_C(1) << 23;

/// Reads a plan. Returns InvalidArgument if the bytes are no plan, or have fields that
/// this version does not know. Does not verify the plan (PlanVerifier.h).
StatusOr<plan::Plan> readPlan(std::string_view bytes);

/// Writes a plan. All instructions must be known and all places aligned; others have
/// no form in a file.
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
