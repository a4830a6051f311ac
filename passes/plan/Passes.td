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

/// Options for the samples of a mini-batch, and for its use.
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
    The input is a module behind the memory phase. The pass adds an `exec.graph`, which states what
    each rank of the strategy holds, and an `exec.plan` that is a draft. The draft has the
    micro-batches that a training binary of this module would cut from samples of the given lengths
    (`Planner::cut`). It names the replica of each. Cuts are compared by the duration of their
    schedules within the memory limit. So schedule, recomputation and memory are options here;
    `dyna-schedule` uses the same unless told otherwise. The policy of a training binary chooses
    what is left open (`Policy.h`), and a remark states its choices. Everything else is left alone.

    A module with an `exec.orchestration` (`dyna-orchestrate`) has strategies of its own. Samples go
    to these by length and, unless `merge-ranges=never`, by the durations of switches
    (`AssignStrategies.h`). Each strategy with samples, and home, gets a draft, and an `exec.step`
    assigns the samples to them.

    Planning words, such as `pipeline` and `rank-memory`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = Plan_MiniBatch;
}

def SliceTokens : Pass<"dyna-slice-tokens", "::mlir::ModuleOp"> {
  let summary = "Cuts the micro-batches of every draft into token slices.";
  let description = [{
    The input has drafts of `dyna-build-micro-batches`, with micro-batches of whole samples. Each
    micro-batch becomes the micro-batches of its slices, for the same replica (`Planner::slice`).
    `slices` has the values of a training binary: a number of equal slices, tokens of each slice, or
    `auto`. `auto` slices if the complete plan is then faster, within the memory of the draft.
    Drafts with programs, and complete plans, are left alone. A module with nothing else is an
    error.

    Planning words, such as `slices` and `costs`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
}

def Schedule : Pass<"dyna-schedule", "::mlir::ModuleOp"> {
  let summary = "Gives every draft of micro-batches the order in which its ranks compute.";
  let description = [{
    The input has drafts of `dyna-build-micro-batches`, whose micro-batches may be changed by hand.
    Each rank gets a program that loads micro-batches and calls layer functions
    (`Planner::schedule`), in the order of the schedule and with its recomputation. The program has
    no messages, exchanges, updates or places yet. Only a complete plan shows whether an order fits
    the memory, so the pass makes one for that and drops it. Without options, schedule, memory and
    the rest are those for which the micro-batches were cut. Complete plans are left alone.

    Planning words, such as `pipeline` and `rank-memory`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [
    Option<"report", "report", "bool", "false",
           "Print a remark for each replica: expected duration of its pipeline, its safety stock, and the number of micro-batches that its stages hold">];
}

def OrderCommunication : Pass<"dyna-order-communication", "::mlir::ModuleOp"> {
  let summary = "Completes every scheduled draft with the exchanges of its ranks.";
  let description = [{
    The input has drafts of `dyna-schedule`, whose programs may be changed by hand. The pass keeps
    the order in which ranks compute (`Planner::orderCommunication`). Both ends of a message start
    it when its tensor is expected to exist, and wait as late as they can (DynaPipe, section 6).
    Gradients are reduced, parameters gathered and updated, and every block gets its place. The
    complete plan is verified as by `dyna-verify-plan`. Plans of phases then get the switches of
    their step, which is verified as a whole (not with `naive`).

    If the module has no draft, the pass works on complete plans, whatever made them. It drops their
    communication and orders it anew, by the rules of `pipeline`.

    Planning words, such as `pipeline` and `rank-memory`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [
    Option<"naive", "naive", "bool", "false",
           "Send behind what makes a tensor and receive before what needs it, without verification: shows why that is not enough">];
}

def Plan : Pass<"dyna-plan", "::mlir::ModuleOp"> {
  let summary = "Adds the executable graph of a strategy and the plan of a mini-batch.";
  let description = [{
    Does what `dyna-build-micro-batches`, `dyna-schedule` and `dyna-order-communication` do one
    after another. An `exec.graph` states what each rank of the strategy holds, and an `exec.plan`
    what it does for samples of the given lengths. A training binary of this module makes the same
    two for itself from the same options (`runtime/planner`). The same policy chooses what is left
    open (`Policy.h`), and a remark states its choices. They are verified as by the passes below.
    Everything else is left alone. Behind `dyna-orchestrate` the pass makes the plan of every phase,
    with the switches between them, and an `exec.step`.

    Planning words, such as `pipeline` and `rank-memory`, are options too; `dyna-opt --help` lists them.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = Plan_MiniBatch;
}

//===----------------------------------------------------------------------===//
// Passes that verify plans
//===----------------------------------------------------------------------===//

def VerifyExecutable : Pass<"dyna-verify-executable", "::mlir::ModuleOp"> {
  let summary = "Verifies that every exec.graph places the module's model.";
  let description = [{
    Checks that

    - the module has layers for the tensor degree of the strategy;
    - stages cover the layers of the model once and in order;
    - every parameter that a layer uses is listed with the layout that was compiled, which fits its
      shape;
    - the holders are the ranks that have the parameter.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
}

def VerifyPlan : Pass<"dyna-verify-plan", "::mlir::ModuleOp"> {
  let summary = "Verifies every exec.plan and exec.step, as the runtime does.";
  let description = [{
    Translates the plan and calls `verifyPlan` (`runtime/plan/verify/PlanVerifier.h`). A failure is
    reported at the instruction that it names. Without `lengths` on the plan, samples are as long as
    its segments say. A plan does not say which of their tokens are targets. So `target_tokens` may
    be any number from 1 to all of them here. It is compared with the targets themselves wherever a
    plan is run.

    Plans of an `exec.step` are verified together (`runtime/plan/verify/StepVerifier.h`), with the
    switches of the module's `exec.switch_plan`s. The pass first verifies that these move what the
    graphs need.
  }];
  let dependentDialects = ["::mlir::exec::ExecDialect"];
  let options = [Option<"limit", "limit", "std::string", "\"\"",
                        "Largest dynamic region of a rank in bytes, such as 40MiB; empty: no limit">,
                 Option<"withoutNorms", "without-norms", "bool", "false",
                        "Plans may update without gradient norms, as runs with --no-gradient-norm do">];
}

def ReportMemory : Pass<"dyna-report-memory", "::mlir::ModuleOp"> {
  let summary = "Prints the memory that a planned module needs.";
  let description = [{
    Prints, as formulas in tokens and as totals for the given counts:

    - the persistent bytes of the model's parameters;
    - for every layer the tiers;
    - for every role the workspace, next to the largest number of bytes alive at once, which no
      packing can go below.

    If there is a model, and `tkv` is not given or equals `tq`, it also prints the peak of a step on
    one rank. The step has `s` samples of `tq` tokens together in one micro-batch, and the plan that
    a training binary makes. Changes nothing.
  }];
  let options = [
    Option<"tq", "tq", "int64_t", "4096", "Query tokens of the totals">,
    Option<"tkv", "tkv", "int64_t", "0", "Key/value tokens of the totals (0: as many as query tokens)">,
    Option<"s", "s", "int64_t", "32", "Segments of the totals">,
    Option<"json", "json", "bool", "false", "Print JSON instead of a table">,
    Option<"output", "output", "std::string", "\"-\"", "File to write to (-: standard output)">];
}

#endif // DYNA_PASSES_PLAN_PASSES_TD
