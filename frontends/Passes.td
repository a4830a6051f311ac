//===- Passes.td - Passes over models of families ---------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_PASSES_TD
#define DYNA_FRONTENDS_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckFamilies : Pass<"dyna-check-families", "::mlir::ModuleOp"> {
  let summary = "Compares models with their families, and sets where their parameters are stored.";
  let description = [{
    The input is a module of parameters, layers and models. The fact `family` of a model names one
    of the families in `frontends/Families.def`, or is `custom`. Programs of that family load saved
    models, so the model must be one of it. A parameter without `stored` gets the one of the
    family's front end. Facts without `prefix`, `buffers` or `defaults` get those of the front end
    too. Everything else is left alone. `dynac`, `dyna-translate` and `dyna-plan` run this pass on
    every module that they read.

    Constraints:
    - (FAMILY1) `family` is custom, or the name of a family.
    - (FAMILY2) no fact of a named family is 0 if the layers say another number.
    - (FAMILY3) the layers of a named family have its ops, and no others.
    - (FAMILY4) `config` of a named family agrees with the layers in each of its fields, also in
      fields that it leaves out. Any other `config` has sizes that agree with the facts. Its
      `model_type` is no named family, nor differs from one in case and signs alone (`GPT-2`).
    - (FAMILY5) the layers of a named family have parameters with its names and shapes. They compute
      what its front end writes for the same sizes and options.
    - (FAMILY6) parameters of a named family are stored as its front end says, or do not say it.
  }];
}

#endif // DYNA_FRONTENDS_PASSES_TD
