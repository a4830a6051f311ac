//===- DynaPlan.cpp - Graphs and plans from strategies --------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/exec/PlanTranslation.h"
#include "passes/plan/Passes.h"
#include "runtime/plan/Bytes.h"
#include "runtime/planner/PartitionLayers.h"
#include "runtime/planner/Planner.h"

#include <numeric>

namespace mlir::dyna {
#define GEN_PASS_DEF_DYNAPLAN
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace plan = ::dyna::plan;

namespace {

struct DynaPlan : mlir::dyna::impl::DynaPlanBase<DynaPlan> {
  using DynaPlanBase::DynaPlanBase;

  void runOnOperation() override {
    FailureOr<::dyna::ManifestView> model = viewManifest(getOperation());
    if (failed(model))
      return signalPassFailure();
    auto graph = makeGraph(*model);
    if (!graph.isOk())
      return refuse(graph.status());
    auto plan = makePlan(*graph);
    if (!plan.isOk())
      return refuse(plan.status());
    if (failed(add(*model, *graph, std::move(*plan))))
      signalPassFailure();
  }

private:
  void refuse(const ::dyna::Status &status) {
    getOperation().emitError(status.message());
    signalPassFailure();
  }

  ::dyna::StatusOr<::dyna::ExecutableGraph>
  makeGraph(const ::dyna::ManifestView &model) {
    auto parsed = ::dyna::parseStrategy(strategy);
    if (!parsed.isOk())
      return parsed.status();
    auto table = ::dyna::CostModel::open(model, costs);
    if (!table.isOk())
      return table.status();
    auto cut = ::dyna::chooseLayers(*table, *parsed);
    if (!cut.isOk())
      return cut.status();
    if (!cut->note.empty())
      emitRemark(getOperation().getLoc()) << cut->note;
    return placeStrategy(model, cut->strategy);
  }

  ::dyna::StatusOr<::dyna::PlanOptions>
  makeOptions(const ::dyna::Strategy &strategy) {
    ::dyna::PlanOptions options;
    if (schedule == "1f1b")
      options.schedule = ::dyna::Schedule::OneForwardOneBackward;
    else if (schedule != "gpipe")
      return ::dyna::Status::invalidArgument(
          "schedule expects gpipe or 1f1b, but got '" + schedule + "'");
    if (microBatch < 1 || microBatch > ::dyna::maxMicroBatchTokens)
      return ::dyna::Status::invalidArgument(
          "micro-batch expects 1 to " +
          std::to_string(::dyna::maxMicroBatchTokens) + " tokens, but got " +
          std::to_string(microBatch));
    if (inFlight < 1)
      return ::dyna::Status::invalidArgument(
          "in-flight expects at least 1 micro-batch, but got " +
          std::to_string(inFlight));
    if (targetTokens < -1 || targetTokens == 0)
      return ::dyna::Status::invalidArgument(
          "target-tokens expects at least 1, or -1 for all tokens, but got " +
          std::to_string(targetTokens));
    if (evaluate && splitBackward)
      return ::dyna::Status::invalidArgument(
          "split-backward says how gradients are made, but with evaluate there "
          "are none: give one of them");
    options.recompute = {strategy.recompute.value_or(plan::RECOMPUTE_NONE)};
    options.maxTokensPerMicroBatch = microBatch;
    options.inFlight = inFlight;
    options.splitBackward = splitBackward;
    return options;
  }

  ::dyna::StatusOr<plan::Plan> makePlan(const ::dyna::ExecutableGraph &graph) {
    auto options = makeOptions(graph.strategy());
    if (!options.isOk())
      return options.status();
    int64_t positions = graph.model().manifest().facts().positions();
    bool byModel = positions > 0 && positions < microBatch;
    int64_t longest = byModel ? positions : microBatch;
    for (int64_t length : lengths)
      if (length <= 0 || length > longest)
        return ::dyna::Status::invalidArgument(
            "lengths expects samples of 1 to " + std::to_string(longest) +
            (byModel ? " tokens, as many as the model has positions, but got "
                     : " tokens, which one micro-batch may have, but got ") +
            std::to_string(length));
    if (lengths.empty())
      return ::dyna::Status::invalidArgument(
          "lengths expects the tokens of each sample, such as 30,5,40");
    std::vector<int64_t> samples(lengths.begin(), lengths.end());
    int64_t targets =
        targetTokens >= 0
            ? targetTokens
            : std::accumulate(samples.begin(), samples.end(), int64_t(0));
    ::dyna::Planner planner(graph);
    return evaluate ? planner.evaluation(samples, targets, *options)
                    : planner.training(samples, targets, *options);
  }

  LogicalResult add(const ::dyna::ManifestView &model,
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
    plan.set_name((graphName.getValue() + ".plan").str());
    for (int64_t length : lengths)
      plan.add_lengths(length);
    FailureOr<exec::PlanOp> planOp =
        exec::importPlan(builder, module.getLoc(), plan);
    if (failed(planOp))
      return failure();
    planOp->setGraph(graphName.getValue());
    symbols.insert(*planOp);
    return success(succeeded(verifyExecutable(graphOp, model)) &&
                   succeeded(verifyPlan(*planOp, model)));
  }
};

} // namespace
