//===- Passes.td - The distribute phase -------------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_PASSES_TD
#define DYNA_PASSES_DISTRIBUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeduceLayouts : Pass<"dyna-deduce-layouts", "::mlir::ModuleOp"> {
  let summary = "Adds every layer at a tensor degree, with a layout for every value.";
  let description = [{
    For each tensor degree of the strategies (tp, sp) other than tp=1, the pass adds a copy of every
    layer and its functions. `@block` becomes `@block.tp2` (`@block.tp2.sp` with activations split
    over tokens). Types stay those of the whole tensors. Arguments, ops and results carry layouts,
    and `dist.reshard` stands where one changes. Degrees of data and pipeline parallelism change no
    code and show nowhere here. More stages than the model has layers are refused.

    A rule over the forward graph decides the layouts of parameters
    (passes/distribute/deduce/ParameterLayouts.h). All else follows from factor rules of the ops
    (passes/distribute/deduce/LayoutRules.cpp).

    A layer of which nothing is split, neither parameters nor work, gets a warning that says why:
    its ranks do the same. So do linears that stay whole beside parameters of their layer that are
    split. A note names the op that prevents each split.
  }];
  let options = [Option<"strategy", "strategy", "std::string", "\"\"",
                        "One strategy, such as dp=1,tp=2,pp=1, or several as name: ...; name: ...">];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let statistics = [Statistic<"numReshards", "reshards", "Reshards inserted">];
}

def MaterializeCollectives : Pass<"dyna-materialize-collectives", "::mlir::ModuleOp"> {
  let summary = "Turns layouts into the types and collectives of one rank.";
  let description = [{
    Every tensor gets its local type, heads their local numbers, and tables their `shard`. Each
    reshard becomes the collectives that runtime/layout plans for it. Collectives that undo each
    other disappear.
  }];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let statistics = [Statistic<"numCollectives", "collectives", "Collectives in the result">];
}

def FuseCollectives : Pass<"dyna-fuse-collectives", "::mlir::ModuleOp"> {
  let summary = "Makes one exchange of independent collectives.";
  let description = [{
    Walks every local function from the first op to the last. A collective joins the nearest earlier
    one over the same group on which it does not depend, directly or through other ops. Both become
    a `dist.exchange`, or the collective joins an existing one. The exchange stays at the position
    of its first collective. Ops that the joining collective needs move in front of it, in their
    order. Everything else stays where it was. `dist.slice` exchanges nothing and stays too.

    So a result exists earlier than before, and occupies memory longer. To limit this, a collective
    that could join two exchanges joins the later one. docs/strategies.md has the cost in memory.

    If an op that would move is a collective itself, the joining collective stays. The wait that
    fusing saves would be spent in front of the exchange. The order depends on the function alone,
    and all ranks of a group run the same one.
  }];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let statistics = [Statistic<"numExchanges", "exchanges", "Exchanges made of several collectives">,
                    Statistic<"numFused", "fused", "Collectives in them">];
}

def VerifyLocal : Pass<"dyna-verify-local", "::mlir::ModuleOp"> {
  let summary = "Verifies that local functions compute what their layouts say.";
  let description = [{
    Compares each layer of a tensor degree with the logical one, function by function. From the
    arguments on, every value of the local function is a value of the logical function in some
    layout:

    - An op is the logical op of the same name and attributes, on the logical values of its
      operands.
    - Layouts of operands must fit each other as the factor rule of the op says.
    - Sums must be reduced before an op that is not linear.
    - A collective returns its operand in another layout.
    - The results must be those of the logical function, in the layouts in which their users expect
      them.

    The pass believes the tensor degree, which mesh, `dist.sequence` and the name state alike, and
    the layer's layouts of its parameters. Everything else follows and is compared: types, places,
    `dist.arguments`, `dist.results`, `dist.gradients`, `dist.groups`. So are attributes that stand
    for a part or an exchange (`shard`, `dist.tokens`, `dist.features`, heads). A missing attribute
    is as wrong as one that differs, and so is an attribute of `dist` that nobody reads. Every
    logical function has its local one, and every layer has a local one for each degree that another
    layer has.

    The check holds behind the memory phase too; `dyna-verify-memory` then checks where values lie.
    Linear in the ops.
  }];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let options = [
    Option<"allowNone", "allow-none", "bool", "false",
           "Do not warn of a module without local functions: strategies may have none">];
}

def SelectFunctions : Pass<"dyna-select-functions", "::mlir::ModuleOp"> {
  let summary = "Leaves a layer and its functions of one role, for reading.";
  let description = [{
    Erases all layers and functions but those of one layer, at every tensor degree, in one role.
    Layers that these functions name stay; models and parameters are erased. Without `layer`,
    functions of all layers in the role stay. Without `role`, all functions of the layer stay. It is
    an error if nothing is left.
  }];
  let options = [
    Option<"layer", "layer", "std::string", "\"\"", "Name of the layer; block has block.tp2 in it">,
    Option<"role", "role", "std::string", "\"\"", "A role, such as forward">];
  let dependentDialects = ["::mlir::dist::DistDialect"];
}

def ReportLayoutRules : Pass<"dyna-report-layout-rules", "::mlir::ModuleOp"> {
  let summary = "Prints a remark on every op: how it can be split over ranks.";
  let dependentDialects = ["::mlir::dist::DistDialect"];
}

#endif // DYNA_PASSES_DISTRIBUTE_PASSES_TD
