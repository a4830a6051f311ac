//===- Exec.td - Executable graphs and plans ---------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_EXEC_TD
#define DYNA_DIALECTS_EXEC_EXEC_TD

include "dialects/exec/ExecBase.td"
include "dialects/exec/ExecSteps.td"

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

def Exec_GraphOp : Exec_ListOp<"graph", [Symbol]> {
  let summary = "The model under a strategy: layers and parameters of each rank.";
  let description = [{
    Lists the layers of each stage. For every parameter, states how it is split over the ranks of a
    stage and which ranks hold it (`runtime/plan/graph/ExecutableGraph.h`).

    Constraints:
    - (GRAPH1) `strategy` is one strategy as `runtime/plan/model/Strategy.h` reads it. It has no
      name and no layers, because the op's name and its stages state these.
    - (GRAPH2) the axes of the mesh are `dp`, `pp` and `tp`, with the strategy's degrees and
      in its order.
    - (GRAPH3) the body lists as many stages as `pp` says, then parameters.
    - (GRAPH4) no layer is listed twice, and no parameter.

    Example:

    ```mlir
    exec.graph @a "dp=1,tp=2,pp=2,zero=1" on <dp=1, pp=2, tp=2> {
      stage ["embed", "h.0"]
      stage ["h.1", "head"]
      parameter @wte <[[tp], []] on <dp=1, pp=2, tp=2>> holders [[0, 2], [1, 3]]
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$strategy, Dist_MeshAttr:$mesh,
                       Dyna_OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name $strategy `on` $mesh attr-dict-with-keyword $body";
}

def Exec_StageOp : Exec_Op<"stage", [HasParent<"GraphOp">]> {
  let summary = "The layers of one pipeline stage, in order.";
  let description = [{
    Layers are named as the calls of the model name them. The first stage of a graph is
    stage 0.

    Constraints:
    - (STAGE1) there is a layer.

    Example: `exec.stage ["embed", "h.0"]`
  }];
  let arguments = (ins StrArrayAttr:$layers);
  let assemblyFormat = "$layers attr-dict";
  let hasVerifier = 1;
}

def Exec_ParameterOp : Exec_Op<"parameter", [HasParent<"GraphOp">]> {
  let summary = "Layout and holders of a parameter.";
  let description = [{
    Each list of holders has the ranks that hold the same part of the parameter and add to one
    gradient. With ZeRO they also deal its rows among them, in this order.

    Constraints:
    - (PARAMETER1) the layout is on the mesh of the graph, and not partial.
    - (PARAMETER2) there are holders, each is a rank of the mesh, and none is listed twice.

    Example: `exec.parameter @wte <[[tp], []] on <dp=1, pp=2, tp=2>> holders [[0, 2], [1, 3]]`
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, Dist_LayoutAttr:$layout,
                       TypedArrayAttrBase<DenseI64ArrayAttr, "lists of ranks">:$holders);
  let assemblyFormat = "$parameter $layout `holders` custom<RankLists>($holders) attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

def Exec_DraftAttr : AttrDef<Exec_Dialect, "Draft"> {
  let mnemonic = "draft";
  let summary = "The options for which an incomplete plan was begun.";
  let description = [{
    The passes of the plan phase hand a plan on with the options for which its micro-batches were
    cut:

    - `schedule`: name of a schedule, as `--pipeline` has it.
    - `in_flight`: number of micro-batches in flight.
    - `tokens_per_micro_batch`: largest number of tokens of a micro-batch with several samples.
    - `recompute`: mode of recomputation, in the words of that flag.
    - `split_backward`: true if gradients of weights are computed separately.
    - `evaluate`: true if only losses are computed.
    - `rank_memory`: bytes of each rank (0: not limited).
    - `longest_sample`: tokens of the longest sample, which may be alone in a micro-batch (0: no
      sample is longer than `tokens_per_micro_batch`).
    - `slices`: token slices, in the words of that flag.

    Constraints:
    - (DRAFT1) `in_flight` is from 1 to 2147483647, `tokens_per_micro_batch` at least 1,
      `rank_memory` and `longest_sample` not negative.

    Example:
    `#exec.draft<schedule = "1f1b", in_flight = 1, tokens_per_micro_batch = 64, recompute = "none">`
  }];
  let parameters = (ins
    StringRefParameter<"name of a schedule">:$schedule, "int64_t":$in_flight,
    "int64_t":$tokens_per_micro_batch, StringRefParameter<"modes of layers">:$recompute,
    DefaultValuedParameter<"bool", "false">:$split_backward,
    DefaultValuedParameter<"bool", "false">:$evaluate,
    DefaultValuedParameter<"int64_t", "0">:$rank_memory,
    DefaultValuedParameter<"int64_t", "0">:$longest_sample,
    StringRefParameter<"token slices", [{""}]>:$slices);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Exec_PlanOp : Exec_ListOp<"plan", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The instructions of all ranks for one mini-batch.";
  let description = [{
    `of` names the graph in this module for which the plan was made. In a plan that stands alone,
    `strategy` names it instead. `model` is the hash of the manifest, `target_tokens` the divisor of
    the sum of losses, and `lengths` the tokens of every sample. `fallback` names the schedule of
    the plan if the requested one did not fit the memory or was slower. `dyna-verify-plan` verifies
    that the plan may run.

    A plan with `draft` is not complete. Without ranks it has micro-batches alone
    (`dyna-build-micro-batches`). With ranks it has what each computes, in order, and no exchanges
    (`dyna-schedule`). `dyna-order-communication` completes it. A draft is neither verified nor
    translated.

    Constraints:
    - (PLAN1) `graph` names an `exec.graph`.
    - (PLAN2) the body lists micro-batches, then ranks.
    - (PLAN3) no length is negative, and neither is `target_tokens`.
    - (PLAN4) `lengths` is left out or lists at least one sample.
    - (PLAN5) ranks are listed in order, from 0 on.
    - (PLAN6) `strategy` is left out if `of` names a graph: it is the strategy of that graph.
    - (PLAN7) a draft names its graph with `of`.
    - (PLAN8) ranks of a draft have `dynamic_bytes` 0, and their instructions work on a micro-batch,
      are no messages and name no places.

    Example:

    ```mlir
    exec.plan @p model 0xC0FFEE target_tokens 35 lengths [30, 5] {
      micro_batch replica 0 [sample 0 length 30, sample 1 length 5]
      rank 0 dynamic_bytes 8192 {
        do load micro_batch 0 batch 4096 kept 0
        do update layer 1 workspace 0
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<FlatSymbolRefAttr>:$graph,
                       OptionalAttr<StrAttr>:$strategy, I64Attr:$model, I64Attr:$target_tokens,
                       OptionalAttr<DenseI64ArrayAttr>:$lengths,
                       Dyna_OptionalAttr<StrAttr>:$fallback,
                       Dyna_OptionalAttr<Exec_DraftAttr>:$draft,
                       Dyna_OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name (`of` $graph^)? (`strategy` $strategy^)? `model` custom<Hash>($model) `target_tokens` "
                       "custom<Number>($target_tokens) (`lengths` $lengths^)? (`fallback` $fallback^)? "
                       "(`draft` $draft^)? attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    static ::llvm::StringRef getDefaultDialect() { return "exec"; }
    /// Returns true if programs exchange nothing yet, or if there are none.
    bool isDraft() { return static_cast<bool>(getDraftAttr()); }
    bool hasPrograms();
  }];
}

def Exec_MicroBatchOp : Exec_Op<"micro_batch", [HasParent<"PlanOp">]> {
  let summary = "Samples that pass the layers together.";
  let description = [{
    Micro-batches are numbered in the order of the plan. A segment begins at the first
    token of its sample unless `begin` says otherwise. Its tokens are those of stream 0 unless
    `stream` says otherwise. Its keys are its own tokens and all earlier ones of its sample, unless
    `key_stream`, `key_begin` and `key_end` say otherwise.

    `streams` has a number for each segment. `keys` has three: stream, begin and end, where -1 is the
    end of the segment's own tokens.

    Constraints:
    - (MICROBATCH1) there are as many begins and lengths as samples, as many streams or none, and
      three times as many numbers in `keys` or none.
    - (MICROBATCH2) no number is negative but -1 as end of keys, and streams have 31 bits.
    - (MICROBATCH3) `streams` and `keys` are left out if they equal the default.

    Example: `exec.micro_batch replica 1 [sample 3 length 30, sample 0 begin 8 length 5]`
  }];
  let arguments = (ins I32Attr:$replica, DenseI64ArrayAttr:$samples, DenseI64ArrayAttr:$begins,
                       DenseI64ArrayAttr:$lengths, OptionalAttr<DenseI64ArrayAttr>:$streams,
                       OptionalAttr<DenseI64ArrayAttr>:$keys);
  let assemblyFormat = "`replica` custom<Index>($replica) "
                       "custom<Segments>($samples, $begins, $lengths, $streams, $keys) attr-dict";
  let hasVerifier = 1;
}

def Exec_RankOp : Exec_ListOp<"rank", [HasParent<"PlanOp">]> {
  let summary = "The program of one rank.";
  let description = [{
    `dynamic_bytes` is the size of the region in which the offsets of its instructions count. A
    program of a phase of an `exec.step` states where this region lies in the rank's memory (`at`).
    It also states the places of the phase's values, of its gradients, and of those that switches
    pass on (`runtime/plan/verify/StepMemory.h`). A place that is left out does not exist; without
    `at` the region lies at the beginning.

    Constraints:
    - (RANK1) `dynamic_bytes` and places are not negative.
    - (RANK2) the body lists instructions, `exec.do`.

    Example:

    ```mlir
    exec.rank 0 dynamic_bytes 8192 {
      do load micro_batch 0 batch 4096 kept 0
    }
    ```
  }];
  let arguments = (ins I32Attr:$rank, I64Attr:$dynamic_bytes, OptionalAttr<I64Attr>:$at,
                       OptionalAttr<I64Attr>:$values, OptionalAttr<I64Attr>:$gradients,
                       OptionalAttr<I64Attr>:$values_transit, OptionalAttr<I64Attr>:$gradients_transit);
  let assemblyFormat = "custom<Index>($rank) `dynamic_bytes` custom<Number>($dynamic_bytes) "
                       "(`at` custom<Number>($at)^)? (`values` custom<Number>($values)^)? "
                       "(`gradients` custom<Number>($gradients)^)? "
                       "(`values_transit` custom<Number>($values_transit)^)? "
                       "(`gradients_transit` custom<Number>($gradients_transit)^)? "
                       "attr-dict-with-keyword $body";
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

def Exec_DoOp : Exec_Op<"do", [HasParent<"RankOp">]> {
  let summary = "One instruction.";
  let description = [{
    Names the instruction, then the layer and the micro-batch on which it works. Then come the
    places of the blocks that it allocates, as offsets in the rank's dynamic region. A block without
    bytes is neither allocated nor written. The existing blocks that it uses follow from its name,
    and so do peers and bytes of messages.

    Instructions, with their fields and blocks, are the rows of
    `runtime/plan/program/Instructions.def`, here in lower case. The names of blocks are in
    `runtime/plan/program/BlockKinds.def`.

    `recompute` is written if it is not `none`. `parameter` is written if it is not 0: the
    k-th parameter of the layer, counted from 1, is exchanged alone.

    Constraints:
    - (DO1) it is an instruction of the table, and has only the fields that the table gives it.
    - (DO2) none of `layer`, `micro_batch`, `phase`, `bucket` and `parameter` is negative.
    - (DO3) `places` has an element for each block that the instruction may allocate. It is -1 for a
      block that is not allocated, else a multiple of 64 that is not negative.

    Example:

    ```mlir
    exec.do forward layer 3 micro_batch 0 recompute selective late 1024 next 4096 workspace 8192
    exec.do send_act_start layer 4 micro_batch 0
    exec.do combine_norm
    ```
  }];
  let arguments = (ins I32Attr:$instruction,
                       Exec_Index:$layer, Exec_Index:$micro_batch,
                       DefaultValuedAttr<Exec_Recompute, "::mlir::exec::Recompute::None">:$recompute,
                       Exec_Index:$phase, Exec_Index:$bucket, Exec_Index:$parameter,
                       DenseI64ArrayAttr:$places);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // DYNA_DIALECTS_EXEC_EXEC_TD
