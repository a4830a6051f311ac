//===- Passes.td - The differentiate phase ----------------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_PASSES_TD
#define DYNA_PASSES_DIFFERENTIATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertComputeType : Pass<"dyna-convert-compute-type", "::mlir::ModuleOp"> {
  let summary = "Changes the floating-point type in which a model computes.";
  let description = [{
    Rewrites the element type of all parameters, of all activations in layers and of
    the layer calls of models. The loss stays f64, and the row statistics of attention
    take the accumulator type (f32; f64 under f64). Token ids and segments are left
    alone. Must run before `dyna-differentiate`.
  }];
  let options = [Option<"type", "type", "std::string", /*default=*/"\"f32\"",
                        "The compute type: f64, f32 or bf16.">];
}

def Differentiate : Pass<"dyna-differentiate", "::mlir::ModuleOp"> {
  let summary = "Makes the layer functions of every layer by reverse-mode differentiation.";
  let description = [{
    The input has parameters, layers and models. For every `dyna.layer @L` the pass adds one
    `dyna.function @L.<role>` per role. Every argument and result names the memory in which it lies;
    offsets inside the saved tiers come with the memory phase. The roles are:

    - `evaluate`: the layer without dropout.
    - `forward`: also returns the values that backward reads. Some follow from the layer's input,
      its parameters and other saved values without a matrix product or attention. These lie in the
      tier `elementwise`, the others in `products`. A loss becomes
      `dyna.linear_cross_entropy_train`, which makes its gradients in forward.
    - `recompute_selective`, `recompute_full`: make the tier `elementwise`, or both,
      again. Layers with a loss have none: their forward also adds to gradients.
    - `backward`, and its halves `backward_input` and `backward_weight`, which pass
      gradients through the tier `deferred`.
    - `update`, `grad_norm` and, where the parameters are copies of masters in a wider
      type, `cast`.

    Gradients of parameters are added up in the accumulator type (f32; f64 under f64). With
    `gradients=bf16` under the compute type bf16 they are added up in bf16. This halves their
    memory, and every micro-batch's contribution is rounded once when it is added.

    A parameter that is `frozen` has no accumulator in any function and no part in `update`,
    `grad_norm` and `cast`. Its weight gradient is not computed, and values that only this gradient
    needs are not saved. All calls of a layer have frozen parameters in the same places. A model
    whose parameters are all frozen is an error.

    Layers at the beginning of a model whose parameters are all frozen run forward alone:
    they have `evaluate` and `forward`, and save nothing. The layer behind them gives no
    gradient of its input. If other calls of a layer need more, these calls name a copy of
    it (`variant_of`). With `freezable`, a layer that is called has copies. There is one for each
    way in which its parameters, and those of all layers before, can be frozen.

    The functions hold no dead and no repeated ops. Everything that
    `dyna-verify-differentiated` checks holds afterwards: DIFF1 to DIFF6 and DIFF8 are checked
    here, DIFF7 holds by construction.
  }];
  let options = [Option<"gradients", "gradients", "std::string", /*default=*/"\"\"",
                        "Type in which gradients of parameters are added up: f32 or bf16; "
                        "empty: the accumulator type.">,
                 Option<"freezable", "freezable", "bool", /*default=*/"false",
                        "Make the functions with which a run can freeze layers.">];
  let dependentDialects = ["::mlir::dyna::DynaDialect"];
  let statistics = [
    Statistic<"numLayers", "num-layers", "Layers differentiated">,
    Statistic<"numProducts", "num-products", "Values in the tier products">,
    Statistic<"numElementwise", "num-elementwise", "Values in the tier elementwise">,
    Statistic<"numRepeated", "num-repeated", "Values that sweeps of backward repeat">];
}

def VerifyDifferentiated : Pass<"dyna-verify-differentiated", "::mlir::ModuleOp"> {
  let summary = "Checks that the functions of every layer fit together and are its derivative.";
  let description = [{
    Checks what holds after the differentiate phase:

    - (DIFF1) every layer has one function per role, named `@layer.role`. It has recomputation
      unless it gives a loss, and `cast` if and only if its parameters are bf16. A layer
      whose parameters are all frozen has neither halves of backward nor an optimizer's
      functions. Without a gradient of its input it has no backward and no recomputation.
    - (DIFF2) every argument and result of a function lies in a memory that its role may use. In an
      array of the signature it has the type that the layer gives that entry. Gradients have one
      element type in all layers: the accumulator type or, under bf16, bf16.
    - (DIFF3) an accumulator is returned exactly once, in its own place. Between argument and result
      it passes from op to op, and each adds to it once. A frozen parameter has none.
    - (DIFF4) all functions of a layer agree on the values of each saved tier. Forward,
      recomputation and the halves of backward have the same types in the same order.
    - (DIFF5) `evaluate` has no dropout, `recompute_selective` no matrix product and no
      attention, and neither these nor `recompute_full` and `backward_input` touch a gradient.
    - (DIFF6) no function computes what it does not need.
    - (DIFF7) every function computes its results by the ops that differentiating its layer again
      gives, whatever their order. Only this pass derives them again: later phases rewrite
      functions, and verify DIFF1 to DIFF6 and DIFF8 of them.
    - (DIFF8) a call names a layer that gives a gradient of its input if and only if some
      layer before it in the model learns.

    The layers themselves are not checked, because what a model should compute is not stated
    anywhere else. Costs as much as `dyna-differentiate`.
  }];
}

#endif // DYNA_PASSES_DIFFERENTIATE_PASSES_TD
