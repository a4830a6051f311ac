//===- DynaBase.td - The dyna dialect, its types and attributes -*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DYNABASE_TD
#define DYNA_DIALECTS_DYNA_DYNABASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Dyna_Dialect : Dialect {
  let name = "dyna";
  let cppNamespace = "::mlir::dyna";
  let summary = "The logical graph of a transformer and its layer functions.";
  let description = [{
    `dyna` describes a transformer language model without devices. Parameters are symbols. A layer
    is a function over ragged, token-major tensors `[T, features]`. A model calls its layers in a
    chain, so equal layers share one function.

    The differentiate phase turns every `dyna.layer` into `dyna.function`s, one per role (forward,
    backward, recomputation, update). The memory phase gives each of their values a place, and code
    generation compiles them.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

/// Every op of this project: an attribute that it does not know is an error.
def Dyna_OnlyKnownAttributes : NativeOpTrait<"OnlyKnownAttributes"> {
  let cppNamespace = "::mlir::dyna::OpTrait";
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Dyna_Type<string name, string typeMnemonic> : TypeDef<Dyna_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Dyna_SegmentsType : Dyna_Type<"Segments", "segments"> {
  let summary = "Where the samples of a micro-batch begin and end.";
  let description = [{
    One row per segment: `{sample, q_begin, q_len, kv_begin, kv_len, position0}`,
    64-bit integers (`dyna_segment` in `runtime/abi/Abi.h`). The segments cover the
    tokens of the micro-batch without gap or overlap. Equal segments describe a
    padded micro-batch, a query range shorter than its key/value range a slice.
  }];
}

def Dyna_Float : AnyTypeOf<[F64, F32, BF16], "f64, f32 or bf16">;

/// `[T, features]`: ragged samples laid end to end.
def Dyna_Activation : Type<
    And<[RankedTensorOf<[Dyna_Float]>.predicate, CPred<"::mlir::dyna::isTokenMajor($_self, 2)">]>,
    "token-major tensor [?, features] of f64, f32 or bf16", "::mlir::RankedTensorType">;

def Dyna_Ids : Type<
    And<[RankedTensorOf<[I32]>.predicate, CPred<"::mlir::dyna::isTokenMajor($_self, 1)">]>,
    "token ids [?] of i32", "::mlir::RankedTensorType">;

class Dyna_Static<int rank, Type element, string what> : Type<
    And<[RankedTensorOf<[element]>.predicate,
         CPred<"::mlir::cast<::mlir::RankedTensorType>($_self).getRank() == " # rank>,
         CPred<"::mlir::dyna::isSized($_self)">]>,
    what, "::mlir::RankedTensorType">;
def Dyna_Matrix : Dyna_Static<2, Dyna_Float, "static matrix of f64, f32 or bf16">;
def Dyna_Vector : Dyna_Static<1, Dyna_Float, "static vector of f64, f32 or bf16">;
def Dyna_Scalar : Type<
    And<[RankedTensorOf<[F64]>.predicate,
         CPred<"::mlir::cast<::mlir::RankedTensorType>($_self).getShape() == ::llvm::ArrayRef<int64_t>{1}">]>,
    "tensor<1xf64>", "::mlir::RankedTensorType">,
    BuildableType<"::mlir::RankedTensorType::get({1}, $_builder.getF64Type())">;
def Dyna_StaticTensor : Type<
    And<[RankedTensorOf<[Dyna_Float]>.predicate, CPred<"::mlir::dyna::isSized($_self)">]>,
    "static tensor of f64, f32 or bf16", "::mlir::RankedTensorType">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// An optional attribute that builders need not name.
class Dyna_OptionalAttr<Attr attr> : OptionalAttr<attr> {
  let returnType = "::std::optional<" # attr.storageType # ">";
  let convertFromStorage = "$_self ? " # returnType # "($_self) : (::std::nullopt)";
  let constBuilderCall =
      "::std::optional<" # attr.storageType # ">($0).value_or(" # attr.storageType # "())";
  let defaultValue = "::std::nullopt";
}

def Dyna_Memory : I32EnumAttr<"Memory", "which memory a value lies in", [
    I32EnumAttrCase<"Parameter", 0, "parameter">,
    I32EnumAttrCase<"Gradient", 1, "gradient">,
    I32EnumAttrCase<"Input", 2, "input">,
    I32EnumAttrCase<"Output", 3, "output">,
    I32EnumAttrCase<"SavedInput", 4, "saved_input">,
    I32EnumAttrCase<"Products", 5, "products">,
    I32EnumAttrCase<"Elementwise", 6, "elementwise">,
    I32EnumAttrCase<"Deferred", 7, "deferred">,
    I32EnumAttrCase<"Workspace", 8, "workspace">,
    I32EnumAttrCase<"Segments", 9, "segments">]> {
  let cppNamespace = "::mlir::dyna";
  let genSpecializedAttr = 0;
}

class Dyna_Attr<string name, string attrMnemonic> : AttrDef<Dyna_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Dyna_PlaceAttr : Dyna_Attr<"Place", "place"> {
  let summary = "The place of a value of a layer function.";
  let description = [{
    `parameter`, `gradient`, `input` and `output` are arrays of tensors of the layer function's
    signature and have an `index`. `saved_input`, `products`, `elementwise`, `deferred` (the saved
    tiers) and `workspace` are blocks of bytes. A value in a block begins at
    `tq*Tq + tkv*Tkv + s*S + constant` bytes, with Tq, Tkv and S rounded up as `runtime/abi/Abi.h`
    says. Before the memory phase the offset of a value in a tier is not yet known and left out.

    Constraints:
    - (PLACE1) `index` is not negative, and 0 for a block of bytes and for `segments`.
    - (PLACE2) offsets are not negative, and 0 for everything but a block of bytes.
    - (PLACE3) `column` and `stride` are not negative, and 0 for everything but a block of bytes;
      without a stride there is no column.

    With `stride`, the values of several places lie side by side from the offset on. Rows are
    `stride` bytes apart, and this value begins `column` bytes behind the start of each row.

    Example: `#dyna.place<gradient, index = 3>`,
    `#dyna.place<workspace, tq = 1536, constant = 64>`,
    `#dyna.place<products, column = 1536, stride = 4608>`.
  }];
  let parameters = (ins
    EnumParameter<Dyna_Memory>:$memory,
    DefaultValuedParameter<"int64_t", "0">:$index,
    DefaultValuedParameter<"int64_t", "0">:$tq,
    DefaultValuedParameter<"int64_t", "0">:$tkv,
    DefaultValuedParameter<"int64_t", "0">:$s,
    DefaultValuedParameter<"int64_t", "0">:$constant,
    DefaultValuedParameter<"int64_t", "0">:$column,
    DefaultValuedParameter<"int64_t", "0">:$stride);
  let assemblyFormat = [{
    `<` $memory (`,` struct($index, $tq, $tkv, $s, $constant, $column, $stride)^)? `>`
  }];
  let builders = [
    AttrBuilder<(ins "Memory":$memory, CArg<"int64_t", "0">:$index), [{
      return $_get($_ctxt, memory, index, 0, 0, 0, 0, 0, 0);
    }]>,
    AttrBuilder<(ins "Memory":$memory, "int64_t":$index, "const ::dyna::LinearBytes &":$offset,
                     CArg<"int64_t", "0">:$column, CArg<"int64_t", "0">:$stride), [{
      return $_get($_ctxt, memory, index, offset.tq, offset.tkv, offset.s, offset.constant, column, stride);
    }]>];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether the place is an entry of an array of tensors in the signature.
    bool isArrayEntry() const {
      return getMemory() == Memory::Parameter || getMemory() == Memory::Gradient ||
             getMemory() == Memory::Input || getMemory() == Memory::Output;
    }
    /// Whether the place is an offset into a block of bytes.
    bool isBlock() const { return !isArrayEntry() && getMemory() != Memory::Segments; }
    /// Where in its block of bytes the value begins.
    ::dyna::LinearBytes getOffset() const { return {getTq(), getTkv(), getS(), getConstant()}; }
    /// The place of everything that lies side by side with this.
    PlaceAttr getBlock() const { return get(getContext(), getMemory(), getIndex(), getOffset()); }
  }];
}
def Dyna_PlaceArrayAttr : TypedArrayAttrBase<Dyna_PlaceAttr, "array of places">;

def Dyna_ShardAttr : Dyna_Attr<"Shard", "shard"> {
  let summary = "This rank's part of a table whose rows are dealt to the ranks of a group.";
  let description = [{
    The whole table has `rows` rows. Rank i of the k ranks of group `group` of the
    context holds rows `[i*ceil(rows/k), (i+1)*ceil(rows/k))`, clipped, possibly none
    (`dyna_part_begin` in `runtime/abi/Collectives.h`). The static row count of the local table is
    the same on every rank. Rows beyond the rank's part are padding, which is never read nor
    written.

    Constraints:
    - (SHARD1) `group` is not negative.
    - (SHARD2) `rows` is positive.

    Example: `#dyna.shard<group = 1, rows = 257>`.
  }];
  let parameters = (ins "int64_t":$group, "int64_t":$rows);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dyna_RopeScalingAttr : Dyna_Attr<"RopeScaling", "rope_scaling"> {
  let summary = "How a rotation is scaled for samples longer than those that a model was trained on.";
  let description = [{
    There are two scalings of HuggingFace's configurations. `linear` has `factor` alone, which
    divides every frequency. `llama3` has all parameters. Let `L = original_positions`, and the
    wavelength of a frequency `2 pi / frequency`:

    - A frequency with a wavelength above `L / low_freq_factor` is divided by `factor`.
    - A frequency with a wavelength below `L / high_freq_factor` stays.
    - In between the two are mixed. The share of the undivided frequency is
      `(L / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor)`.

    Constraints:
    - (ROPE1) `factor` is an f64 of at least 1, and finite.
    - (ROPE2) `low_freq_factor`, `high_freq_factor` and `original_positions` are all there or none.
    - (ROPE3) `0 < low_freq_factor < high_freq_factor`, both f64 and finite; `original_positions` is positive.

    Examples: `#dyna.rope_scaling<factor = 4.0>`,
    `#dyna.rope_scaling<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_positions = 8192>`.
  }];
  let parameters = (ins "::mlir::FloatAttr":$factor,
    OptionalParameter<"::mlir::FloatAttr">:$low_freq_factor,
    OptionalParameter<"::mlir::FloatAttr">:$high_freq_factor,
    DefaultValuedParameter<"int64_t", "0">:$original_positions);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dyna_StoredAttr : Dyna_Attr<"Stored", "stored"> {
  let summary = "Where a parameter is stored in a checkpoint.";
  let description = [{
    The tensor `name` of the checkpoint's file holds the parameter. With `parts` it holds that many
    parameters one after another along their first dimension; this one is number `part`. A tensor
    that is `transposed` has the dimensions of a matrix, or of all its parts together, exchanged.
    Files that are read may have the tensor a second time, as `copy`. Files of models that share one
    tensor often do.

    Constraints:
    - (STORED1) `name` is not empty, and `copy` neither empty nor `name`.
    - (STORED2) `part` is one of `parts` numbers from 0.

    Examples: `#dyna.stored<name = "model.norm.weight">`,
    `#dyna.stored<name = "h.0.attn.c_attn.weight", part = 1, parts = 3, transposed = true>`,
    `#dyna.stored<name = "wte.weight", copy = "lm_head.weight">`.
  }];
  let parameters = (ins StringRefParameter<"name of the tensor">:$name,
    DefaultValuedParameter<"int64_t", "0">:$part,
    DefaultValuedParameter<"int64_t", "1">:$parts,
    DefaultValuedParameter<"bool", "false">:$transposed,
    OptionalParameter<"::mlir::StringAttr">:$copy);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dyna_FactsAttr : Dyna_Attr<"Facts", "facts"> {
  let summary = "Facts of a model that the training binary needs beside its layers.";
  let description = [{
    `family` names the family whose programs can load saved models, or is `custom`. `vocabulary` is
    the number of token ids, and `positions` the longest sample (0: no limit). `config` is the
    family's own configuration as JSON, copied into saved models. The other numbers are 0 if layers
    differ. The verifier of `dyna.model` compares all of them with the layers.

    Checkpoints that are read may leave out the `prefix` of the names of their tensors, or have it
    although this model has none. Their tensors whose names end in one of `buffers` are no
    parameters, and are skipped. `defaults` is JSON, too: fields that programs assume if a saved
    `config` lacks them. All three may be absent.

    Constraints:
    - (FACTS1) `buffers` are strings, none of them empty.
  }];
  let parameters = (ins
    StringRefParameter<"naming family">:$family, "int64_t":$vocabulary,
    "int64_t":$positions, "int64_t":$width, "int64_t":$heads, "int64_t":$kv_heads,
    "int64_t":$head_dim, "int64_t":$feed_forward,
    StringRefParameter<"configuration as JSON">:$config,
    OptionalParameter<"::mlir::StringAttr">:$prefix,
    OptionalParameter<"::mlir::ArrayAttr">:$buffers,
    OptionalParameter<"::mlir::StringAttr">:$defaults);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Dyna_Role : I32EnumAttr<"Role", "what a layer function does", [
    I32EnumAttrCase<"Evaluate", 0, "evaluate">,
    I32EnumAttrCase<"Forward", 1, "forward">,
    I32EnumAttrCase<"RecomputeSelective", 2, "recompute_selective">,
    I32EnumAttrCase<"RecomputeFull", 3, "recompute_full">,
    I32EnumAttrCase<"Backward", 4, "backward">,
    I32EnumAttrCase<"BackwardInput", 5, "backward_input">,
    I32EnumAttrCase<"BackwardWeight", 6, "backward_weight">,
    I32EnumAttrCase<"Update", 7, "update">,
    I32EnumAttrCase<"GradNorm", 8, "grad_norm">,
    I32EnumAttrCase<"Cast", 9, "cast">]> {
  let cppNamespace = "::mlir::dyna";
  let genSpecializedAttr = 0;
}
def Dyna_RoleAttr : EnumAttr<Dyna_Dialect, Dyna_Role, "role">;

def Dyna_GeluForm : I32EnumAttr<"GeluForm", "how gelu is computed", [
    I32EnumAttrCase<"Tanh", 0, "tanh">, I32EnumAttrCase<"Erf", 1, "erf">]> {
  let cppNamespace = "::mlir::dyna";
  let genSpecializedAttr = 0;
}
def Dyna_GeluFormAttr : EnumAttr<Dyna_Dialect, Dyna_GeluForm, "gelu_form">;

#endif // DYNA_DIALECTS_DYNA_DYNABASE_TD
