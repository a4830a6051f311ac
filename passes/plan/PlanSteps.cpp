//===- PlanSteps.cpp - Makes a plan in steps, each a pass -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/PlanSteps.h"

#include "dialects/exec/SwitchTranslation.h"
#include "passes/plan/Orchestrated.h"
#include "runtime/base/text/ParseBytes.h"
#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/graph/RankMemory.h"
#include "runtime/planner/place/PlacePhases.h"

#include <numeric>

using namespace mlir;
using namespace mlir::dyna;

namespace plan = ::dyna::plan;
using ::dyna::Status;

LogicalResult mlir::dyna::refuse(Operation *op, const Status &status) {
  // Names in files of costs may have any text.
  return op->emitError(::dyna::printable(status.message()));
}

void mlir::dyna::sayNotes(Operation *op,
                          const std::vector<std::string> &notes) {
  for (const std::string &note : notes)
    emitRemark(op->getLoc()) << ::dyna::printable(note);
}

int64_t mlir::dyna::bytesOf(const std::string &text) {
  return text.empty() ? 0 : *::dyna::parseBytes(text);
}

::dyna::StatusOr<::dyna::CostModel>
mlir::dyna::openCosts(const ::dyna::Model &model, const std::string &costs,
                      const std::string &cluster) {
  if (cluster.empty())
    return ::dyna::CostModel::open(model, costs);
  if (!costs.empty())
    return Status::invalidArgument(
        "costs and cluster both say what things take: give one");
  DYNA_ASSIGN_OR_RETURN(auto table, ::dyna::CostTable::described(cluster));
  return ::dyna::CostModel::create(model, std::move(table));
}

FailureOr<PlanInputs> mlir::dyna::openInputs(ModuleOp module,
                                             const WordOptions &words) {
  auto asked = words.read();
  if (!asked.isOk())
    return refuse(module, asked.status());
  FailureOr<::dyna::Model> read = modelOf(module);
  if (failed(read))
    return failure();
  auto model = std::make_unique<const ::dyna::Model>(*std::move(read));
  auto costs = openCosts(*model, asked->costs, asked->cluster);
  if (!costs.isOk())
    return refuse(module, costs.status());
  return PlanInputs{*std::move(asked), std::move(model), *std::move(costs)};
}

//===----------------------------------------------------------------------===//
// Micro-batches
//===----------------------------------------------------------------------===//

Status mlir::dyna::checkRequest(const MiniBatchRequest &request) {
  if (request.targetTokens != -1 && request.targetTokens < 1)
    return Status::invalidArgument(::dyna::formatText(
        "target-tokens expects at least 1, or -1 for all tokens, but got %d",
        request.targetTokens));
  if (request.evaluate && request.words.splitBackward)
    return Status::invalidArgument(
        "split-backward says how gradients are made, but with evaluate there "
        "are none: give one of them");
  if (request.lengths.empty())
    return Status::invalidArgument(
        "lengths expects the tokens of each sample, such as 30,5,40");
  for (int64_t length : request.lengths)
    if (length <= 0 || length > ::dyna::maxMicroBatchTokens)
      return Status::invalidArgument(
          "lengths expects samples of 1 to " +
          std::to_string(::dyna::maxMicroBatchTokens) + " tokens, but got " +
          std::to_string(length));
  return Status::ok();
}

static int64_t tokensOf(const MiniBatchRequest &request) {
  return std::accumulate(request.lengths.begin(), request.lengths.end(),
                         int64_t(0));
}

static ::dyna::PlanRequest policyRequest(::dyna::Strategy strategy,
                                         const MiniBatchRequest &asked) {
  ::dyna::PlanRequest request;
  static_cast<::dyna::RequestWords &>(request) = asked.words;
  request.strategy = std::move(strategy);
  if (request.tokensPerBatch == 0)
    request.tokensPerBatch = std::max<int64_t>(tokensOf(asked), 1);
  for (int64_t length : asked.lengths)
    request.longestSample = std::max(request.longestSample, length);
  return request;
}

static Status checkPositions(const ::dyna::Model &model,
                             const std::vector<int64_t> &lengths) {
  const int64_t positions = model.manifest().facts().positions();
  for (int64_t length : lengths)
    if (positions > 0 && length > positions)
      return Status::invalidArgument(
          "lengths expects samples of 1 to " + std::to_string(positions) +
          " tokens, as many as the model has positions, but got " +
          std::to_string(length));
  return Status::ok();
}

