//===- Passes.td - The orchestrate phase ------------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_ORCHESTRATE_PASSES_TD
#define DYNA_PASSES_ORCHESTRATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def Orchestrate : Pass<"dyna-orchestrate", "::mlir::ModuleOp"> {
  let summary = "Adds the graphs of several strategies, says which is home, and plans the switches between them.";
  let description = [{
    Takes a module behind the memory phase, distributed for the strategies. Adds an `exec.graph`
    for each that has a range of lengths, an `exec.orchestration` with home and the order of their turns, and
    an `exec.switch_plan` for everything that may have to move: values to each graph but home, from
    home alone or also from any other whose phase was before, and the gradients of each home
    (`runtime/planner/step/Orchestrate.h`, `PlanSwitch.h`). A remark says what the fullest rank holds and
    how long the switches of a step with all phases are expected to take.

    Behind it `dyna-plan`, or the passes that it consists of, plan steps of several graphs: the samples of
    a mini-batch go by the ranges. One strategy is home without any switch, and its steps are those of `dyna-plan` without
    this pass. Everything else is left alone. Quadratic in the number of strategies.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [
    Option<"strategies", "strategies", "std::string", "\"\"",
           "Several as name: ...; name: ..., such as s: dp=4; l: tp=2,pp=2">,
    Option<"ranges", "ranges", "std::string", "\"\"",
           "Tokens of the samples that each has, such as s: 0-64; l: 65-, with home=l behind them to say which makes the update; empty: all, where there is one strategy">,
    Option<"costs", "costs", "std::string", "\"\"",
           "File of what layers and links take (runtime/cost/Costs.proto), to cut stages and plan switches by; empty: estimated">,
    Option<"cluster", "cluster", "std::string", "\"\"",
           "Described devices to do the same by, and nodes x devices of each, such as a800-80g:4x8; empty, and without costs: ranks of this machine, all on one node">,
    Option<"searchOrder", "search-order", "bool", "false",
           "Order the turns by the time of their switches, not as the ranges are written">];
  let statistics = [Statistic<"numSwitches", "switches", "Switch plans made">];
}

#endif // DYNA_PASSES_ORCHESTRATE_PASSES_TD
