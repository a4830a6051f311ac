//===- DynaInterfaces.td - Interfaces of dyna ops ---------------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DYNAINTERFACES_TD
#define DYNA_DIALECTS_DYNA_DYNAINTERFACES_TD

include "mlir/IR/OpBase.td"

def Dyna_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op that reverse-mode differentiation can pass through. The differentiate phase visits the ops
    of a layer from last to first. Each op adds its contribution to the gradients of its operands.
  }];
  let methods = [
    InterfaceMethod<
      "Adds the gradients of the operands, given those of the results, through "
      "`gradients` (dialects/dyna/Gradients.h). Called only if some result has one.",
      "void", "buildGradient", (ins "::mlir::dyna::GradientBuilder &":$gradients)>,
  ];
}

def Dyna_ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op that multiplies matrices, be it inside: linear layers, attention, the head.
    Steps are planned by its work, and its results are kept under selective
    recomputation. All other ops cost what they move, and are cheap to repeat.
  }];
  let methods = [
    InterfaceMethod<
      "The flops of its matrix products; by default those of its only one.",
      "::mlir::dyna::Work", "getWork", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/"return ::mlir::dyna::workOf($_op.getProduct());">,
  ];
}

def Dyna_Product : DeclareOpInterfaceMethods<Dyna_ProductOpInterface, ["getWork"]>;

def Dyna_MatrixProductOpInterface
    : OpInterface<"MatrixProductOpInterface", [Dyna_ProductOpInterface]> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op that is one product of an activation with a matrix, or of two activations
    into one. Those of one activation, with matrices that are neighbours, can run as
    one (passes/memory/value/ProductRuns.h).
  }];
  let methods = [
    InterfaceMethod<"What is multiplied, and added to what.",
                    "::mlir::dyna::MatrixProduct", "getProduct">,
  ];
}

def Dyna_MatrixProduct : DeclareOpInterfaceMethods<Dyna_MatrixProductOpInterface>;

def Dyna_AccumulatingOpInterface : OpInterface<"AccumulatingOpInterface"> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op with results that are an operand with something added, or, in `adamw`, put in its place.
    Operand and result always lie at one place.
  }];
  let methods = [
    InterfaceMethod<
      "Each such operand with its result; by default `accumulator` and `result`. Of "
      "`rows`, the operands are those from outside, the results its own.",
      "::mlir::dyna::Accumulations", "getAccumulations", (ins), /*methodBody=*/"",
      /*defaultImplementation=*/[{
        return {::mlir::dyna::accumulation($_op.getAccumulator(), $_op.getResult())};
      }]>,
  ];
}

/// An op that adds to `accumulator`, and one that says itself to what it adds.
def Dyna_Accumulates : DeclareOpInterfaceMethods<Dyna_AccumulatingOpInterface>;
def Dyna_AccumulatesSeveral
    : DeclareOpInterfaceMethods<Dyna_AccumulatingOpInterface, ["getAccumulations"]>;

def Dyna_TableOpInterface : OpInterface<"TableOpInterface"> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op that looks rows up in a table over the vocabulary, or adds to them. The rows
    can be dealt to the ranks of a group: `shard` then says which part this one has.
  }];
  let methods = [
    InterfaceMethod<"The operand that is the table, or this rank's part of it.",
                    "::mlir::Value", "getTable">,
    InterfaceMethod<"Null: the whole table.", "::mlir::dyna::ShardAttr", "getShardAttr">,
    InterfaceMethod<"", "void", "setShardAttr", (ins "::mlir::dyna::ShardAttr":$shard)>,
  ];
}

def Dyna_ExchangingOpInterface : OpInterface<"ExchangingOpInterface"> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op that needs numbers of other ranks in its middle, so its kernel exchanges with them by
    itself. The verification of plans uses the exchanges that it lists.
  }];
  let methods = [
    InterfaceMethod<"One after another; none where this rank has all that it needs.",
                    "::mlir::dyna::InnerExchanges", "getInnerExchanges">,
  ];
}

def Dyna_Exchanges : DeclareOpInterfaceMethods<Dyna_ExchangingOpInterface>;

def Dyna_BatchTableOpInterface : OpInterface<"BatchTableOpInterface"> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op that reads a table of a micro-batch's rows. The host can make this table for targets whose
    code reads it.
  }];
  let methods = [
    InterfaceMethod<"Which table.", "::mlir::dyna::BatchTable", "getBatchTable">,
  ];
}

def Dyna_ReadsBatchTable : DeclareOpInterfaceMethods<Dyna_BatchTableOpInterface>;

/// Constraints on `places`, where it is present:
///   - (PLACES1) the number of places is that of the results, or one more;
///   - (PLACES2) the place of scratch is in `workspace`.
def Dyna_PlacedOpInterface : OpInterface<"PlacedOpInterface"> {
  let cppNamespace = "::mlir::dyna";
  let description = [{
    An op whose results the memory phase gives places: one per result and at most one
    more, for scratch.
  }];
  let methods = [
    InterfaceMethod<"An array of places; null before the memory phase.",
                    "::mlir::ArrayAttr", "getPlacesAttr">,
    InterfaceMethod<"", "void", "setPlacesAttr", (ins "::mlir::ArrayAttr":$places)>,
  ];
  let extraClassDeclaration = [{
    /// The place of a result, or, behind them all, of scratch; null if there is none.
    ::mlir::dyna::PlaceAttr getPlace(unsigned index) {
      ::mlir::ArrayAttr places = getPlacesAttr();
      return places && index < places.size()
                 ? ::llvm::cast<::mlir::dyna::PlaceAttr>(places[index])
                 : ::mlir::dyna::PlaceAttr();
    }
  }];
  let verify = [{
    return ::mlir::dyna::check::verifyPlaces(
        $_op, ::llvm::cast<::mlir::dyna::PlacedOpInterface>($_op).getPlacesAttr());
  }];
}

class Dyna_Trait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::mlir::dyna::OpTrait";
}

/// Row t of every result depends only on row t of the token-major operands, on parameters, and on
/// the sample and position of row t. Such ops fuse into one sweep over the rows. Accumulating ones
/// (gradients of vectors) add over rows.
def Dyna_RowWise : Dyna_Trait<"RowWise">;

/// In addition each feature of a result, or what a row adds to it, depends only on that feature of
/// the token-major operands. No op needs a row as a whole.
def Dyna_ElementwiseOnly : Dyna_Trait<"Elementwise">;
def Dyna_Elementwise : TraitList<[Dyna_RowWise, Dyna_ElementwiseOnly]>;

/// A feature also depends on another one, far away in the row. So the operand is read from memory,
/// and both features are loaded before either is stored.
def Dyna_PairsFeatures : Dyna_Trait<"PairsFeatures">;

/// Tokens are counted from the first of the micro-batch: on a rank that has a
/// part of them the op carries `dist.tokens`.
def Dyna_CountsTokens : Dyna_Trait<"CountsTokens">;

/// Features are counted from the first of the row: on a rank that has a part of them
/// the op carries `dist.features`.
def Dyna_CountsFeatures : Dyna_Trait<"CountsFeatures">;

/// Activations are read and written row by row. There may be columns of other values between one
/// row and the next (`stride` of a place).
def Dyna_AnyStride : Dyna_Trait<"AnyStride">;

#endif // DYNA_DIALECTS_DYNA_DYNAINTERFACES_TD
