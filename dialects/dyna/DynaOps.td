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

/// An op that computes tensors. The memory phase sets `places`.
class Dyna_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Dyna_Op<mnemonic, !listconcat([Pure, Dyna_PlacedOpInterface], traits)> {
  dag places = (ins Dyna_OptionalAttr<Dyna_PlaceArrayAttr>:$places);
}

include "dialects/dyna/DynaStructureOps.td"
include "dialects/dyna/DynaModelOps.td"
include "dialects/dyna/DynaGradientOps.td"

#endif // DYNA_DIALECTS_DYNA_DYNAOPS_TD
