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
#include "passes/plan/WordOptions.h"
#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/graph/Planner.h"

#include <memory>

namespace mlir::dyna {

/// Planning words of a pass that begins a plan.
constexpr std::initializer_list<::dyna::Word> beginningWords = {
    ::dyna::Word::Strategy,     ::dyna::Word::Costs,
    ::dyna::Word::Cluster,      ::dyna::Word::TokensPerBatch,
    ::dyna::Word::MicroBatches, ::dyna::Word::TokensPerMicroBatch,
    ::dyna::Word::MergeRanges,  ::dyna::Word::Pipeline,
    ::dyna::Word::InFlight,     ::dyna::Word::SplitBackward,
    ::dyna::Word::Slices,       ::dyna::Word::Recompute,
    ::dyna::Word::RankMemory};

/// Options of a pass that begins a plan.
struct MiniBatchRequest {
  /// `tokensPerBatch` is 0 if it is not given: the step is then as large as `lengths`.
  ::dyna::PlanningValues words;
  std::vector<int64_t> lengths;
  int64_t targetTokens; ///< -1: all tokens
  bool evaluate;
};

template <typename BeginningPass>
::dyna::StatusOr<MiniBatchRequest> requestOf(const BeginningPass &pass) {
  DYNA_ASSIGN_OR_RETURN(auto words, pass.words.read());
  if (!pass.words.isGiven(::dyna::Word::TokensPerBatch))
    words.tokensPerBatch = 0;
  return MiniBatchRequest{std::move(words),
                          {pass.lengths.begin(), pass.lengths.end()},
                          pass.targetTokens,
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

/// Refuses what no mini-batch can have.
::dyna::Status checkRequest(const MiniBatchRequest &request);

/// Returns a memory limit that was checked, in bytes; 0 if `text` is empty.
int64_t bytesOf(const std::string &text);

/// What a pass's options of these names say, of which one may be given.
::dyna::StatusOr<::dyna::CostModel> openCosts(const ::dyna::Model &model,
                                              const std::string &costs,
                                              const std::string &cluster);

/// Holds what a pass that changes the plans of a module reads first.
struct PlanInputs {
  ::dyna::PlanningValues words;
  std::unique_ptr<const ::dyna::Model> model; ///< `costs` refers to it
  ::dyna::CostModel costs;
};

/// Reads the words of the pass, the model of the module, and the costs that the words name.
/// A diagnostic says what is wrong.
FailureOr<PlanInputs> openInputs(ModuleOp module, const WordOptions &words);

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
