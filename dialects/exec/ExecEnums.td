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

/// The numbers are those of runtime/plan/Plan.h.
def Exec_Recompute : I32EnumAttr<"Recompute", "what backward computes again", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Selective", 1, "selective">,
    I32EnumAttrCase<"Full", 2, "full">]> {
  let cppNamespace = "::mlir::exec";
}

#endif // DYNA_DIALECTS_EXEC_EXECENUMS_TD
