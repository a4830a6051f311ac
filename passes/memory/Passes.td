//===- Passes.td - The memory phase -----------------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PASSES_TD
#define DYNA_PASSES_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def SetTarget : Pass<"dyna-set-target", "::mlir::ModuleOp"> {
  let summary = "Sets the target for which the module is planned.";
  let description = [{
    Writes `dyna.target` onto the module. Later passes and code generation read it; the struct
    `Target` (`Target.h`) has all that differs between targets. The default is the CPU, for which no
    attribute is written. Without the option the module stays as it is. Sweeps and places are not
    planned twice, so a module whose functions have places for one target is refused for another. A
    module with an op that the target's kernels do not support is refused too, such as heads of more
    than 256 elements on CUDA.
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let options = [
    Option<"target", "target", "std::string", "\"\"", "cpu or cuda; empty: as the module says">];
}

def FuseRows : Pass<"dyna-fuse-rows", "::mlir::dyna::FunctionOp"> {
  let summary = "Gathers row-wise ops into sweeps over the rows.";
  let description = [{
    Does three things to each function:

    - Splits the bias off every `dyna.linear`.
    - Turns the sum of a `dyna.linear_grad_input` and a value used once into the product's own
      addition.
    - Moves every row-wise op into a `dyna.rows`, so values between ops of one sweep never go
      through memory.

    Sweeps have one width. A rotary op's operand and an accumulator come from outside of its sweep.
    If possible, a sweep stands directly behind a matrix product that feeds it. `RowGroups.h`
    decides which ops share a sweep; other ops keep their order as far as the sweeps permit.

    For CUDA no product hands rows to a sweep. Instead the pass cuts operations that its library
    does behind a product out of sweeps: a bias, a bias with gelu, the gradient of gelu. It puts
    them directly behind the product if that moves fewer bytes (`Epilogues.h`).

    Removes ops without uses. Needs about n log n for n ops of a function, whichever earlier values
    they read. To keep this bound, searches for paths are bounded. In addition, a sweep with more
    than 64 neighbours is not compared with all of them each time that it grows. The pass is slower
    only if very many matrix products feed one sweep, or one sweep keeps very many pairs apart
    (`RowGroups.h`).
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let statistics = [
    Statistic<"numRowWise", "num-row-wise", "Row-wise ops">,
    Statistic<"numSweeps", "num-sweeps", "Sweeps made">,
    Statistic<"numEpilogues", "num-epilogues", "Sweeps directly behind their matrix product">,
    Statistic<"numSteps", "num-steps", "Edges, members and pairs looked at to decide">];
}

def JoinProducts : Pass<"dyna-join-products", "::mlir::dyna::FunctionOp"> {
  let summary = "Moves products that can run as one next to each other.";
  let description = [{
    Looks for the runs of `ProductRuns.h`: query, key and value, gate and up, and their gradients.
    Moves the products of a run together if no other op's operands forbid it: in forward behind the
    first, gradients to the last. Their epilogues follow them, as one sweep if the rows have one
    width. All else stays where it is. Linear in the number of ops, except for sorting.
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let statistics = [
    Statistic<"numRuns", "num-runs", "Runs of products brought together">,
    Statistic<"numProducts", "num-products", "Products in them">];
}

def AcceptSparse : Pass<"dyna-accept-sparse", "::mlir::ModuleOp"> {
  let summary = "Lets weights of matrix products come in sparse form.";
  let description = [{
    Writes `sparse` onto functions that compute. It lists the parameters of the layer that are
    matrices, and that matrix products alone use in all of its functions. Generated code then checks
    at each such product which form the weight has, and calls one kernel or the other. Weights of
    embeddings and heads stay dense. Nothing else changes. CUDA has no such kernels and is refused.
    Linear in the number of ops.
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let statistics = [
    Statistic<"numWeights", "num-weights", "Weights of layers that may be sparse">];
}

def PlanMemory : Pass<"dyna-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every value of the layer functions a place.";
  let description = [{
    Lays out the saved tiers of every layer (`tiers`). Packs the other values of each function, by
    their lifetimes, into workspace (`places` of the ops, `workspace` of the function). Values that
    the function returns are computed at the place to which they are returned. A value returned to
    several places lies at the first. The code of `dyna.return` copies an argument that is returned
    elsewhere.

    Results of products that follow each other and could run as one (`ProductRuns.h`) lie side by
    side, in one block. Each row of the block has a row of each result. This needs that all ops that
    use them accept a stride.

    Offsets are linear in tokens. Constant-size values come first, then those with a row per token,
    packed by bytes per token. The cost per function is n log n for n values, times the number of
    values alive together and the number of packings tried (`Packing.h`).
  }];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
}

def VerifyMemory : Pass<"dyna-verify-memory", "::mlir::ModuleOp"> {
  let summary = "Verifies that no value is overwritten while it is needed.";
  let description = [{
    Walks every `dyna.function` in order. A value counts as overwritten if a write is not provably
    disjoint from it for all numbers of tokens. The pass checks that

    - no op reads an overwritten value;
    - an op overwrites its own operand only by the rules of `Values.h`;
    - accumulators are added to in place;
    - returned values lie at the place to which they are returned, or are copied safely;
    - arguments are left alone;
    - all values are aligned and within their tier or workspace;
    - the tiers of a layer, and the places of arguments and results in them, are those that
      `dyna-plan-memory` derives from its functions;
    - an op writes outside of workspace only what the function returns there;
    - the workspace ends where its last value ends (positions inside of it are free);
    - the functions of a layer that compute accept the same parameters in sparse form.

    Changes nothing. The cost per function is linear in its values, times the number of values alive
    together.
  }];
}

#endif // DYNA_PASSES_MEMORY_PASSES_TD
