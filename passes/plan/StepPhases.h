//===- StepPhases.h - Makes the step of a mini-batch in a module ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Planning passes make a step of every mini-batch. With an `exec.orchestration` in the
// module, each of its graphs that has samples gets a plan, and an `exec.step` names
// them. Otherwise the step has one plan, of a graph that is made for the strategy.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_STEPPHASES_H
#define DYNA_PASSES_PLAN_STEPPHASES_H

#include "passes/plan/Orchestrated.h"
#include "passes/plan/PlanSteps.h"

#include <optional>

namespace mlir::dyna {

/// A draft of the step of one mini-batch.
struct StepDraft {
  struct Phase {
    int turn; ///< of the orchestration
    PlanDraft draft;
    std::vector<int64_t> samples; ///< in the form of plan::Phase
  };
  std::vector<Phase> phases;
  std::vector<std::string> notes; ///< about merged samples and more, for people
};

/// Reads the `exec.orchestration` of a module; nothing if it has none.
FailureOr<std::optional<Orchestrated>>
findOrchestrated(ModuleOp module, const ::dyna::Model &model);

/// Completes the plans of a step, which are drafts.
using CompleteStep =
    llvm::function_ref<::dyna::Status(StepDraft &, const ::dyna::CostModel &)>;

/// Adds the step of a mini-batch to `module`: the plans of its phases, and the op that
/// names them. With an orchestration, samples go to its turns by their lengths. Ranges
/// merge if the request says so and it trains. Every turn with samples, and home, gets
/// a plan. Plans are drafts if `complete` is null; otherwise they are verified. A step
/// of one phase is a plan alone. Errors are reported at the module.
LogicalResult planMiniBatch(ModuleOp module,
                            const ::dyna::StatusOr<MiniBatchRequest> &request,
                            CompleteStep complete = nullptr);

/// Adds the instructions of switches to the complete plans of a step. They
/// replace those that the plans may have.
LogicalResult joinStep(exec::StepOp op, const Orchestrated &orchestrated);

/// Checks what `dyna-verify-plan` checks of one step. A negative limit means no
/// limit.
LogicalResult verifyStep(exec::StepOp op, const Orchestrated &orchestrated,
                         int64_t limit = -1,
                         const ::dyna::UpdateRules &updates = {});

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_STEPPHASES_H
