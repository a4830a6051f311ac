//===- Passes.td - The distribute phase -------------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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
    (passes/distribute/deduce/ParameterLayouts.h), all else follows from factor rules of the
    ops (passes/distribute/deduce/LayoutRules.cpp).

    A layer of which nothing is split, neither parameters nor work, gets a warning that says
    why: its ranks do the same. So do linears that stay whole beside parameters of their layer
    that are split; a note names the op that prevents each split.
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
    Holds each layer of a tensor degree against the logical one, function by function.
    From the arguments on, every value of the local function is a value of the logical
    function in some layout: an op is the logical op of that name, with those attributes, on
    what its operands are; operands must fit each other as its factor rule says; sums must be
    reduced before something that is not linear; a collective gives what it takes in another
    layout. The results must be those of the logical function, in the layouts in which they
    are taken.

    Believed are the tensor degree, which mesh, `dist.sequence` and the name state alike,
    and the layer's layouts of its parameters. Everything else follows and is compared:
    types, places, `dist.arguments`, `dist.results`, `dist.gradients`, `dist.groups`, and what
    stands for a part or an exchange (`shard`, `dist.tokens`, `dist.features`,
    heads). An attribute that is missing is as wrong as one that differs, and so is one of `dist` that nobody reads. Every
    logical function has its part, and every layer has one for each degree that another has.

    It holds behind the memory phase too; where values then lie is left to
    `dyna-verify-memory`. Linear in the ops.
  }];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let options = [
    Option<"allowNone", "allow-none", "bool", "false",
           "Do not warn of a module without local functions: strategies may have none">];
}

def SelectFunctions : Pass<"dyna-select-functions", "::mlir::ModuleOp"> {
  let summary = "Leaves a layer and its functions of one role, for reading.";
  let description = [{
    Erases all layers and functions but those of a layer, at every tensor degree, in a role;
    what these name stays, models and parameters go. Without a layer the role of all
    layers is left, without a role all roles of the layer. It is an error if nothing is left.
  }];
  let options = [
    Option<"layer", "layer", "std::string", "\"\"", "Name of the layer; block has block.tp2 in it">,
    Option<"role", "role", "std::string", "\"\"", "A role, such as forward">];
  let dependentDialects = ["::mlir::dist::DistDialect"];
}

def ReportLayoutRules : Pass<"dyna-report-layout-rules", "::mlir::ModuleOp"> {
  let summary = "Remarks on every op how it can be split over ranks.";
  let dependentDialects = ["::mlir::dist::DistDialect"];
}

#endif // DYNA_PASSES_DISTRIBUTE_PASSES_TD
