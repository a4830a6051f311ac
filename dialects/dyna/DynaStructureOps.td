//===- DynaStructureOps.td - Parameters, layers, models ---------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DYNASTRUCTUREOPS_TD
#define DYNA_DIALECTS_DYNA_DYNASTRUCTUREOPS_TD

/// Arguments are printed by the names they had in the source: each name is kept
/// as the argument's location.
def Dyna_NamedArguments : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>;

def Dyna_ParameterOp : Dyna_Op<"parameter", [Symbol]> {
  let summary = "A tensor of the model, trained or frozen.";
  let description = [{
    Declares a parameter: its shape, its initial value `constant + normal * N(0,1)`
    (counter-based, keyed by the seed and the parameter's name), and whether decoupled
    weight decay applies. Using one parameter in two calls ties them.

    A `frozen` parameter keeps its value. It has no gradient and no moments, is not part of
    reductions and of the norm, and is never updated. Layers still pass gradients through it to the
    layers before them.

    `stored` says where checkpoints have it. Without `stored` it is a tensor of its own name.

    An `added` parameter is no part of the model that the fact `family` names: it belongs to an
    adapter or to an exit. Checkpoints of that model lack it, and a run that loads one begins it
    with its initial value.

    Constraints:
    - (PARAM1) the type is a static tensor of f64, f32 or bf16 with at least one element. It fits in
      memory that 64 bits can address.
    - (PARAM2) `normal` is not negative, and both initial values are finite.
    - (PARAM3) a parameter that is stored transposed has two dimensions.
    - (PARAM4) a parameter that is stored as a part of a tensor has a dimension.

    Example:

    ```mlir
    dyna.parameter @wte : tensor<257x96xf32> normal 0.02 decay
    dyna.parameter @ln_f.weight : tensor<96xf32> constant 1.0
    dyna.parameter @wpe : tensor<1024x96xf32> normal 0.02 frozen
    dyna.parameter @h.0.attn.k.weight : tensor<96x96xf32> normal 0.02 decay
        stored<name = "h.0.attn.c_attn.weight", part = 1, parts = 3, transposed = true>
    dyna.parameter @h.0.exit.ln_f.weight : tensor<96xf32> constant 1.0 added
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type,
                       DefaultValuedAttr<F64Attr, "0.0">:$constant,
                       DefaultValuedAttr<F64Attr, "0.0">:$normal,
                       UnitAttr:$decay, UnitAttr:$frozen,
                       Dyna_OptionalAttr<Dyna_StoredAttr>:$stored, UnitAttr:$added,
                       Dyna_OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name `:` $type (`constant` $constant^)? (`normal` $normal^)? "
                       "(`decay` $decay^)? (`frozen` $frozen^)? (`stored` `` $stored^)? "
                       "(`added` $added^)? attr-dict";
  let hasVerifier = 1;
}

def Dyna_LayerOp : Dyna_Op<"layer", [FunctionOpInterface, IsolatedFromAbove, Dyna_NamedArguments]> {
  let summary = "One kind of layer: a function of parameters and activations.";
  let description = [{
    Parameters stand in square brackets, inputs in parentheses. The first input is the activation
    of the layer before, or the token ids. The layer kind's name is the op's name.

    `tiers` is set by the memory phase: the sizes of the saved tiers `saved_input`,
    `products`, `elementwise` and `deferred`, as places just behind their ends.

    Constraints:
    - (LAYER1) `num_parameters` is less than the number of arguments: at least one input follows.
    - (LAYER2) every parameter is a static tensor of f64, f32 or bf16.
    - (LAYER3) the first input is an activation or token ids; the others are ids or segments.
    - (LAYER4) the layer has an activation as result, or the loss `tensor<1xf64>`, or first the
      activation and then the loss.
    - (LAYER5) all floating-point activations and parameters have one element type.
    - (LAYER6) no two dropouts have the same `instance`: they would drop the same elements.
    - (LAYER7) only a layer with `dist.mesh`, which the distribute phase made, has parts of tables.

    The differentiate phase makes copies of a layer that need less of backward. A copy names the
    layer in `variant_of`. With `frozen` it has no gradients of parameters, and with
    `stops_gradient` none of its first input. With both it runs forward alone.

    Example:

    ```mlir
    dyna.layer @block[%g: tensor<96xf32>, %w: tensor<96x96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
      %n = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x96xf32>, tensor<96xf32>
      %y = dyna.linear %n, %w : tensor<?x96xf32>, tensor<96x96xf32>
      %z = dyna.add %x, %y : tensor<?x96xf32>
      dyna.return %z : tensor<?x96xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$num_parameters,
                       Dyna_OptionalAttr<StrAttr>:$sym_visibility,
                       Dyna_OptionalAttr<DictArrayAttr>:$arg_attrs,
                       Dyna_OptionalAttr<DictArrayAttr>:$res_attrs,
                       Dyna_OptionalAttr<Dyna_PlaceArrayAttr>:$tiers,
                       UnitAttr:$frozen, UnitAttr:$stops_gradient,
                       Dyna_OptionalAttr<FlatSymbolRefAttr>:$variant_of);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The block arguments that are parameters, then those that are inputs.
    ::llvm::ArrayRef<::mlir::BlockArgument> getParameterArguments() {
      return getBody().getArguments().take_front(getNumParameters());
    }
    ::llvm::ArrayRef<::mlir::BlockArgument> getInputArguments() {
      return getBody().getArguments().drop_front(getNumParameters());
    }
    /// Returns true if the last result is a loss.
    bool givesLoss();
    /// Returns true if the first result is an activation, for the next layer.
    bool givesActivation();
  }];
}

def Dyna_ModelOp : Dyna_Op<"model", [Symbol, IsolatedFromAbove, SingleBlock, Dyna_NamedArguments,
      DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A model: a chain of layer calls from token ids to the loss.";
  let description = [{
    The body calls layers, each on the activation before. The last call gives a loss: the sum of
    token losses. Calls before it may give a loss beside their activation (an *exit*). The model
    returns all losses. What is trained is their sum, each times the `weight` of its call.

    Constraints:
    - (MODEL1) the body's arguments are token ids, target ids and segments.
    - (MODEL2) the body holds only `dyna.call` ops and the terminator, which returns the losses of
      all calls, in their order.
    - (MODEL3) the first call takes the token ids; every other call takes the activation of
      the call before it, as its first operand. The last call gives no activation.
    - (MODEL4) the activation of a call is used by the next call alone, and its loss by the
      terminator alone.
    - (MODEL5) the vocabulary is positive, and no other number among the facts is negative.
    - (MODEL6) the calls' layer names are distinct and not empty: checkpoints and plans use them.
    - (MODEL7) the fact `vocabulary` is at most the rows of every table that the layers look token
      ids up in, or score targets with.
    - (MODEL8) if the layers look positions up in tables, the fact `positions` is positive and at
      most the rows of each.
    - (MODEL9) the other facts are 0 or what the layers say: `width` that of every activation
      between layers; `heads`, `kv_heads` and `head_dim` those of every attention;
      `feed_forward` the width that every `gelu`, `silu` and `relu` works on.
    - (MODEL10) `config` and `defaults` are each empty or a JSON object without two fields of one name.
    - (MODEL11) no two parameters of the model are the same part of a tensor of its checkpoints, and
      all parts of each tensor are parameters. Names with and without the `prefix` are the same.
    - (MODEL12) the parts of a tensor say the same of it: `parts`, `transposed`, `copy`, and all
      dimensions but the first.
    - (MODEL13) no tensor has the name that is a `copy` of another, or ends in one of `buffers`.

    The dialect does not know what `family` means: `--dyna-check-families` compares a model with its
    family.

    Example:

    ```mlir
    dyna.parameter @wte : tensor<257x96xf32> normal 0.02 decay
    dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
      %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
      dyna.return %x : tensor<?x96xf32>
    }
    dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
      %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
      dyna.return %loss : tensor<1xf64>
    }
    dyna.model @bigram(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
        facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0,
              head_dim = 0, feed_forward = 0, config = "{}"> {
      %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
      %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
      dyna.return %1 : tensor<1xf64>
    }
    ```

    With an exit:

    ```mlir
    dyna.parameter @wte : tensor<257x96xf32> normal 0.02 decay
    dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
      %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
      dyna.return %x : tensor<?x96xf32>
    }
    dyna.layer @exit[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>) {
      %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
      dyna.return %x, %loss : tensor<?x96xf32>, tensor<1xf64>
    }
    dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
      %y = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
      dyna.return %y : tensor<?x96xf32>
    }
    dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
      %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
      dyna.return %loss : tensor<1xf64>
    }
    dyna.parameter @h.0.weight : tensor<96x96xf32> normal 0.02 decay
    dyna.model @early(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
        facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0,
              head_dim = 0, feed_forward = 0, config = "{}"> {
      %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
      %1, %early = dyna.call "embed.exit" @exit[@wte](%0, %targets) weight 0.3
          : (tensor<?x96xf32>, tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>)
      %2 = dyna.call "h.0" @block[@h.0.weight](%1) : (tensor<?x96xf32>) -> tensor<?x96xf32>
      %loss = dyna.call "head" @head[@wte](%2, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
      dyna.return %early, %loss : tensor<1xf64>, tensor<1xf64>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Dyna_FactsAttr:$facts,
                       Dyna_OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Dyna_CallOp : Dyna_Op<"call", [HasParent<"ModelOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
      DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Runs a layer with given parameters.";
  let description = [{
    Constraints:
    - (CALL1) `callee` names a whole `dyna.layer`, not one that the distribute phase made.
    - (CALL2) the call has as many parameters as the layer, and each names a `dyna.parameter`.
    - (CALL3) the types of parameters, operands and results are those of the layer.
    - (CALL4) `weight` is finite and not negative, and is 1 unless the layer gives a loss.

    `weight` is that of the call's loss among the losses of the model.

    Example:

    ```mlir
    %1 = dyna.call "h.0" @block[@h.0.norm, @h.0.weight](%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
    ```
  }];
  let arguments = (ins StrAttr:$layer_name, FlatSymbolRefAttr:$callee,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "parameters">:$parameters,
                       Variadic<AnyType>:$inputs,
                       DefaultValuedAttr<F64Attr, "1.0">:$weight);
  let results = (outs AnyType:$result, Optional<AnyType>:$exit_loss);
  let assemblyFormat = "$layer_name $callee `` custom<SymbolList>($parameters) `(` $inputs `)` "
                       "(`weight` $weight^)? attr-dict `:` functional-type($inputs, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the loss, whichever result it is; null if there is none.
    ::mlir::Value getLoss();
    /// Returns the activation for the next call; null if there is none.
    ::mlir::Value getActivation();
  }];
}

def Dyna_ReturnOp : Dyna_Op<"return", [Pure, ReturnLike, Terminator, Dyna_AnyStride,
      ParentOneOf<["LayerOp", "ModelOp", "FunctionOp"]>]> {
  let summary = "Ends a layer, a model or a layer function.";
  let description = [{
    Constraints:
    - (RETURN1) the operands are those that the enclosing op declares as results.

    Example: `dyna.return %z : tensor<?x96xf32>`
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
  let hasVerifier = 1;
}

def Dyna_FunctionOp : Dyna_Op<"function", [FunctionOpInterface, IsolatedFromAbove, Dyna_NamedArguments,
      DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The function of a layer kind for one role: forward, backward, update, ...";
  let description = [{
    Made by the differentiate phase from a `dyna.layer`. Every argument and result
    says where it lies: in an array of the layer function's signature, or in one of
    the saved tiers. A result in the same place as an argument replaces it (gradients
    are added to in place). `workspace` is set by the memory phase: the bytes of
    workspace that the function needs, as a place just behind it.

    Constraints:
    - (FUNCTION1) there is one place per argument and one per result.
    - (FUNCTION2) `layer` names a `dyna.layer`.
    - (FUNCTION3) two arguments do not share an array entry; the same holds for results.
    - (FUNCTION4) segments have the place `segments`, and nothing else has.
    - (FUNCTION5) arguments and results are segments, or ranked tensors of ids, f64, f32 or bf16.
    - (FUNCTION6) the place `workspace` of the function is in `workspace`, and no argument
      or result lies there: it does not outlive the call.
    - (FUNCTION7) parts of tables (`shard`) are those of a layer that has a mesh.
    - (FUNCTION8) `sparse` lists rising entries of the array of parameters. Each is a
      matrix that matrix products alone use, and so is its gradient.

    A weight that `sparse` lists may come in sparse form (`runtime/abi/Sparse.h`): the caller says
    for each call which form it has. `--dyna-accept-sparse` writes the list.

    Example:

    ```mlir
    dyna.function @scale.forward of @scale as forward(%g: tensor<96xf32> in <parameter>, %x: tensor<?x96xf32> in <input>)
        -> (tensor<?x96xf32> in <output>) {
      %y = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x96xf32>, tensor<96xf32>
      dyna.return %y : tensor<?x96xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       FlatSymbolRefAttr:$layer, Dyna_RoleAttr:$role,
                       TypeAttrOf<FunctionType>:$function_type,
                       Dyna_PlaceArrayAttr:$arg_places,
                       Dyna_PlaceArrayAttr:$result_places,
                       Dyna_OptionalAttr<Dyna_PlaceAttr>:$workspace,
                       Dyna_OptionalAttr<StrAttr>:$sym_visibility,
                       Dyna_OptionalAttr<DictArrayAttr>:$arg_attrs,
                       Dyna_OptionalAttr<DictArrayAttr>:$res_attrs,
                       Dyna_OptionalAttr<DenseI64ArrayAttr>:$sparse);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// The argument in an entry of an array of the signature; null if there is none.
    ::mlir::BlockArgument findArgument(Memory memory, int64_t index);
    /// Returns true if matrix products alone use a parameter and its gradient. True also
    /// if the function uses neither.
    bool hasProductsAlone(int64_t parameter);
    /// Entries of parameters that may come in sparse form; empty: none may.
    ::llvm::ArrayRef<int64_t> getSparseParameters() {
      ::std::optional<::mlir::DenseI64ArrayAttr> list = getSparse();
      return list ? list->asArrayRef() : ::llvm::ArrayRef<int64_t>();
    }
    PlaceAttr getArgPlace(unsigned index) {
      return ::mlir::cast<PlaceAttr>(getArgPlaces()[index]);
    }
    PlaceAttr getResultPlace(unsigned index) {
      return ::mlir::cast<PlaceAttr>(getResultPlaces()[index]);
    }
    /// Where an argument, or a result of one of the ops of the body, lies; null
    /// for a result before the memory phase.
    PlaceAttr getPlaceOf(::mlir::Value value);
    /// Element type in which the gradients of parameters are added up; null if the function has
    /// none.
    ::mlir::Type getGradientElementType();
  }];
}

def Dyna_RowsOp : Dyna_Op<"rows", [SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects,
                                   NoRegionArguments, Dyna_PlacedOpInterface,
                                   Dyna_AccumulatesSeveral, Dyna_AnyStride]> {
  let summary = "Row-wise ops that run in one sweep over the rows.";
  let description = [{
    The body's ops see values from outside directly; only what is yielded leaves the
    sweep, everything else lives in registers. A sweep that stands right behind the
    matrix product whose result it reads can run block by block as that product's epilogue.

    Constraints:
    - (ROWS1) the body holds only row-wise ops and `dyna.yield`.
    - (ROWS2) the types of the results are those of the yielded values.

    Example:

    ```mlir
    %g = dyna.rows : tensor<?x384xf32> {
      %h = dyna.bias %m, %b : tensor<?x384xf32>, tensor<384xf32>
      %a = dyna.gelu %h tanh : tensor<?x384xf32>
      dyna.yield %a : tensor<?x384xf32>
    }
    ```
  }];
  let arguments = (ins Dyna_OptionalAttr<Dyna_PlaceArrayAttr>:$places);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`:` type($results)^)? $body attr-dict";
  let hasRegionVerifier = 1;
}

def Dyna_YieldOp : Dyna_Op<"yield", [Pure, ReturnLike, Terminator, ParentOneOf<["RowsOp"]>]> {
  let summary = "Ends a `dyna.rows` body.";
  let description = [{
    Example: `dyna.yield %a : tensor<?x384xf32>`
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{ /* nothing to yield */ }]>];
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

#endif // DYNA_DIALECTS_DYNA_DYNASTRUCTUREOPS_TD