/// Returns the draft's options, with micro-batches no larger than its own.
static ::dyna::PlanOptions ownOptions(const PlanDraft &draft) {
  ::dyna::PlanOptions own = draft.options;
  int64_t largest = 1;
  for (const plan::MicroBatch &microBatch : draft.plan.microBatches)
    largest = std::max(largest, ::dyna::loadOf(microBatch).queries);
  own.maxTokensPerMicroBatch = std::min(own.maxTokensPerMicroBatch, largest);
  own.longestSample = std::min(own.longestSample, largest);
  return own;
}

/// Returns the tensors that a graph has on its ranks while plans run.
static ::dyna::Persistent persistentOf(bool isHome, bool evaluate) {
  return isHome ? (evaluate ? ::dyna::Persistent::Masters
                            : ::dyna::Persistent::Training)
                : (evaluate ? ::dyna::Persistent::Values
                            : ::dyna::Persistent::Gradients);
}

/// Returns the largest number of bytes of a rank beside a graph's own
/// parameters and micro-batches. These are home's tensors, unless the graph is
/// home, and the rest of the phase before. The last graph is home. Plans are
/// made for phases that take no turns (PlacePhases.h).
static int64_t countBeside(const ::dyna::SwitchTable &switches, int turn,
                           bool evaluate) {
  std::vector<int> order(switches.graphs());
  std::iota(order.begin(), order.end(), 0);
  const int home = switches.home();
  int64_t most = 0;
  for (int rank = 0; rank < switches.graph(home).ranks(); ++rank) {
    int64_t bytes = ::dyna::heldBeside(switches, order, turn, rank, !evaluate,
                                       /*takesTurns=*/false);
    if (turn != home) {
      auto held = [&](int graph) {
        return ::dyna::persistentLayout(switches.graph(graph).rankView(rank),
                                        persistentOf(graph == home, evaluate))
            .bytes;
      };
      bytes += held(home) - held(turn);
    }
    most = std::max(most, bytes);
  }
  return most;
}

/// Returns the draft's options within the memory limit.
static ::dyna::StatusOr<::dyna::PlanOptions>
limitOptions(const PlanDraft &draft, const ::dyna::Planner &planner) {
  ::dyna::PlanOptions limited = draft.options;
  if (draft.rankMemory == 0)
    return limited;
  auto sizeRegions = [&] {
    return ::dyna::sizeDynamicRegions(
        planner, limited, persistentOf(!draft.options.switched, draft.evaluate),
        std::max<int64_t>(draft.rankMemory - draft.heldBeside, 0));
  };
  auto regions = sizeRegions();
  // Micro-batches that the draft already has may be smaller than the limit.
  if (regions.status().code() == ::dyna::StatusCode::ResourceExhausted &&
      !draft.plan.microBatches.empty()) {
    limited = ownOptions(draft);
    regions = sizeRegions();
  }
  if (!regions.isOk() && draft.isPhase)
    return Status(regions.status().code(),
                  ::dyna::formatText("strategy '%s', beside %s that other "
                                     "graphs hold: %s",
                                     draft.graph.name(),
                                     ::dyna::formatBytes(draft.heldBeside),
                                     regions.status().message()));
  DYNA_RETURN_IF_ERROR(regions.status());
  limited.dynamicLimits = std::move(regions->bytes);
  return limited;
}

/// Chooses the options of a draft, which has its graph and kind, by a policy
/// for `asked`. Micro-batches whose size is open are no larger than rank-memory
/// has room for, as in a run (limitMicroBatches).
static Status chooseOptions(PlanDraft &draft, ::dyna::Policy policy,
                            const ::dyna::Planner &planner,
                            ::dyna::PlanRequest asked,
                            const MiniBatchRequest &request) {
  const bool isSwitched = draft.options.switched;
  auto take = [&](::dyna::Policy taken) {
    draft.options = std::move(taken.options);
    draft.options.switched = isSwitched;
    llvm::append_range(draft.notes, taken.notes);
  };
  draft.evaluate = request.evaluate;
  draft.rankMemory = bytesOf(request.words.rankMemory);
  take(std::move(policy));
  if (draft.rankMemory == 0)
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(
      auto limited,
      ::dyna::limitPolicy(planner, std::move(asked), draft.options,
                          persistentOf(!isSwitched, draft.evaluate),
                          draft.rankMemory, draft.heldBeside, "rank-memory"));
  if (limited)
    take(std::move(*limited));
  return Status::ok();
}

