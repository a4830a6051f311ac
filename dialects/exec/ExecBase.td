//===- ExecBase.td - The exec dialect, and what its ops have *- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_EXEC_EXECBASE_TD
#define DYNA_DIALECTS_EXEC_EXECBASE_TD

include "dialects/dist/DistBase.td"
include "dialects/exec/ExecEnums.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let cppNamespace = "::mlir::exec";
  let summary = "The instructions of each rank in one step, as text.";
  let description = [{
    `exec` is the readable form of `runtime/plan`. An `exec.graph` states which rank holds which
    layers and parameters under a strategy. An `exec.plan` lists the instructions of each rank for
    one mini-batch. An `exec.step` has plans of several graphs, and an `exec.switch_plan` lists what
    moves between two graphs. All are data: no code depends on them. Plans and steps are translated
    to the data that the runtime interprets, and back, without loss.
  }];
  let dependentDialects = ["::mlir::dist::DistDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

class Exec_Op<string mnemonic, list<Trait> traits = []>
    : Op<Exec_Dialect, mnemonic, !listconcat([Dyna_OnlyKnownAttributes], traits)>;

/// Holds a list of ops, which are written in it without `exec.`.
class Exec_ListOp<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, !listconcat([IsolatedFromAbove, SingleBlock, NoTerminator, NoRegionArguments,
                                     OpAsmOpInterface], traits)> {
  let extraClassDeclaration = [{
    static ::llvm::StringRef getDefaultDialect() { return "exec"; }
  }];
  let regions = (region SizedRegion<1>:$body);
  let hasRegionVerifier = 1;
}

def Exec_Index : DefaultValuedAttr<I32Attr, "0">;

#endif // DYNA_DIALECTS_EXEC_EXECBASE_TD
