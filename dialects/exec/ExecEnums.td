//===- ExecEnums.td - Instructions -------------------------*- tablegen -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Apart from the ops, as enums are generated from all that a file includes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_EXECENUMS_TD
#define DYNA_DIALECTS_EXEC_EXECENUMS_TD

include "mlir/IR/EnumAttr.td"

/// The numbers are those of Plan.proto.
def Exec_Instruction : I32EnumAttr<"Instruction", "what a rank does", [
    I32EnumAttrCase<"Load", 1, "load">,
    I32EnumAttrCase<"Forward", 2, "forward">,
    I32EnumAttrCase<"Recompute", 3, "recompute">,
    I32EnumAttrCase<"Backward", 4, "backward">,
    I32EnumAttrCase<"BackwardInput", 5, "backward_input">,
    I32EnumAttrCase<"BackwardWeight", 6, "backward_weight">,
    I32EnumAttrCase<"Free", 7, "free">,
    I32EnumAttrCase<"GradNorm", 8, "grad_norm">,
    I32EnumAttrCase<"Update", 9, "update">,
    I32EnumAttrCase<"CastParams", 10, "cast_params">,
    I32EnumAttrCase<"Evaluate", 11, "evaluate">,
    I32EnumAttrCase<"SendActStart", 12, "send_act_start">,
    I32EnumAttrCase<"SendActWait", 13, "send_act_wait">,
    I32EnumAttrCase<"RecvActStart", 14, "recv_act_start">,
    I32EnumAttrCase<"RecvActWait", 15, "recv_act_wait">,
    I32EnumAttrCase<"SendGradStart", 16, "send_grad_start">,
    I32EnumAttrCase<"SendGradWait", 17, "send_grad_wait">,
    I32EnumAttrCase<"RecvGradStart", 18, "recv_grad_start">,
    I32EnumAttrCase<"RecvGradWait", 19, "recv_grad_wait">,
    I32EnumAttrCase<"ReduceGradsStart", 20, "reduce_grads_start">,
    I32EnumAttrCase<"ReduceGradsWait", 21, "reduce_grads_wait">,
    I32EnumAttrCase<"CombineNorm", 22, "combine_norm">,
    I32EnumAttrCase<"GatherParamsStart", 23, "gather_params_start">,
    I32EnumAttrCase<"GatherParamsWait", 24, "gather_params_wait">]> {
  let cppNamespace = "::mlir::exec";
}

def Exec_Recompute : I32EnumAttr<"Recompute", "what backward computes again", [
    I32EnumAttrCase<"None", 0, "none">,
    I32EnumAttrCase<"Selective", 1, "selective">,
    I32EnumAttrCase<"Full", 2, "full">]> {
  let cppNamespace = "::mlir::exec";
}

#endif // DYNA_DIALECTS_EXEC_EXECENUMS_TD
