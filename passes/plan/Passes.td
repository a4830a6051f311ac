//===- Passes.td - The plan phase -------------------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_PASSES_TD
#define DYNA_PASSES_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def Plan : Pass<"dyna-plan", "::mlir::ModuleOp"> {
  let summary = "Adds the executable graph of a strategy and the plan of a mini-batch.";
  let description = [{
    Takes a module behind the memory phase. An `exec.graph` says what each rank of the
    strategy holds, an `exec.plan` what it does for samples of the given lengths; both
    are those that a training binary of this module makes for itself
    (`runtime/planner`) of the same words: what is left open here is left to the same
    policy (`Policy.h`), and what that chose is said in a remark. They are verified as by
    the passes below. Everything else is
    left alone.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [
    Option<"strategy", "strategy", "std::string", "\"dp=1\"",
           "A strategy, such as dp=2,pp=2 or a: tp=2,zero=1; its name becomes the graph's">,
    Option<"costs", "costs", "std::string", "\"\"",
           "File of what layers take (runtime/cost/Costs.proto), to cut them into stages by; empty: estimated">,
    ListOption<"lengths", "lengths", "int64_t", "Tokens of each sample of the mini-batch">,
    Option<"targetTokens", "target-tokens", "int64_t", "-1",
           "What the sum of losses is divided by; -1: all tokens">,
    Option<"tokensPerBatch", "tokens-per-batch", "int64_t", "-1",
           "What a step takes, about, to choose micro-batches by; -1: as lengths say">,
    Option<"microBatches", "micro-batches", "std::string", "\"\"",
           "What they are made of, as a binary's --micro-batches says; empty: its default">,
    Option<"tokensPerMicroBatch", "tokens-per-micro-batch", "int64_t", "-1",
           "Tokens of a micro-batch, at most; -1: chosen">,
    Option<"pipeline", "pipeline", "std::string", "\"\"",
           "Name of a schedule, as a binary's --pipeline has it; empty: its default">,
    Option<"inFlight", "in-flight", "int64_t", "-1",
           "Micro-batches in flight, where the schedule leaves it open; -1: chosen">,
    Option<"splitBackward", "split-backward", "bool", "false",
           "Gradients of weights apart from those of inputs">,
    Option<"recompute", "recompute", "std::string", "\"\"",
           "none, selective or full, one per layer, or auto: chosen by rank-memory; empty: what the strategy says, or none">,
    Option<"rankMemory", "rank-memory", "int64_t", "-1",
           "Bytes of each rank's parameters, their state and micro-batches; -1: not limited">,
    Option<"evaluate", "evaluate", "bool", "false", "Losses only">];
}

def VerifyExecutable : Pass<"dyna-verify-executable", "::mlir::ModuleOp"> {
  let summary = "Proves that every exec.graph places the module's model.";
  let description = [{
    The tensor degree of the strategy is one that the module has layers for, stages
    cover the layers of the model once and in order, every parameter that a layer uses
    is listed with a layout that fits its shape and is the one that was compiled, and
    the holders are the ranks that have it.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
}

def VerifyPlan : Pass<"dyna-verify-plan", "::mlir::ModuleOp"> {
  let summary = "Proves every exec.plan, as the runtime does.";
  let description = [{
    Calls `verifyPlan` (`runtime/plan/PlanVerifier.h`) on the message that the plan
    translates to; a failure is reported at the instruction that it names. Without
    `lengths` on the plan, samples are taken to be as long as its segments say. Which of
    their tokens are targets no plan says: `target_tokens` may be any number from 1 to all of
    them here, and is compared with the targets themselves wherever a plan is run.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [Option<"limit", "limit", "int64_t", "-1",
                        "Bytes of each rank's dynamic region, at most; -1: no limit">];
}

#endif // DYNA_PASSES_PLAN_PASSES_TD
