//===- ExecSteps.td - Steps of several graphs --------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_EXECSTEPS_TD
#define DYNA_DIALECTS_EXEC_EXECSTEPS_TD

include "dialects/exec/ExecBase.td"

//===----------------------------------------------------------------------===//
// Order of graphs
//===----------------------------------------------------------------------===//

def Exec_OrchestrationOp : Exec_ListOp<"orchestration", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The graphs of a run, in the order of their phases in a step.";
  let description = [{
    Every graph has samples of a range of lengths. `home` alone has masters and moments, and its
    turn is the last (`runtime/planner/step/Orchestrate.h`).

    Constraints:
    - (ORCHESTRATION1) the body lists turns.
    - (ORCHESTRATION2) the last turn is that of `home`, and no graph has two.
    - (ORCHESTRATION3) a module has one at most.

    Example:

    ```mlir
    exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
      stage ["head"]
    }
    exec.graph @l "tp=2" on <dp=1, pp=1, tp=2> {
      stage ["head"]
    }
    exec.orchestration home @l {
      turn @s lengths 0 to 64
      turn @l lengths 65
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$home);
  let assemblyFormat = "`home` $home attr-dict-with-keyword $body";
}

def Exec_TurnOp : Exec_Op<"turn", [HasParent<"OrchestrationOp">,
                                   DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A graph, and the range of lengths of its samples.";
  let description = [{
    Both ends are lengths that belong to the range. Without the second one the range has no end.
    This op does not check that ranges have no gaps and do not overlap: `dyna-verify-plan` does.

    Constraints:
    - (TURN1) `graph` names an `exec.graph`.
    - (TURN2) `first` is not negative, and `last` not less than it.

    Example: `exec.turn @s lengths 0 to 64`
  }];
  let arguments = (ins FlatSymbolRefAttr:$graph, I64Attr:$first, OptionalAttr<I64Attr>:$last);
  let assemblyFormat = "$graph `lengths` custom<Number>($first) (`to` custom<Number>($last)^)? attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// What moves between graphs
//===----------------------------------------------------------------------===//

def Exec_SwitchPlanOp : Exec_ListOp<"switch_plan", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The transfers between the ranks of two graphs, in order.";
  let description = [{
    The values that the layers of `graph` read come from `home`, and from the graph `behind` whose
    phase its own phase comes. The gradients of `graph` go home. The body lists each tensor with the
    ranks that have it and the ranks that need it. Then come the buckets, in the order in which
    ranks process them (`runtime/plan/graph/SwitchPlan.h`). The gradient of a parameter has a tensor
    for every group of ranks that sum a part of it. One of these ranks gets each element.

    The constraints ensure that the transfers bring what the tensors need. `dyna-verify-plan`
    verifies that the tensors are those that the graphs need.

    Constraints:
    - (SWITCH1) `graph`, `behind` and `home` name graphs of equally many ranks.
    - (SWITCH2) `graph` is not `home`, `behind` is neither, and gradients have no `behind`.
    - (SWITCH3) the body lists tensors, then buckets.
    - (SWITCH4) tensors lie on existing ranks, and the boxes of one rank in `to` do not overlap.
      Transfers name existing tensors and ranks, and boxes that are not empty.
    - (SWITCH5) a bucket comes after an earlier one.
    - (SWITCH6) the sender has the box. An old box lies in one of its boxes in `from`. A new or
      passing box came with a bucket after which this one comes.
    - (SWITCH7) a box that is new to a receiver lies in one of its boxes in `to`, and a passing box
      is handed on.
    - (SWITCH8) every element of every box in `to` arrives once: values in each of these boxes,
      gradients in one of them.

    Example:

    ```mlir
    exec.graph @s "dp=2" on <dp=2, pp=1, tp=1> {
      stage ["head"]
    }
    exec.graph @l "dp=2,zero=1" on <dp=2, pp=1, tp=1> {
      stage ["head"]
    }
    exec.switch_plan values of @s home @l {
      tensor @wte master element_bytes 4 from [rank 0 [0:4, 0:3], rank 1 [4:8, 0:3]]
          to [rank 0 [0:8, 0:3], rank 1 [0:8, 0:3]]
      bucket {
        transfer tensor 0 [0:4, 0:3] from 0 to 0
        transfer tensor 0 [0:4, 0:3] from 0 to 1
        transfer tensor 0 [4:8, 0:3] from 1 to 0
        transfer tensor 0 [4:8, 0:3] from 1 to 1
      }
    }
    ```
  }];
  let arguments = (ins Exec_Moved:$moved, FlatSymbolRefAttr:$graph, OptionalAttr<FlatSymbolRefAttr>:$behind,
                       FlatSymbolRefAttr:$home);
  let assemblyFormat = "$moved `of` $graph (`behind` $behind^)? `home` $home attr-dict-with-keyword $body";
}

def Exec_TensorOp : Exec_Op<"tensor", [HasParent<"SwitchPlanOp">]> {
  let summary = "A tensor of a parameter, with the boxes that ranks have and need.";
  let description = [{
    Boxes are rows and columns of the whole tensor, both from the first up to, and without, the
    last. A vector is one column, and a scalar one row.

    Constraints:
    - (TENSOR1) boxes begin at 0 or behind it, end where they begin or behind it, and at most at 2147483647; their ranks
      are not negative.
    - (TENSOR2) its elements have at least one byte.
    - (TENSOR3) it is a gradient if and only if the switch moves gradients.

    Example: `exec.tensor @wte copy element_bytes 2 from [rank 0 [0:8, 0:4]] to [rank 0 [0:8, 0:2], rank 1 [0:8, 2:4]]`
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, Exec_ParameterPart:$part, I64Attr:$element_bytes,
                       DenseI64ArrayAttr:$from, DenseI64ArrayAttr:$to);
  let assemblyFormat = "$parameter $part `element_bytes` custom<Number>($element_bytes) `from` custom<RankBoxes>($from) "
                       "`to` custom<RankBoxes>($to) attr-dict";
  let hasVerifier = 1;
}

def Exec_BucketOp : Exec_ListOp<"bucket", [HasParent<"SwitchPlanOp">]> {
  let summary = "Transfers that start together.";
  let description = [{
    `after` is the number of the bucket that brought what this one hands on. Without it, the senders
    had everything before.

    Constraints:
    - (BUCKET1) the body lists transfers.

    Example:

    ```mlir
    exec.bucket {
      transfer tensor 0 [0:4, 0:8] from 0 to 1
    }
    ```
  }];
  let arguments = (ins OptionalAttr<I32Attr>:$after);
  let assemblyFormat = "(`after` custom<Index>($after)^)? attr-dict-with-keyword $body";
}

def Exec_TransferOp : Exec_Op<"transfer", [HasParent<"BucketOp">]> {
  let summary = "Moves a box of a tensor from one rank to another, or to another place of the same rank.";
  let description = [{
    `tensor` is its number in the switch. `source` states where the sender has the box, by default
    `old`. `target` states where the receiver puts it, by default `new`. `passing` is memory of the
    bucket, from which the box is passed on.

    Constraints:
    - (TRANSFER1) the box obeys the rules for boxes of tensors.
    - (TRANSFER2) the target is not `old`.

    Example: `exec.transfer tensor 0 [0:4, 0:8] from 0 to 2 target passing`
  }];
  let arguments = (ins I32Attr:$tensor, DenseI64ArrayAttr:$box, I32Attr:$from, I32Attr:$to,
                       DefaultValuedAttr<Exec_SwitchPlace, "::mlir::exec::SwitchPlace::Old">:$source,
                       DefaultValuedAttr<Exec_SwitchPlace, "::mlir::exec::SwitchPlace::New">:$target);
  let assemblyFormat = "`tensor` custom<Index>($tensor) custom<Rectangle>($box) `from` custom<Index>($from) `to` custom<Index>($to) "
                       "(`source` $source^)? (`target` $target^)? attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

def Exec_StepOp : Exec_ListOp<"step", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The phases of one mini-batch, each the plan of a graph for some of its samples.";
  let description = [{
    Phases run in the order of the list. The last is home's, which updates all parameters
    (`runtime/plan/program/StepPlan.h`). Transfers between phases start and end in their plans:
    `do switch_start phase 1 bucket 3`. `dyna-verify-plan` verifies that the step may run.

    Constraints:
    - (STEP1) the body lists at least one phase.
    - (STEP2) no plan is in two phases.

    Example:

    ```mlir
    exec.plan @short model 0xC0FFEE target_tokens 35 lengths [5] {
      micro_batch replica 0 [sample 0 length 5]
    }
    exec.plan @long model 0xC0FFEE target_tokens 35 lengths [30] {
      micro_batch replica 0 [sample 0 length 30]
    }
    exec.step @step {
      phase @short samples [1]
      phase @long samples [0]
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Dyna_OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Exec_PhaseOp : Exec_Op<"phase", [HasParent<"StepOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The plan of a phase, and its samples of the mini-batch.";
  let description = [{
    `samples` has, for each sample of the plan, its number in the mini-batch.

    Constraints:
    - (PHASE1) `plan` names an `exec.plan`.
    - (PHASE2) there are as many samples as lengths in the plan, if the plan has lengths.
    - (PHASE3) no sample is negative.

    Example: `exec.phase @p samples [0, 3]`
  }];
  let arguments = (ins FlatSymbolRefAttr:$plan, DenseI64ArrayAttr:$samples);
  let assemblyFormat = "$plan `samples` $samples attr-dict";
  let hasVerifier = 1;
}

#endif // DYNA_DIALECTS_EXEC_EXECSTEPS_TD
