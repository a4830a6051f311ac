//===- DistOps.td - Reshards and collectives ---------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DIST_DISTOPS_TD
#define DYNA_DIALECTS_DIST_DISTOPS_TD

include "dialects/dist/DistBase.td"
include "dialects/dist/DistInterfaces.td"
include "dialects/dyna/DynaInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Tensor : Type<RankedTensorOf<[F64, F32, BF16, I32]>.predicate,
    "ranked tensor of f64, f32, bf16 or i32", "::mlir::RankedTensorType">;
def Dist_FloatTensor : Type<RankedTensorOf<[F64, F32, BF16]>.predicate,
    "ranked tensor of f64, f32 or bf16", "::mlir::RankedTensorType">;

/// Ranks have to reach a collective together, so it must not be moved in front of
/// a condition: no effect on memory, but not pure.
class Dist_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dist_Dialect, mnemonic, !listconcat([Dyna_OnlyKnownAttributes, NoMemoryEffect], traits)>;

/// `step` is the kind of the step and, if it has any, the dimensions.
class Dist_Collective<string mnemonic, string step, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat([Dyna_PlacedOpInterface, Dist_CollectiveOpInterface], traits)> {
  dag places = (ins Dyna_OptionalAttr<Dyna_PlaceArrayAttr>:$places);
  let extraClassDeclaration =
      "::dyna::ReshardStep getStep() { return makeStep(::dyna::ReshardKind::" # step # "); }";
}

