//===- Passes.td - Passes over models of families ---------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_FRONTENDS_PASSES_TD
#define DYNA_FRONTENDS_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckFamilies : Pass<"dyna-check-families", "::mlir::ModuleOp"> {
  let summary = "Compares models with their families, and says where their parameters are stored.";
  let description = [{
    Takes a module of parameters, layers and models. The fact `family` of a model names one of the
    families in `frontends/Families.def`, or is `custom`. Programs of that family load saved models,
    so the model must be one of it. A parameter that does not say where it is stored then says it as
    the family's front end does, and so do the facts with what is accepted of files; this is how a
    module without `stored` is read. Everything else is left alone. `dynac`, `dyna-translate` and
    `dyna-plan` do this with every module that they read.

    Constraints:
    - (FAMILY1) `family` is custom, or the name of a family.
    - (FAMILY2) no fact of a named family is 0 if the layers say another number.
    - (FAMILY3) the layers of a named family have its ops, and no others.
    - (FAMILY4) `config` of a named family says in each of its fields, or by leaving it out, what the
      layers say. Any other has sizes that agree with the facts, and no `model_type` of a named
      family, nor one that differs from it in case and signs alone (`GPT-2`).
    - (FAMILY5) the layers of a named family compute, from parameters with its names and shapes, what
      its front end writes for the same sizes and options.
    - (FAMILY6) parameters of a named family are stored as its front end says, or do not say it.
  }];
}

#endif // DYNA_FRONTENDS_PASSES_TD
