//===- Plan.cpp - Graphs and plans from strategies ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/exec/PlanTranslation.h"
#include "passes/plan/Passes.h"
#include "runtime/base/Printable.h"
#include "runtime/plan/Bytes.h"
#include "runtime/planner/CutMiniBatch.h"
#include "runtime/planner/Planner.h"
#include "runtime/planner/Policy.h"
#include "runtime/planner/RankMemory.h"

#include <numeric>

namespace mlir::dyna {
#define GEN_PASS_DEF_PLAN
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace plan = ::dyna::plan;

namespace {

struct Plan : mlir::dyna::impl::PlanBase<Plan> {
  using PlanBase::PlanBase;

  void runOnOperation() override {
    FailureOr<::dyna::Model> model = modelOf(getOperation());
    if (failed(model))
      return signalPassFailure();
    if (auto status = checkOptions(); !status.isOk())
      return refuse(status);
    auto costModel = ::dyna::CostModel::open(*model, costs);
    if (!costModel.isOk())
      return refuse(costModel.status());
    auto policy = makePolicy(*costModel);
    if (!policy.isOk())
      return refuse(policy.status());
    auto graph = placeStrategy(*model, policy->strategy);
    if (!graph.isOk())
      return refuse(graph.status());
    std::vector<int64_t> samples(lengths.begin(), lengths.end());
    if (!evaluate)
      samples = ::dyna::joinedLengths(*model, samples, policy->options);
    auto plan = makePlan(*graph, *costModel, policy->options, samples);
    if (!plan.isOk())
      return refuse(plan.status());
    if (!plan->fallback.empty())
      policy->notes.push_back(
          "the schedule is '" + plan->fallback +
          "', as what was asked for does not fit rank-memory");
    for (const std::string &note : policy->notes)
      emitRemark(getOperation().getLoc()) << ::dyna::printable(note);
    plan->lengths = std::move(samples);
    if (failed(add(*model, *graph, std::move(*plan))))
      signalPassFailure();
  }

private:
  /// Names in files of costs are others' text.
  void refuse(const ::dyna::Status &status) {
    getOperation().emitError(::dyna::printable(status.message()));
    signalPassFailure();
  }

  /// The option is at least 1, or -1 where it was not given.
  ::dyna::Status checkCount(const char *option, int64_t value, int64_t most,
                            const char *unit, const char *unset) {
    if (value == -1 || (value >= 1 && value <= most))
      return ::dyna::Status::ok();
    std::string range = most == INT64_MAX
                            ? std::string("at least 1")
                            : "1 to " + std::to_string(most) + unit;
    return ::dyna::Status::invalidArgument(
        std::string(option) + " expects " + range + ", or -1 for " + unset +
        ", but got " + std::to_string(value));
  }

  ::dyna::Status checkOptions() {
    using ::dyna::Status;
    constexpr const char *chosen = "what a training binary chooses";
    DYNA_RETURN_IF_ERROR(
        checkCount("target-tokens", targetTokens, INT64_MAX, "", "all tokens"));
    DYNA_RETURN_IF_ERROR(checkCount("tokens-per-batch", tokensPerBatch,
                                    ::dyna::maxTokensPerBatch, " tokens",
                                    "those of lengths"));
    DYNA_RETURN_IF_ERROR(
        checkCount("tokens-per-micro-batch", tokensPerMicroBatch,
                   ::dyna::maxMicroBatchTokens, " tokens", chosen));
    DYNA_RETURN_IF_ERROR(
        checkCount("rank-memory", rankMemory, INT64_MAX, " bytes", "no limit"));
    DYNA_RETURN_IF_ERROR(
        checkCount("in-flight", inFlight, INT32_MAX, " micro-batches", chosen));
    if (evaluate && splitBackward)
      return Status::invalidArgument(
          "split-backward says how gradients are made, but with evaluate there "
          "are none: give one of them");
    if (lengths.empty())
      return Status::invalidArgument(
          "lengths expects the tokens of each sample, such as 30,5,40");
    for (int64_t length : lengths)
      if (length <= 0 || length > ::dyna::maxMicroBatchTokens)
        return Status::invalidArgument(
            "lengths expects samples of 1 to " +
            std::to_string(::dyna::maxMicroBatchTokens) + " tokens, but got " +
            std::to_string(length));
    return Status::ok();
  }

  ::dyna::StatusOr<::dyna::Policy>
  makePolicy(const ::dyna::CostModel &costModel) {
    DYNA_ASSIGN_OR_RETURN(auto parsed, ::dyna::parseStrategy(strategy));
    ::dyna::PlanRequest request;
    request.strategy = std::move(parsed);
    request.pipeline = pipeline;
    request.microBatches = microBatches;
    request.recompute = recompute;
    request.tokensPerBatch =
        tokensPerBatch > 0 ? int64_t(tokensPerBatch) : sumOfLengths();
    request.tokensPerMicroBatch = std::max<int64_t>(tokensPerMicroBatch, 0);
    request.longestSample = *llvm::max_element(lengths);
    request.inFlight = std::max<int64_t>(inFlight, 0);
    request.splitBackward = splitBackward;
    return choosePolicy(costModel, std::move(request));
  }

  int64_t sumOfLengths() const {
    return std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
  }

  ::dyna::StatusOr<plan::Plan> makePlan(const ::dyna::ExecutableGraph &graph,
                                        const ::dyna::CostModel &costModel,
                                        const ::dyna::PlanOptions &options,
                                        const std::vector<int64_t> &samples) {
    int64_t positions = graph.model().manifest().facts().positions();
    for (int64_t length : lengths)
      if (positions > 0 && length > positions)
        return ::dyna::Status::invalidArgument(
            "lengths expects samples of 1 to " + std::to_string(positions) +
            " tokens, as many as the model has positions, but got " +
            std::to_string(length));
    int64_t targets =
        targetTokens >= 0 ? int64_t(targetTokens) : sumOfLengths();
    ::dyna::Planner planner(graph, costModel);
    ::dyna::PlanOptions limited = options;
    if (rankMemory >= 0) {
      DYNA_ASSIGN_OR_RETURN(
          auto regions,
          ::dyna::sizeDynamicRegions(planner, options,
                                     evaluate ? ::dyna::Persistent::Masters
                                              : ::dyna::Persistent::Training,
                                     rankMemory));
      limited.dynamicLimits = std::move(regions.bytes);
    }
    return evaluate ? planner.evaluation(samples, targets, limited)
                    : planner.training(samples, targets, limited);
  }

  LogicalResult add(const ::dyna::Model &model,
                    const ::dyna::ExecutableGraph &graph, plan::Plan plan) {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    std::string name = graph.strategy().name;
    if (name.empty())
      name = "strategy";
    exec::GraphOp graphOp =
        exec::importGraph(builder, module.getLoc(), name, graph);
    StringAttr graphName = symbols.insert(graphOp);
    plan.name = (graphName.getValue() + ".plan").str();
    FailureOr<exec::PlanOp> planOp =
        exec::importPlan(builder, module.getLoc(), plan);
    if (failed(planOp) || failed(exec::setGraph(*planOp, graphOp)))
      return failure();
    symbols.insert(*planOp);
    return success(succeeded(verifyExecutable(graphOp, model)) &&
                   succeeded(verifyPlan(*planOp, model)));
  }
};

} // namespace
