//===- Orchestrate.cpp - Plans the switches between graphs ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/Orchestrate.h"
#include "dialects/exec/SwitchTranslation.h"
#include "passes/distribute/deduce/TensorDegree.h"
#include "passes/orchestrate/Passes.h"
#include "passes/plan/StepPhases.h"
#include "runtime/base/text/Text.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "runtime/planner/request/LengthRanges.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_ORCHESTRATE
#include "passes/orchestrate/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

using ::dyna::formatText;
using ::dyna::Status;
using ::dyna::StatusOr;

namespace {

/// Graphs in the order of their ranges, and what was found for them.
struct Decision {
  ::dyna::LengthRanges ranges;
  std::vector<std::unique_ptr<::dyna::ExecutableGraph>> graphs;
  ::dyna::Orchestration orchestration;
};

struct Orchestrate : mlir::dyna::impl::OrchestrateBase<Orchestrate> {
  using OrchestrateBase::OrchestrateBase;

  void runOnOperation() override {
    if (failed(orchestrate()))
      signalPassFailure();
  }

private:
  LogicalResult orchestrate() {
    ModuleOp module = getOperation();
    if (exec::OrchestrationOp other = findOrchestration(module))
      return other.emitOpError("is there already: --dyna-orchestrate makes the "
                               "only one of a module");
    FailureOr<::dyna::Model> model = modelOf(module);
    if (failed(model))
      return failure();
    auto decided = decide(*model);
    if (!decided.isOk())
      return refuse(module, decided.status());
    emitRemark(module.getLoc()) << describe(*decided);
    return write(*model, *decided);
  }

  StatusOr<Decision> decide(const ::dyna::Model &model) {
    DYNA_ASSIGN_OR_RETURN(auto costModel, openCosts(model, costs, cluster));
    DYNA_ASSIGN_OR_RETURN(auto given, strategiesOf(strategies));
    Decision decision;
    DYNA_ASSIGN_OR_RETURN(decision.ranges, readRanges(given));
    std::vector<const ::dyna::ExecutableGraph *> graphs;
    for (const ::dyna::LengthRange &range : decision.ranges.ranges()) {
      DYNA_ASSIGN_OR_RETURN(
          auto cut, ::dyna::chooseLayers(costModel, given[range.strategy]));
      DYNA_ASSIGN_OR_RETURN(auto graph, placeStrategy(model, cut.strategy));
      decision.graphs.push_back(
          std::make_unique<::dyna::ExecutableGraph>(std::move(graph)));
      graphs.push_back(decision.graphs.back().get());
    }
    ::dyna::OrchestrateOptions options;
    options.searchOrder = searchOrder;
    options.home = decision.ranges.home();
    DYNA_ASSIGN_OR_RETURN(
        decision.orchestration,
        ::dyna::orchestrate(graphs,
                            ::dyna::switchMaker(::dyna::networkOf(
                                costModel.cluster(), graphs.front()->ranks())),
                            options));
    return decision;
  }

  StatusOr<::dyna::LengthRanges>
  readRanges(std::vector<::dyna::Strategy> &given) {
    std::vector<std::string> names;
    for (::dyna::Strategy &strategy : given) {
      if (strategy.name.empty()) // a single strategy has no name
        strategy.name = "strategy";
      names.push_back(strategy.name);
    }
    if (!ranges.empty())
      return ::dyna::parseLengthRanges(ranges, names);
    if (names.size() == 1)
      return ::dyna::parseLengthRanges(names[0] + ": 0-", names);
    return Status::invalidArgument(
        "ranges expects the lengths that each strategy has, such as " +
        names[0] + ": 0-1024; " + names[1] + ": 1025-");
  }

  static std::string describe(const Decision &decision) {
    const ::dyna::Orchestration &made = decision.orchestration;
    const std::string switches =
        made.order.size() == 1
            ? std::string("nothing switches in a step of one phase")
            : formatText(
                  "the switches of a step with all %d phases take %.3g s",
                  made.order.size(), made.switchSeconds(made.order));
    return formatText(
        "home is '%s', the fullest rank holds %s of parameters and their "
        "state, and %s",
        decision.ranges.ranges()[made.home()].name,
        ::dyna::formatBytes(*std::max_element(made.parameterBytes.begin(),
                                              made.parameterBytes.end())),
        switches);
  }

  LogicalResult write(const ::dyna::Model &model, const Decision &decision) {
    ModuleOp module = getOperation();
    std::vector<std::string> names(decision.graphs.size());
    for (int turn : decision.orchestration.order) {
      FailureOr<exec::GraphOp> graph =
          addGraph(module, model, *decision.graphs[turn]);
      if (failed(graph))
        return failure();
      names[turn] = graph->getSymName().str();
    }
    writeTurns(decision, names);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    const ::dyna::SwitchTable &table = decision.orchestration.switches;
    auto add = [&](const ::dyna::GraphSwitch &made, exec::Moved moved,
                   int graph, int behind) {
      exec::importSwitch(builder, module.getLoc(),
                         {moved, names[graph],
                          behind < 0 ? StringRef() : StringRef(names[behind]),
                          names[table.home()]},
                         model, made.tensors, made.plan);
      ++numSwitches;
    };
    for (int graph : decision.orchestration.order) {
      if (graph == table.home())
        continue;
      add(table.values(-1, graph), exec::Moved::Values, graph, -1);
      for (int behind : decision.orchestration.order)
        if (behind != graph && behind != table.home())
          add(table.values(behind, graph), exec::Moved::Values, graph, behind);
      add(table.gradients(graph), exec::Moved::Gradients, graph, -1);
    }
    return success();
  }

  void writeTurns(const Decision &decision,
                  const std::vector<std::string> &names) {
    ModuleOp module = getOperation();
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto op = exec::OrchestrationOp::create(
        builder, module.getLoc(),
        StringRef(names[decision.orchestration.home()]));
    builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
    for (int turn : decision.orchestration.order) {
      const ::dyna::LengthRange &range = decision.ranges.ranges()[turn];
      auto made = exec::TurnOp::create(
          builder, module.getLoc(),
          FlatSymbolRefAttr::get(builder.getContext(), names[turn]),
          builder.getI64IntegerAttr(range.first), IntegerAttr());
      if (!range.isOpen())
        made.setLast(range.last);
    }
  }
};

} // namespace
