//===- StepPhases.h - Steps of several graphs in a module -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the passes that make and prove plans do where a module has an
// `exec.orchestration`: a mini-batch then becomes a plan for each of its graphs that
// has samples, and an `exec.step` that names them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_STEPPHASES_H
#define DYNA_PASSES_PLAN_STEPPHASES_H

#include "passes/plan/Orchestrated.h"
#include "passes/plan/PlanSteps.h"

namespace mlir::dyna {

/// Of one mini-batch.
struct StepDraft {
  struct Phase {
    int turn;
    PlanDraft draft;
    std::vector<int64_t> samples; ///< as plan::Phase has them
  };
  std::vector<Phase> phases;
  std::vector<std::string> notes; ///< where samples went, and more, for people
};

/// Deals the samples by their lengths, on which ranges merge if the request says so
/// and it trains, and begins a plan for every turn that has
/// some, and for home.
::dyna::StatusOr<StepDraft> beginStep(const Orchestrated &orchestrated,
                                      const ::dyna::CostModel &costs,
                                      const MiniBatchRequest &request);

/// Adds plans, drafts unless they are complete, and the step that names them; a
/// step of one phase is a plan alone.
LogicalResult addStep(ModuleOp module, const Orchestrated &orchestrated,
                      StepDraft step, bool isComplete);

/// Gives the plans of a step, which are complete, the instructions of its
/// switches, in the place of those that they may have.
LogicalResult joinStep(exec::StepOp op, const Orchestrated &orchestrated);

/// What `dyna-verify-plan` checks of one step. A negative limit is none.
LogicalResult verifyStep(exec::StepOp op, const Orchestrated &orchestrated,
                         int64_t limit = -1,
                         const ::dyna::UpdateRules &updates = {});

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_STEPPHASES_H
