//===- Passes.td - The orchestrate phase ------------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_ORCHESTRATE_PASSES_TD
#define DYNA_PASSES_ORCHESTRATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def Orchestrate : Pass<"dyna-orchestrate", "::mlir::ModuleOp"> {
  let summary = "Adds the graphs of several strategies, says which is home, and plans the switches between them.";
  let description = [{
    The input is a module behind the memory phase, distributed for the strategies. The pass adds
    (`runtime/planner/step/Orchestrate.h`, `PlanSwitch.h`):

    - an `exec.graph` for each strategy that has a range of lengths;
    - an `exec.orchestration` with home and the order of the graphs;
    - an `exec.switch_plan` for each possible switch. Values go to each graph but home, from home
      alone or also from any other graph with an earlier phase. Gradients of each graph go home.

    A remark states what the fullest rank holds, and the expected duration of the switches of a step
    with all phases.

    Behind this pass `dyna-plan`, or the passes that it consists of, plan steps of several graphs.
    Ranges decide the graph of each sample of a mini-batch. A single strategy is home without any
    switch, and its steps are those of `dyna-plan` without this pass. Everything else is left alone.
    Quadratic in the number of strategies.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [
    Option<"strategies", "strategies", "std::string", "\"\"",
           "Several strategies as name: ...; name: ..., such as s: dp=4; l: tp=2,pp=2">,
    Option<"ranges", "ranges", "std::string", "\"\"",
           "Range of lengths of each strategy, such as s: 0-64; l: 65-. home=l behind them names the strategy that updates. Empty: all lengths, for a single strategy">,
    Option<"costs", "costs", "std::string", "\"\"",
           "File with costs of layers and links (runtime/cost/Costs.proto), for cutting stages and planning switches; empty: estimated">,
    Option<"cluster", "cluster", "std::string", "\"\"",
           "Described devices for the same, and nodes x devices of each, such as a800-80g:4x8. Empty, and without costs: ranks of this machine, all on one node">,
    Option<"searchOrder", "search-order", "bool", "false",
           "Order the graphs by the time of their switches, not as the ranges are written">];
  let statistics = [Statistic<"numSwitches", "switches", "Switch plans made">];
}

#endif // DYNA_PASSES_ORCHESTRATE_PASSES_TD
