//===- DistInterfaces.td - How ops say what splits they allow --*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DIST_DISTINTERFACES_TD
#define DYNA_DIALECTS_DIST_DISTINTERFACES_TD

include "mlir/IR/OpBase.td"

def Dist_LayoutRuleOpInterface : OpInterface<"LayoutRuleOpInterface"> {
  let cppNamespace = "::mlir::dist";
  let description = [{
    An op that can run on parts of its tensors. It says how in a factor rule
    (dialects/dist/FactorRule.h); deduction of layouts does the rest.
  }];
  let methods = [
    InterfaceMethod<"The factors of the op's dimensions.",
                    "::mlir::dist::FactorRule", "getLayoutRule", (ins)>,
  ];
}

def Dist_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::mlir::dist";
  let description = [{
    An op with one operand, `x`, and one result. One step of `runtime/layout/Reshard.h` leads from
    the layout of the operand to that of the result.
  }];
  let methods = [
    InterfaceMethod<"", "::mlir::Value", "getX">,
    InterfaceMethod<"The ranks of the step.", "::mlir::dist::GroupAttr", "getGroup">,
    InterfaceMethod<"The step's kind and dimensions; its group and layouts are left out.",
                    "::dyna::ReshardStep", "getStep">,
  ];
  let extraClassDeclaration = [{
    /// Whether ranks have to meet.
    bool isExchange() { return getStep().kind != ::dyna::ReshardKind::Slice; }
  }];
}

#endif // DYNA_DIALECTS_DIST_DISTINTERFACES_TD
