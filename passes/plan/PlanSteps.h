//===- PlanSteps.h - A plan between the passes that make it -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What each of the passes that make plans does, once: `dyna-plan` does all of it.
// They call `runtime/planner` and carry its plans into the module and back.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_PLANSTEPS_H
#define DYNA_PASSES_PLAN_PLANSTEPS_H

#include "passes/plan/Passes.h"
#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/graph/Planner.h"

namespace mlir::dyna {

constexpr const char *defaultStrategy = "dp=1"; ///< as Passes.td has it

/// The options of a pass that begins a plan, as the user gave them: -1 and empty
/// where nothing was said.
struct MiniBatchRequest {
  std::string strategy, microBatches, mergeRanges, pipeline, schedule,
      recompute, rankMemory;
  std::vector<int64_t> lengths;
  int64_t targetTokens, tokensPerBatch, tokensPerMicroBatch;
  int64_t inFlight;
  bool splitBackward, evaluate;
};

template <typename BeginningPass>
MiniBatchRequest requestOf(const BeginningPass &pass) {
  return {pass.strategy,
          pass.microBatches,
          pass.mergeRanges,
          pass.pipeline,
          pass.schedule,
          pass.recompute,
          pass.rankMemory,
          {pass.lengths.begin(), pass.lengths.end()},
          pass.targetTokens,
          pass.tokensPerBatch,
          pass.tokensPerMicroBatch,
          pass.inFlight,
          pass.splitBackward,
          pass.evaluate};
}

struct PlanDraft {
  ::dyna::ExecutableGraph graph;
  /// As they were asked for; without limits, which follow from `rankMemory`.
  ::dyna::PlanOptions options = {};
  bool evaluate = false;
  int64_t rankMemory = 0; ///< 0: not limited
  ::dyna::plan::Plan plan = {};
  /// Of a step of several graphs (StepPhases.h).
  bool isPhase = false;
  /// Of a phase: bytes that some rank has, at most, beside the graph's parameters
  /// and micro-batches.
  int64_t heldBeside = 0;
  /// What was chosen, and what is not used: for people.
  std::vector<std::string> notes = {};
};

/// An option that is from 1 to `most`, or -1 where it was not given, which
/// means `unset`.
::dyna::Status checkCount(const char *option, int64_t value, int64_t most,
                          const char *unit, const char *unset);

/// Refuses what no mini-batch can have.
::dyna::Status checkRequest(const MiniBatchRequest &request);

/// An option in bytes, such as 40MiB; 0 where it was not given.
::dyna::StatusOr<int64_t> bytesOf(const char *option, const std::string &text);

/// The schedule that is asked for by one of two words, or by both alike.
::dyna::StatusOr<std::string> scheduleWord(const std::string &pipeline,
                                           const std::string &schedule);

/// What a pass's options of these names say, of which one may be given.
::dyna::StatusOr<::dyna::CostModel> openCosts(const ::dyna::Model &model,
                                              const std::string &costs,
                                              const std::string &cluster);

/// `costs` is that of the model, here and below.
::dyna::StatusOr<PlanDraft> beginPlan(const ::dyna::Model &model,
                                      const ::dyna::CostModel &costs,
                                      const MiniBatchRequest &request);
/// For the samples of a phase, which may be none; the request has the targets of the
/// whole mini-batch. `turn` is a graph of the table, the last of which is home.
::dyna::StatusOr<PlanDraft> beginPhase(const ::dyna::SwitchTable &switches,
                                       int turn, const ::dyna::CostModel &costs,
                                       const MiniBatchRequest &request);
/// Those that plans of a turn are made with, whatever samples of the request it gets,
/// of which none is longer than `longest`, at least 1: within rank-memory.
::dyna::StatusOr<::dyna::PlanOptions>
phaseOptions(const ::dyna::SwitchTable &switches, int turn,
             const ::dyna::CostModel &costs, const MiniBatchRequest &request,
             int64_t longest);
::dyna::Status schedulePlan(PlanDraft &draft, const ::dyna::CostModel &costs);
::dyna::Status orderPlan(PlanDraft &draft, const ::dyna::CostModel &costs);

/// The draft that `op` is, or a complete plan as one: with what its programs say,
/// no limit of memory, and the schedule that a binary has by default. P1 and P2
/// are proven of it. A diagnostic says what is wrong.
FailureOr<PlanDraft> readDraft(exec::PlanOp op, const ::dyna::Model &model);

/// Adds graph and plan; the plan is a draft unless it `isComplete`.
FailureOr<exec::PlanOp> addPlan(ModuleOp module, const ::dyna::Model &model,
                                PlanDraft draft, bool isComplete);
/// Adds a graph, which is verified, by its strategy's name.
FailureOr<exec::GraphOp> addGraph(ModuleOp module, const ::dyna::Model &model,
                                  const ::dyna::ExecutableGraph &graph);
/// Adds the plan of a graph that is there.
FailureOr<exec::PlanOp> addPlanOf(exec::GraphOp graphOp, PlanDraft draft,
                                  bool isComplete);
/// Puts the plan in the place of `op`, which is gone afterwards, even on failure.
FailureOr<exec::PlanOp> replacePlan(exec::PlanOp op, PlanDraft draft,
                                    bool isComplete);

/// Null where the module has none.
exec::OrchestrationOp findOrchestration(ModuleOp module);

/// An error about the module with a text that may be others'.
LogicalResult refuse(Operation *op, const ::dyna::Status &status);
/// Remarks.
void sayNotes(Operation *op, const std::vector<std::string> &notes);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_PLANSTEPS_H
