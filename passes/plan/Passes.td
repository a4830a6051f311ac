//===- Passes.td - The plan phase -------------------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_PLAN_PASSES_TD
#define DYNA_PASSES_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Options that several passes have
//===----------------------------------------------------------------------===//

// Planning words (runtime/planner/request/PlanningWords.h) are declared in C++, by
// WordOptions.h. Here are the options that only passes have.

/// The samples of a mini-batch, and what it is for.
defvar Plan_MiniBatch = [
    ListOption<"lengths", "lengths", "int64_t", "Tokens of each sample of the mini-batch">,
    Option<"targetTokens", "target-tokens", "int64_t", "-1",
           "Divisor of the sum of losses; -1: all tokens">,
    Option<"evaluate", "evaluate", "bool", "false", "Losses only">];

//===----------------------------------------------------------------------===//
// Passes that make plans
//===----------------------------------------------------------------------===//

def BuildMicroBatches : Pass<"dyna-build-micro-batches", "::mlir::ModuleOp"> {
  let summary = "Adds the executable graph of a strategy and the micro-batches of a mini-batch.";
  let description = [{
    Takes a module behind the memory phase. An `exec.graph` says what each rank of the strategy
    holds; an `exec.plan` that is a draft has the micro-batches that a training binary of this
    module cuts samples of the given lengths into (`Planner::cut`), and for which replica each
    is. As the cut is compared by the time that its schedule takes in the memory there is,
    schedule, recomputation and memory are asked for here; `dyna-schedule` goes by them unless it
    is told otherwise. What is left open is left to the same policy (`Policy.h`), and what
    that chose is said in a remark. Everything else is left alone.

    In a module with an `exec.orchestration` (`dyna-orchestrate`), which has strategies of its own, samples go to these by
    length and, unless `merge-ranges=never`, by what switches take (`AssignStrategies.h`). Each that has some, and home, gets a
    draft, and an `exec.step` says which samples are whose.

    Planning words, such as `pipeline` and `rank-memory`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = Plan_MiniBatch;
}

def SliceTokens : Pass<"dyna-slice-tokens", "::mlir::ModuleOp"> {
  let summary = "Cuts the micro-batches of every draft into token slices.";
  let description = [{
    Takes the drafts that `dyna-build-micro-batches` left, with micro-batches of whole samples. Each
    micro-batch becomes the micro-batches of its slices, for the same replica (`Planner::slice`). `slices` is as of a
    training binary: a number of equal slices, tokens of each slice, or `auto`, which slices if the complete plan
    is faster then, within the memory of the draft. Drafts with programs, and complete plans, are left alone. If there is
    nothing else, that is an error.

    Planning words, such as `slices` and `costs`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
}

def Schedule : Pass<"dyna-schedule", "::mlir::ModuleOp"> {
  let summary = "Gives every draft of micro-batches the order in which its ranks compute.";
  let description = [{
    Takes the drafts that `dyna-build-micro-batches` left, their micro-batches perhaps changed by
    hand. Each rank gets a program that loads micro-batches and calls layer functions
    (`Planner::schedule`): in the order of the schedule, with what it computes again, and no
    messages, exchanges, updates or places yet. Whether an order fits the memory is a matter of the
    complete plan, which is made for that and dropped. Without options, schedule, memory and
    the rest are those that the micro-batches were cut for. Complete plans are left alone.

    Planning words, such as `pipeline` and `rank-memory`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [
    Option<"report", "report", "bool", "false",
           "Say in a remark for each replica what its pipeline is expected to take, its safety stock, and how many micro-batches its stages hold">];
}

def OrderCommunication : Pass<"dyna-order-communication", "::mlir::ModuleOp"> {
  let summary = "Completes every scheduled draft with all that its ranks exchange.";
  let description = [{
    Takes the drafts that `dyna-schedule` left, their programs perhaps changed by hand, and keeps the
    order in which ranks compute (`Planner::orderCommunication`). Both ends of a message start it when
    its tensor is expected to be there, and wait as late as they can (DynaPipe, section 6);
    gradients are reduced, parameters gathered and updated, and every block gets its place. The
    complete plan is proven as by `dyna-verify-plan`. Plans of phases then get the switches of their step, which is
    proven as a whole (not with `naive`).

    Where the module has no draft, complete plans are taken instead, whatever made them: their
    communication is dropped and ordered anew, by the rules of `pipeline`.

    Planning words, such as `pipeline` and `rank-memory`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [
    Option<"naive", "naive", "bool", "false",
           "Send behind what makes a tensor and receive before what needs it, not proven: to see why that is not enough">];
}

def Plan : Pass<"dyna-plan", "::mlir::ModuleOp"> {
  let summary = "Adds the executable graph of a strategy and the plan of a mini-batch.";
  let description = [{
    Does what `dyna-build-micro-batches`, `dyna-schedule` and `dyna-order-communication` do one
    after another. An `exec.graph` says what each rank of the
    strategy holds, an `exec.plan` what it does for samples of the given lengths; both
    are those that a training binary of this module makes for itself
    (`runtime/planner`) of the same words: what is left open here is left to the same
    policy (`Policy.h`), and what that chose is said in a remark. They are verified as by
    the passes below. Everything else is
    left alone. Behind `dyna-orchestrate` it makes the plan of every phase, with the switches between them, and an
    `exec.step`.

    Planning words, such as `pipeline` and `rank-memory`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = Plan_MiniBatch;
}

//===----------------------------------------------------------------------===//
// Passes that prove them
//===----------------------------------------------------------------------===//

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
  let summary = "Proves every exec.plan and exec.step, as the runtime does.";
  let description = [{
    Calls `verifyPlan` (`runtime/plan/verify/PlanVerifier.h`) on the message that the plan
    translates to; a failure is reported at the instruction that it names. Without
    `lengths` on the plan, samples are taken to be as long as its segments say. Which of
    their tokens are targets no plan says: `target_tokens` may be any number from 1 to all of
    them here, and is compared with the targets themselves wherever a plan is run.

    Plans of an `exec.step` are proven together (`runtime/plan/verify/StepVerifier.h`), by the switches that the
    module's `exec.switch_plan`s say; that these move what the graphs need is proven first.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [Option<"limit", "limit", "std::string", "\"\"",
                        "Bytes of each rank's dynamic region, at most, such as 40MiB; empty: no limit">,
                 Option<"withoutNorms", "without-norms", "bool", "false",
                        "Plans may update without gradient norms, as runs with --no-gradient-norm do">];
}

def ReportMemory : Pass<"dyna-report-memory", "::mlir::ModuleOp"> {
  let summary = "Prints the memory that a planned module needs.";
  let description = [{
    Persistent bytes of the model's parameters; for every layer the tiers; for every role the
    workspace, next to the most bytes ever alive (which no packing can go below), as formulas in tokens
    and as totals for the counts given. With a model and no keys of its own also the peak of a step
    on one rank, for `s` samples of `tq` tokens together in one micro-batch: that of the plan that a
    training binary makes. Changes nothing.
  }];
  let options = [
    Option<"tq", "tq", "int64_t", "4096", "Query tokens of the totals">,
    Option<"tkv", "tkv", "int64_t", "0", "Key/value tokens of the totals (0: as many as query tokens)">,
    Option<"s", "s", "int64_t", "32", "Segments of the totals">,
    Option<"json", "json", "bool", "false", "Print JSON instead of a table">,
    Option<"output", "output", "std::string", "\"-\"", "File to write to (-: standard output)">];
}

#endif // DYNA_PASSES_PLAN_PASSES_TD
