//===- ExecEnums.td - Modes of instructions ----------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Apart from the ops, as enums are generated from all that a file includes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_EXECENUMS_TD
#define DYNA_DIALECTS_EXEC_EXECENUMS_TD

include "mlir/IR/EnumAttr.td"

/// The numbers are those of runtime/plan/program/Plan.h.
def Exec_Recompute : I32EnumAttr<"Recompute", "what backward recomputes", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Selective", 1, "selective">,
    I32EnumAttrCase<"Full", 2, "full">]> {
  let cppNamespace = "::mlir::exec";
}

/// The kind of data that a switch moves.
def Exec_Moved : I32EnumAttr<"Moved", "what moves between graphs", [
    I32EnumAttrCase<"Values", 0, "values">,
    I32EnumAttrCase<"Gradients", 1, "gradients">]> {
  let cppNamespace = "::mlir::exec";
}

/// Those of runtime/plan/graph/PersistentLayout.h that move.
def Exec_ParameterPart : I32EnumAttr<"ParameterPart", "a tensor of a parameter", [
    I32EnumAttrCase<"Master", 0, "master">,
    I32EnumAttrCase<"Copy", 1, "copy">,
    I32EnumAttrCase<"Gradient", 2, "gradient">]> {
  let cppNamespace = "::mlir::exec";
}

/// Those of runtime/plan/graph/SwitchPlan.h.
def Exec_SwitchPlace : I32EnumAttr<"SwitchPlace", "where a rank has a box", [
    I32EnumAttrCase<"Old", 0, "old">,
    I32EnumAttrCase<"New", 1, "new">,
    I32EnumAttrCase<"Passing", 2, "passing">]> {
  let cppNamespace = "::mlir::exec";
}

#endif // DYNA_DIALECTS_EXEC_EXECENUMS_TD