/// Cuts micro-batches. `draft` has its graph and kind.
static ::dyna::StatusOr<PlanDraft>
cutDraft(PlanDraft draft, ::dyna::Policy policy, ::dyna::PlanRequest asked,
         const ::dyna::CostModel &costs, const MiniBatchRequest &request) {
  ::dyna::Planner planner(draft.graph, costs);
  DYNA_RETURN_IF_ERROR(chooseOptions(draft, std::move(policy), planner,
                                     std::move(asked), request));
  const ::dyna::Model &model = draft.graph.model();
  std::vector<int64_t> samples = request.lengths;
  if (!draft.evaluate)
    samples = ::dyna::joinedLengths(model, samples, draft.options);
  DYNA_RETURN_IF_ERROR(checkPositions(model, request.lengths));
  DYNA_ASSIGN_OR_RETURN(auto limited, limitOptions(draft, planner));
  DYNA_ASSIGN_OR_RETURN(draft.plan, planner.cut(samples,
                                                request.targetTokens >= 0
                                                    ? request.targetTokens
                                                    : tokensOf(request),
                                                limited, !draft.evaluate));
  draft.plan.lengths = std::move(samples);
  return draft;
}

::dyna::StatusOr<PlanDraft>
mlir::dyna::beginPlan(const ::dyna::Model &model,
                      const ::dyna::CostModel &costs,
                      const MiniBatchRequest &request) {
  DYNA_RETURN_IF_ERROR(checkRequest(request));
  const std::string &text = request.words.strategy;
  ::dyna::Strategy strategy;
  if (!text.empty()) {
    DYNA_ASSIGN_OR_RETURN(strategy, ::dyna::parseStrategy(text));
  }
  ::dyna::PlanRequest asked = policyRequest(std::move(strategy), request);
  DYNA_ASSIGN_OR_RETURN(auto policy, choosePolicy(costs, asked));
  if (std::string note = costs.describeOtherType(); !note.empty())
    policy.notes.push_back(std::move(note));
  DYNA_ASSIGN_OR_RETURN(auto graph, placeStrategy(model, policy.strategy));
  return cutDraft({std::move(graph)}, std::move(policy), std::move(asked),
                  costs, request);
}

static PlanDraft draftOf(const ::dyna::SwitchTable &switches, int turn,
                         bool evaluate) {
  PlanDraft draft = {switches.graph(turn)};
  draft.isPhase = true;
  draft.heldBeside = countBeside(switches, turn, evaluate);
  draft.options.switched = turn != switches.home();
  return draft;
}

::dyna::StatusOr<PlanDraft>
mlir::dyna::beginPhase(const ::dyna::SwitchTable &switches, int turn,
                       const ::dyna::CostModel &costs,
                       const MiniBatchRequest &request) {
  ::dyna::PlanRequest asked =
      policyRequest(switches.graph(turn).strategy(), request);
  DYNA_ASSIGN_OR_RETURN(auto policy, choosePolicy(costs, asked));
  return cutDraft(draftOf(switches, turn, request.evaluate), std::move(policy),
                  std::move(asked), costs, request);
}