def Dist_ReshardOp : Dist_Op<"reshard", [SameOperandsAndResultType]> {
  let summary = "The same tensor in another layout.";
  let description = [{
    A request: `dyna-materialize-collectives` chooses how data moves. The types are those of the
    whole tensor.

    Constraints:
    - (RESHARD1) both layouts are on one mesh and have the rank of the tensor.
    - (RESHARD2) the value can get there: what is not partial does not become partial.

    Example:

    ```mlir
    %y = dist.reshard %x from <[[], []] partial [tp] on <tp=2>> to <[[], []] on <tp=2>> : tensor<?x96xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$x, Dist_LayoutAttr:$from, Dist_LayoutAttr:$to);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$x `from` $from `to` $to attr-dict `:` type($x)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dist_AllReduceOp : Dist_Collective<"all_reduce", "AllReduce", [SameOperandsAndResultType]> {
  let summary = "The sum, or maximum, over the ranks of a group, on all of them.";
  let description = [{
    The result may lie where the operand does.

    Example:

    ```mlir
    %y = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x96xf32>
    %z = dist.all_reduce %x max over <1 [tp] on <tp=2>> : tensor<?x96xf32>
    ```
  }];
  let arguments = !con((ins Dist_FloatTensor:$x, Dist_GroupAttr:$group, UnitAttr:$max), places);
  let results = (outs Dist_FloatTensor:$result);
  let assemblyFormat = "$x (`max` $max^)? `over` $group attr-dict `:` type($x)";
  let hasFolder = 1;
}

def Dist_AllGatherOp : Dist_Collective<"all_gather", "AllGather, getDim()"> {
  let summary = "Parts of a dimension laid side by side.";
  let description = [{
    Rank i of the group holds part i of dimension `dim`.

    Constraints:
    - (GATHER1) `dim` is a dimension of the tensors, which have one rank and element type.
    - (GATHER2) the sizes of all other dimensions are equal.
    - (GATHER3) along `dim` the whole is the ranks of the group times the part, or both
      sizes are unknown: ranks hold different numbers of rows.

    Example:

    ```mlir
    %y = dist.all_gather %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x48xf32> -> tensor<?x96xf32>
    %z = dist.all_gather %x dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x48xf32> -> tensor<?x48xf32>
    ```
  }];
  let arguments = !con((ins Dist_Tensor:$x, I64Attr:$dim, Dist_GroupAttr:$group), places);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$x `dim` $dim `over` $group attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dist_ReduceScatterOp : Dist_Collective<"reduce_scatter", "ReduceScatter, getDim()"> {
  let summary = "This rank's part of the sum over the ranks of a group.";
  let description = [{
    What `dist.all_reduce` gives, cut as `dist.slice` does.

    Constraints:
    - (SCATTER1) `dim` is a dimension of the tensors, which have one rank and element type.
    - (SCATTER2) the sizes of all other dimensions are equal.
    - (SCATTER3) along `dim` the whole is the ranks of the group times the part, or both
      sizes are unknown: ranks hold different numbers of rows.

    Example:

    ```mlir
    %y = dist.reduce_scatter %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>
    %z = dist.reduce_scatter %x dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x96xf32> -> tensor<?x96xf32>
    ```
  }];
  let arguments = !con((ins Dist_FloatTensor:$x, I64Attr:$dim, Dist_GroupAttr:$group), places);
  let results = (outs Dist_FloatTensor:$result);
  let assemblyFormat = "$x `dim` $dim `over` $group attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dist_SliceOp : Dist_Collective<"slice", "Slice, getDim()"> {
  let summary = "This rank's part of what all ranks of a group hold.";
  let description = [{
    Nothing is exchanged.

    Constraints:
    - (SLICE1) `dim` is a dimension of the tensors, which have one rank and element type.
    - (SLICE2) the sizes of all other dimensions are equal.
    - (SLICE3) along `dim` the whole is the ranks of the group times the part, or both
      sizes are unknown: ranks hold different numbers of rows.

    Example:

    ```mlir
    %y = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>
    %z = dist.slice %x dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x96xf32> -> tensor<?x96xf32>
    ```
  }];
  let arguments = !con((ins Dist_Tensor:$x, I64Attr:$dim, Dist_GroupAttr:$group), places);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$x `dim` $dim `over` $group attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dist_AllToAllOp : Dist_Collective<"all_to_all", "AllToAll, getDim(), getTo()"> {
  let summary = "Changes the split of a tensor from one dimension to another.";
  let description = [{
    Constraints:
    - (TOALL1) `dim` and `to` are two dimensions of the tensors, which have one rank and
      element type.
    - (TOALL2) the sizes of all other dimensions are equal.
    - (TOALL3) along `dim` the result is the ranks of the group times the operand, and along `to`
      the reverse. Or both sizes of a dimension are unknown.

    Example:

    ```mlir
    %y = dist.all_to_all %x dim 0 to 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>
    ```
  }];
  let arguments = !con((ins Dist_Tensor:$x, I64Attr:$dim, I64Attr:$to, Dist_GroupAttr:$group), places);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$x `dim` $dim `to` $to `over` $group attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Several as one
//===----------------------------------------------------------------------===//

def Dist_ExchangeOp : Dist_Op<"exchange", [SingleBlock, NoRegionArguments, Dyna_PlacedOpInterface]> {
  let summary = "Independent collectives of one group, done as one.";
  let description = [{
    Ranks meet once for all of them. All operands are read until the op ends, and all
    results written from its start.

    Constraints:
    - (EXCHANGE1) the body holds collectives that move data (not `dist.slice`), at least one,
      without `places` of their own, and `dist.yield`.
    - (EXCHANGE2) all of them are over one group.
    - (EXCHANGE3) none reads the result of another one.
    - (EXCHANGE4) it yields their results, in order; those are the results of the op.

    Example:

    ```mlir
    %a, %b = dist.exchange : tensor<?x96xf32>, tensor<?x48xf32> {
      %0 = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x96xf32>
      %1 = dist.reduce_scatter %y dim 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>
      dist.yield %0, %1 : tensor<?x96xf32>, tensor<?x48xf32>
    }
    ```
  }];
  let arguments = (ins Dyna_OptionalAttr<Dyna_PlaceArrayAttr>:$places);
  let results = (outs Variadic<Dist_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`:` type($results) $body attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The collectives, as many as results; result i is that of collective i.
    ::llvm::SmallVector<CollectiveOpInterface> getCollectives();
    /// The group that they are over.
    GroupAttr getGroup();
  }];
}

def Dist_YieldOp : Op<Dist_Dialect, "yield", [Dyna_OnlyKnownAttributes, Pure, ReturnLike, Terminator, ParentOneOf<["ExchangeOp"]>]> {
  let summary = "Ends the body of a `dist.exchange`.";
  let description = [{
    Example: `dist.yield %a : tensor<?x96xf32>`
  }];
  let arguments = (ins Variadic<Dist_Tensor>:$operands);
  let assemblyFormat = "$operands `:` type($operands) attr-dict";
}

#endif // DYNA_DIALECTS_DIST_DISTOPS_TD
