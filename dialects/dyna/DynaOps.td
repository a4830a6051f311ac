//===- DynaOps.td - All ops of the dyna dialect -----------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DYNAOPS_TD
#define DYNA_DIALECTS_DYNA_DYNAOPS_TD

include "dialects/dyna/DynaBase.td"
include "dialects/dyna/DynaInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Dyna_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dyna_Dialect, mnemonic, !listconcat([Dyna_OnlyKnownAttributes], traits)>;

/// `places`, where present, has one entry per result and at most one more, for scratch:
///   - (PLACES1) the number of places is that of the results, or one more;
///   - (PLACES2) the place of scratch is in `workspace`.
def Dyna_Placed : NativeOpTrait<"Placed"> {
  let cppNamespace = "::mlir::dyna::OpTrait";
}

/// An op that computes tensors. The memory phase sets `places`.
class Dyna_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Dyna_Op<mnemonic, !listconcat([Pure, Dyna_Placed], traits)> {
  dag places = (ins OptionalAttr<Dyna_PlaceArrayAttr>:$places);
}

include "dialects/dyna/DynaStructureOps.td"
include "dialects/dyna/DynaModelOps.td"
include "dialects/dyna/DynaGradientOps.td"

#endif // DYNA_DIALECTS_DYNA_DYNAOPS_TD