::dyna::StatusOr<::dyna::PlanOptions>
mlir::dyna::phaseOptions(const ::dyna::SwitchTable &switches, int turn,
                         const ::dyna::CostModel &costs,
                         const MiniBatchRequest &request, int64_t longest) {
  MiniBatchRequest own = request;
  if (own.words.tokensPerBatch == 0)
    own.words.tokensPerBatch = std::max<int64_t>(tokensOf(request), 1);
  own.lengths = {longest};
  ::dyna::PlanRequest asked =
      policyRequest(switches.graph(turn).strategy(), own);
  DYNA_ASSIGN_OR_RETURN(auto policy, choosePolicy(costs, asked));
  PlanDraft draft = draftOf(switches, turn, request.evaluate);
  ::dyna::Planner planner(draft.graph, costs);
  DYNA_RETURN_IF_ERROR(chooseOptions(draft, std::move(policy), planner,
                                     std::move(asked), request));
  return limitOptions(draft, planner);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

Status mlir::dyna::schedulePlan(PlanDraft &draft,
                                const ::dyna::CostModel &costs) {
  ::dyna::Planner planner(draft.graph, costs);
  DYNA_ASSIGN_OR_RETURN(auto limited, limitOptions(draft, planner));
  DYNA_ASSIGN_OR_RETURN(draft.plan, planner.schedule(std::move(draft.plan),
                                                     limited, !draft.evaluate));
  const std::string &fallback = draft.plan.fallback;
  const bool isSequential =
      fallback == ::dyna::ruleOf(::dyna::Schedule::Sequential).name;
  const bool isFaster =
      ::dyna::ruleOf(limited.schedule).adapts && !isSequential;
  if (!fallback.empty())
    draft.notes.push_back(
        "the schedule is '" + fallback +
        (isFaster ? "', as no order was found that is faster and fits"
                  : "', as what was asked for does not fit rank-memory"));
  return Status::ok();
}

Status mlir::dyna::orderPlan(PlanDraft &draft, const ::dyna::CostModel &costs) {
  // In an evaluation the phase of home has no program if it has no samples.
  if (draft.evaluate && draft.plan.microBatches.empty())
    return Status::ok();
  ::dyna::Planner planner(draft.graph, costs);
  DYNA_ASSIGN_OR_RETURN(auto limited, limitOptions(draft, planner));
  DYNA_ASSIGN_OR_RETURN(draft.plan,
                        planner.orderCommunication(draft.plan, limited));
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Between C++ and the module
//===----------------------------------------------------------------------===//

static exec::DraftAttr draftAttrOf(MLIRContext *context,
                                   const PlanDraft &draft) {
  const ::dyna::PlanOptions &options = draft.options;
  return exec::DraftAttr::get(
      context, ::dyna::ruleOf(options.schedule).name, options.inFlight,
      options.maxTokensPerMicroBatch,
      options.chooseRecompute ? ::dyna::chooseRecomputeWord
                              : ::dyna::describeRecompute(options.recompute),
      options.splitBackward, draft.evaluate, draft.rankMemory,
      options.mostTokens() > options.maxTokensPerMicroBatch
          ? options.longestSample
          : 0,
      ::dyna::describeSlices(options.slices));
}

/// Reads options from the attribute.
static Status takeOptions(PlanDraft &draft, exec::DraftAttr attr) {
  ::dyna::PlanOptions &options = draft.options;
  DYNA_ASSIGN_OR_RETURN(options.schedule,
                        ::dyna::findSchedule(attr.getSchedule().str()));
  options.inFlight = static_cast<int>(attr.getInFlight());
  options.maxTokensPerMicroBatch = attr.getTokensPerMicroBatch();
  options.longestSample = attr.getLongestSample();
  options.splitBackward = attr.getSplitBackward();
  if (!attr.getSlices().empty()) {
    DYNA_ASSIGN_OR_RETURN(options.slices,
                          ::dyna::parseSlices(attr.getSlices().str()));
  }
  draft.evaluate = attr.getEvaluate();
  draft.rankMemory = attr.getRankMemory();
  options.chooseRecompute = attr.getRecompute() == ::dyna::chooseRecomputeWord;
  if (options.chooseRecompute)
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(options.recompute,
                        ::dyna::parseRecompute(attr.getRecompute().str(),
                                               draft.graph.model().layers()));
  return Status::ok();
}

/// Reads options from the programs of a complete plan.
static Status takePrograms(PlanDraft &draft) {
  ::dyna::PlanOptions &options = draft.options;
  options.schedule = draft.graph.stages() > 1
                         ? ::dyna::defaultSchedule(draft.graph.stages())
                         : ::dyna::Schedule::GPipe;
  options.maxTokensPerMicroBatch = 1;
  for (const plan::MicroBatch &microBatch : draft.plan.microBatches) {
    int64_t tokens = 0;
    for (const plan::Segment &segment : microBatch.segments)
      tokens += segment.length;
    options.maxTokensPerMicroBatch =
        std::max(options.maxTokensPerMicroBatch, tokens);
  }
  options.update = false;
  for (const plan::RankProgram &program : draft.plan.ranks)
    for (const plan::Instruction &i : program.instructions)
      options.update |= i.op == plan::Instruction::UPDATE;
  if (draft.plan.microBatches.empty() && !draft.isPhase)
    return Status::invalidArgument(
        "the plan has no micro-batches whose communication could be ordered");
  draft.evaluate = draft.plan.microBatches.empty() && !options.update;
  return Status::ok();
}

exec::OrchestrationOp mlir::dyna::findOrchestration(ModuleOp module) {
  auto all = module.getOps<exec::OrchestrationOp>();
  return all.empty() ? exec::OrchestrationOp() : *all.begin();
}

/// Reads the phase of a plan that a step names from the module's orchestration.
static LogicalResult takePhase(exec::PlanOp op, const ::dyna::Model &model,
                               PlanDraft &draft) {
  exec::OrchestrationOp orchestration =
      findOrchestration(op->getParentOfType<ModuleOp>());
  if (!orchestration)
    return op.emitOpError("is a phase of a step, but the module has no "
                          "exec.orchestration, which says what is home");
  draft.isPhase = true;
  draft.options.switched = orchestration.getHomeAttr() != op.getGraphAttr();
  FailureOr<Orchestrated> orchestrated =
      readOrchestration(orchestration, model);
  if (failed(orchestrated))
    return failure();
  const auto turn =
      llvm::find_if(orchestrated->turns, [&](const Orchestrated::Turn &turn) {
        return exec::GraphOp(turn.op).getSymNameAttr() ==
               op.getGraphAttr().getAttr();
      });
  if (turn == orchestrated->turns.end())
    return op.emitOpError() << "is a phase of a step, but " << op.getGraphAttr()
                            << " has no turn in the exec.orchestration";
  const bool evaluate = op.isDraft() && op.getDraftAttr().getEvaluate();
  draft.heldBeside = countBeside(
      orchestrated->switches,
      static_cast<int>(turn - orchestrated->turns.begin()), evaluate);
  return success();
}

FailureOr<PlanDraft> mlir::dyna::readDraft(exec::PlanOp op,
                                           const ::dyna::Model &model) {
  if (!op.getGraphAttr())
    return op.emitOpError("names no graph: write `of @graph` behind its name");
  auto graphOp = SymbolTable::lookupNearestSymbolFrom<exec::GraphOp>(
      op, op.getGraphAttr());
  if (failed(verifyExecutable(graphOp, model)))
    return failure();
  auto graph = placeStrategy(model, exec::strategyOf(graphOp));
  if (!graph.isOk())
    return graphOp.emitOpError() << graph.status().message();
  PlanDraft draft = {std::move(*graph)};
  if (exec::findPhase(op) && failed(takePhase(op, model, draft)))
    return failure();
  draft.plan = exec::exportPlan(op);
  if (!op.hasPrograms())
    draft.plan.ranks.resize(draft.graph.ranks());
  ::dyna::VerifyOptions verify;
  verify.isPhase = draft.isPhase;
  Status status =
      ::dyna::verifyRanks(draft.graph, draft.plan, {}, lengthsOf(op), verify);
  if (status.isOk())
    status = op.isDraft() ? takeOptions(draft, op.getDraftAttr())
                          : takePrograms(draft);
  if (!status.isOk())
    return refuse(op, status);
  return draft;
}

/// Imports a plan without its graph.
static FailureOr<exec::PlanOp> importPlan(OpBuilder &builder, Location location,
                                          PlanDraft &draft, bool isComplete) {
  bool hasPrograms = llvm::any_of(draft.plan.ranks, [](const auto &program) {
    return program.count() > 0;
  });
  if (!isComplete && !hasPrograms)
    draft.plan.ranks.clear();
  FailureOr<exec::PlanOp> op = exec::importPlan(builder, location, draft.plan);
  if (succeeded(op) && !isComplete)
    op->setDraftAttr(draftAttrOf(builder.getContext(), draft));
  return op;
}

FailureOr<exec::GraphOp>
mlir::dyna::addGraph(ModuleOp module, const ::dyna::Model &model,
                     const ::dyna::ExecutableGraph &graph) {
  SymbolTable symbols(module);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  std::string name = graph.strategy().name;
  if (name.empty())
    name = "strategy";
  exec::GraphOp op = exec::importGraph(builder, module.getLoc(), name, graph);
  symbols.insert(op);
  if (failed(verifyExecutable(op, model)))
    return failure();
  return op;
}

FailureOr<exec::PlanOp>
mlir::dyna::addPlanOf(exec::GraphOp graphOp, PlanDraft draft, bool isComplete) {
  auto module = graphOp->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  draft.plan.name = (graphOp.getSymName() + ".plan").str();
  FailureOr<exec::PlanOp> op =
      importPlan(builder, module.getLoc(), draft, isComplete);
  if (failed(op) || failed(exec::setGraph(*op, graphOp)))
    return failure();
  symbols.insert(*op);
  return op;
}

FailureOr<exec::PlanOp> mlir::dyna::addPlan(ModuleOp module,
                                            const ::dyna::Model &model,
                                            PlanDraft draft, bool isComplete) {
  FailureOr<exec::GraphOp> graphOp = addGraph(module, model, draft.graph);
  if (failed(graphOp))
    return failure();
  return addPlanOf(*graphOp, std::move(draft), isComplete);
}

FailureOr<exec::PlanOp>
mlir::dyna::replacePlan(exec::PlanOp op, PlanDraft draft, bool isComplete) {
  auto graphOp = SymbolTable::lookupNearestSymbolFrom<exec::GraphOp>(
      op, op.getGraphAttr());
  OpBuilder builder(op);
  FailureOr<exec::PlanOp> made =
      importPlan(builder, op.getLoc(), draft, isComplete);
  if (succeeded(made) && op.getSymVisibilityAttr())
    made->setSymVisibilityAttr(op.getSymVisibilityAttr());
  op.erase();
  if (failed(made) || failed(exec::setGraph(*made, graphOp)))
    return failure();
  return made;
}
