//===- Passes.td - The memory phase -----------------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PASSES_TD
#define DYNA_PASSES_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def SetTarget : Pass<"dyna-set-target", "::mlir::ModuleOp"> {
  let summary = "Says which target the module is planned for.";
  let description = [{
    Writes `dyna.target` onto the module, which the passes behind it and code generation go by: what
    a target changes is the struct `Target` (`Target.h`). The CPU is what a module without it is planned for, so that none is
    written for it. Without the option the module stays as it is. Sweeps and places are not planned twice: a module whose
    functions have places for one target is refused for another, and so is one with an op that the target's kernels do
    not take: heads of more than 256 elements on CUDA.
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let options = [
    Option<"target", "target", "std::string", "\"\"", "cpu or cuda; empty: as the module says">];
}

def FuseRows : Pass<"dyna-fuse-rows", "::mlir::dyna::FunctionOp"> {
  let summary = "Gathers row-wise ops into sweeps over the rows.";
  let description = [{
    Splits the bias off every `dyna.linear`, turns the sum of a
    `dyna.linear_grad_input` and a value used once into the product's own addition,
    and moves every row-wise op into a `dyna.rows`, so that what passes between ops of one
    sweep never goes through memory. Sweeps have one width; a rotary op's operand and an
    accumulator come from outside of its sweep; a sweep stands directly behind a matrix
    product that feeds it where it can. Which ops go together is decided by
    `RowGroups.h`; other ops keep their order as far as the sweeps permit.
    For CUDA no product hands rows to a sweep; instead what its library does behind a product (a bias, with gelu, the
    gradient of gelu) is cut out of sweeps and put directly behind the product, where that moves fewer bytes
    (`Epilogues.h`).
    Removes ops without uses. For n ops of a function about n log n, whichever earlier values they
    read: a sweep with more than 64 neighbours is not compared with all of them each time that it
    grows, and searches for paths are bounded. More only where one sweep is fed by very many matrix
    products, or keeps very many pairs apart (`RowGroups.h`).
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let statistics = [
    Statistic<"numRowWise", "num-row-wise", "Row-wise ops">,
    Statistic<"numSweeps", "num-sweeps", "Sweeps made">,
    Statistic<"numEpilogues", "num-epilogues", "Sweeps directly behind their matrix product">,
    Statistic<"numSteps", "num-steps", "Edges, members and pairs looked at to decide">];
}

def JoinProducts : Pass<"dyna-join-products", "::mlir::dyna::FunctionOp"> {
  let summary = "Puts products that can be one next to each other.";
  let description = [{
    Looks for the runs of `ProductRuns.h`: query, key and value, gate and up, and their gradients.
    Moves the products of a run together, forward behind the first, gradients to the last, where
    no other op's operands forbid it; what ran in their epilogues follows them, as one sweep if the
    rows have one width. All else stays where it is. Linear in the number of ops, but for sorting.
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let statistics = [
    Statistic<"numRuns", "num-runs", "Runs of products brought together">,
    Statistic<"numProducts", "num-products", "Products in them">];
}

def AcceptSparse : Pass<"dyna-accept-sparse", "::mlir::ModuleOp"> {
  let summary = "Lets weights of matrix products come in sparse form.";
  let description = [{
    Writes `sparse` onto functions that compute: the matrices among the parameters of the layer that
    matrix products alone use, in all of its functions. Code generation then asks at each such product which
    form the weight has, and calls one kernel or the other. Weights of embeddings and heads stay
    dense. Nothing else changes. CUDA has no such kernels and is refused. Linear in the number of ops.
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let statistics = [
    Statistic<"numWeights", "num-weights", "Weights of layers that may be sparse">];
}

def PlanMemory : Pass<"dyna-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every value of the layer functions a place.";
  let description = [{
    Lays out the saved tiers of every layer (`tiers`), and packs the other values of each of its
    functions, by their lifetimes, into workspace (`places` of the ops, `workspace` of the
    function). Values that the function returns are computed where they are
    returned to; a value returned to several places lies at the first, and an argument
    returned elsewhere is copied, by the code of `dyna.return`.
    The parts of products that follow each other and could be one (`ProductRuns.h`) lie side by side,
    in one block whose rows hold a row of each, if all ops that use them take a stride.
    Offsets are linear in tokens: constant-size values come first, then those with a
    row per token, packed by bytes per token. Per function n log n for n values, times how many are
    alive together and the packings tried (`Packing.h`).
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
}

def VerifyMemory : Pass<"dyna-verify-memory", "::mlir::ModuleOp"> {
  let summary = "Proves that no value is overwritten while it is needed.";
  let description = [{
    Walks every `dyna.function` in order and tracks, for each value, whether something
    was written that is not provably disjoint from it for all numbers of tokens. Checks that
    no op reads such a value, that an op overwrites its own operand only by the rules
    of `Values.h`, that accumulators are added to in place, that returned values lie where they
    are returned to (or are copied safely), that arguments are left alone, and that all lies
    aligned and within its tier or workspace. The tiers of a layer, and where arguments and
    results lie in them, are those that `dyna-plan-memory` derives from its functions; an op
    writes outside of workspace only what the function returns there; the workspace ends
    where the last value in it does. Where in it they lie is not asked. The functions of a layer that
    compute accept the same parameters in sparse form. Changes nothing.
    Per function linear in its values, times how many of them are alive together.
  }];
}

#endif // DYNA_PASSES_MEMORY_PASSES_TD
