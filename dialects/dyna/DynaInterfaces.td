//===- DynaInterfaces.td - Interfaces of dyna ops ---------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DYNAINTERFACES_TD
#define DYNA_DIALECTS_DYNA_DYNAINTERFACES_TD

include "mlir/IR/OpBase.td"

def Dyna_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op that reverse-mode differentiation can pass through. The differentiate
    phase visits the ops of a layer from last to first and asks each to add what it
    contributes to the gradients of its operands.
  }];
  let methods = [
    InterfaceMethod<
      "Adds the gradients of the operands, given those of the results, through "
      "`gradients` (dialects/dyna/Gradients.h). Called only if some result has one.",
      "void", "buildGradient", (ins "::mlir::dyna::GradientBuilder &":$gradients)>,
    InterfaceMethod<
      "Whether the op is a matrix product or attention: its results are kept under "
      "selective recomputation. All other ops are cheap to repeat.",
      "bool", "isProduct", (ins), /*methodBody=*/"", /*defaultImplementation=*/"return false;">,
  ];
}

/// Row t of every result depends only on row t of the token-major operands, on
/// parameters, and on the sample and position of row t: such ops fuse into one
/// sweep over the rows. Accumulating ones (gradients of vectors) add over rows.
def Dyna_RowWise : NativeOpTrait<"RowWise"> {
  let cppNamespace = "::mlir::dyna::OpTrait";
}

#endif // DYNA_DIALECTS_DYNA_DYNAINTERFACES_TD
