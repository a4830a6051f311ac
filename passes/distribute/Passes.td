//===- Passes.td - The distribute phase -------------------------*- tablegen -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_PASSES_TD
#define DYNA_PASSES_DISTRIBUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeduceLayouts : Pass<"dyna-deduce-layouts", "::mlir::ModuleOp"> {
  let summary = "Adds every layer at a tensor degree, with a layout for every value.";
  let description = [{
    For each tensor degree of the strategies (tp, sp) other than tp=1, a copy of every
    layer and its functions: `@block` becomes `@block.tp2` (`@block.tp2.sp` with
    activations split over tokens). Types stay those of the whole tensors; arguments,
    ops and results carry layouts, and `dist.reshard` stands where one changes. Degrees
    of data and pipeline parallelism change no code and show nowhere here; more stages
    than the model has layers are refused.

    Parameters are laid out by a rule over the forward graph
    (passes/distribute/ParameterLayouts.h), all else follows from factor rules of the
    ops (passes/distribute/LayoutRules.cpp).
  }];
  let options = [Option<"strategy", "strategy", "std::string", "\"\"",
                        "One strategy, such as dp=1,tp=2,pp=1, or several as name: ...; name: ...">];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let statistics = [Statistic<"numReshards", "reshards", "Reshards inserted">];
}

def MaterializeCollectives : Pass<"dyna-materialize-collectives", "::mlir::ModuleOp"> {
  let summary = "Turns layouts into the types and collectives of one rank.";
  let description = [{
    Every tensor gets its local type, heads their local numbers, tables their `shard`;
    each reshard becomes the collectives that runtime/layout plans for it, and those that
    undo each other disappear.
  }];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let statistics = [Statistic<"numCollectives", "collectives", "Collectives in the result">];
}

def FuseCollectives : Pass<"dyna-fuse-collectives", "::mlir::ModuleOp"> {
  let summary = "Makes one exchange of independent collectives.";
  let description = [{
    In every local function, from the first op to the last: a collective joins the nearest
    earlier one over the same group on which it does not depend, directly or through other
    ops; both become a `dist.exchange`, or the collective one more of it. The exchange
    stands where its first collective stood; ops that the newcomer needs move in front of it,
    in their order, everything else stays where it was. `dist.slice` exchanges nothing and
    stays too.

    So a result comes into being earlier than it would have, but never by more than the way
    to the nearest exchange that can take it along: of two that could, the later is taken.
    What it costs in memory is in docs/strategies.md.

    Where an op that would move is a collective itself, the collective stays: the wait that
    fusing saves would be spent in front of the exchange. The order depends on the function
    alone, and all ranks of a group run the same one.
  }];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let statistics = [Statistic<"numExchanges", "exchanges", "Exchanges made of several collectives">,
                    Statistic<"numFused", "fused", "Collectives in them">];
}

def VerifyLocal : Pass<"dyna-verify-local", "::mlir::ModuleOp"> {
  let summary = "Proves that local functions compute what their layouts say.";
  let description = [{
    Follows the layouts from the arguments of each local function through its ops and
    collectives: operands must fit each other as the ops' factor rules say, sums must be
    reduced before something that is not linear, and results must arrive in the layouts
    that the function promises. Parameters must have the local types of those of the
    logical layer, groups must be those of the mesh and the module, and no reshard may
    be left.
  }];
  let dependentDialects = ["::mlir::dist::DistDialect"];
}

def ReportLayoutRules : Pass<"dyna-report-layout-rules", "::mlir::ModuleOp"> {
  let summary = "Remarks on every op how it can be split over ranks.";
  let dependentDialects = ["::mlir::dist::DistDialect"];
}

#endif // DYNA_PASSES_DISTRIBUTE_PASSES_TD
