//===- PlanSteps.h - Makes a plan in steps, each a pass ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The passes that make plans share these steps; `dyna-plan` runs all of them.
// The steps call `runtime/planner`, and carry its plans into the module and
// back.
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
  /// The requested options. Limits are not included: they follow from
  /// `rankMemory`.
  ::dyna::PlanOptions options = {};
  bool evaluate = false;
  int64_t rankMemory = 0; ///< 0: not limited
  ::dyna::plan::Plan plan = {};
  /// True for a phase of a step of several graphs (StepPhases.h).
  bool isPhase = false;
  /// Largest number of bytes that a rank of a phase has beside the graph's
  /// parameters and micro-batches.
  int64_t heldBeside = 0;
  /// Choices that were made and options that are not used, for people.
  std::vector<std::string> notes = {};
};

/// Fails for a request that no mini-batch can fulfil.
::dyna::Status checkRequest(const MiniBatchRequest &request);

/// Returns a memory limit that was checked, in bytes; 0 if `text` is empty.
int64_t bytesOf(const std::string &text);

/// Opens the cost model for a pass's options of these names. At most one may be
/// given.
::dyna::StatusOr<::dyna::CostModel> openCosts(const ::dyna::Model &model,
                                              const std::string &costs,
                                              const std::string &cluster);

/// The inputs of a pass that changes the plans of a module.
struct PlanInputs {
  ::dyna::PlanningValues words;
  std::unique_ptr<const ::dyna::Model> model; ///< `costs` refers to it
  ::dyna::CostModel costs;
};

/// Reads the words of the pass, the model of the module, and the costs that the
/// words name. A diagnostic reports errors.
FailureOr<PlanInputs> openInputs(ModuleOp module, const WordOptions &words);

/// Begins the plan of a mini-batch. `costs` belongs to `model`, here and below.
::dyna::StatusOr<PlanDraft> beginPlan(const ::dyna::Model &model,
                                      const ::dyna::CostModel &costs,
                                      const MiniBatchRequest &request);
/// Begins the plan of a phase for its samples; there may be none. The request
/// has the targets of the whole mini-batch. `turn` is a graph of the table; the
/// last is home.
::dyna::StatusOr<PlanDraft> beginPhase(const ::dyna::SwitchTable &switches,
                                       int turn, const ::dyna::CostModel &costs,
                                       const MiniBatchRequest &request);
/// Returns the plan options of a turn within rank-memory. They are the same
/// whichever samples of the request the turn gets. No sample is longer than
/// `longest`, which is at least 1.
::dyna::StatusOr<::dyna::PlanOptions>
phaseOptions(const ::dyna::SwitchTable &switches, int turn,
             const ::dyna::CostModel &costs, const MiniBatchRequest &request,
             int64_t longest);
::dyna::Status schedulePlan(PlanDraft &draft, const ::dyna::CostModel &costs);
::dyna::Status orderPlan(PlanDraft &draft, const ::dyna::CostModel &costs);

/// Reads `op` as a draft, and checks P1 and P2 of it. A complete plan becomes a
/// draft with the options that its programs show, no memory limit, and the
/// default schedule of a binary. A diagnostic reports errors.
FailureOr<PlanDraft> readDraft(exec::PlanOp op, const ::dyna::Model &model);

/// Adds graph and plan. The plan is a draft unless it `isComplete`.
FailureOr<exec::PlanOp> addPlan(ModuleOp module, const ::dyna::Model &model,
                                PlanDraft draft, bool isComplete);
/// Adds a verified graph, named after its strategy.
FailureOr<exec::GraphOp> addGraph(ModuleOp module, const ::dyna::Model &model,
                                  const ::dyna::ExecutableGraph &graph);
/// Adds the plan of an existing graph.
FailureOr<exec::PlanOp> addPlanOf(exec::GraphOp graphOp, PlanDraft draft,
                                  bool isComplete);
/// Replaces `op` by the plan. `op` is erased even on failure.
FailureOr<exec::PlanOp> replacePlan(exec::PlanOp op, PlanDraft draft,
                                    bool isComplete);

/// Returns the module's orchestration; null if it has none.
exec::OrchestrationOp findOrchestration(ModuleOp module);

/// Emits an error at `op`. The text may come from outside.
LogicalResult refuse(Operation *op, const ::dyna::Status &status);
/// Emits the notes as remarks.
void sayNotes(Operation *op, const std::vector<std::string> &notes);

} // namespace mlir::dyna

#endif // DYNA_PASSES_PLAN_PLANSTEPS_H
