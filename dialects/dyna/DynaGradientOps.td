//===- DynaGradientOps.td - Gradients and the optimizer ---------*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Gradients of parameters are accumulated: an op takes the accumulator (f32, or f64
// under f64) and its result is the accumulator with the contribution added. The
// memory phase gives both the same place.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DYNAGRADIENTOPS_TD
#define DYNA_DIALECTS_DYNA_DYNAGRADIENTOPS_TD

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

def Dyna_EmbeddingGradOp : Dyna_ComputeOp<"embedding_grad", [Dyna_Accumulates, Dyna_TableOpInterface, Dyna_ReadsBatchTable,
    AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "Adds rows of a gradient to the rows of a table they came from.";
  let description = [{
    `result = accumulator; result[ids[t], :] += dy[t, :]` for t in order. With `shard`,
    the accumulator is that of this rank's part of the table; ids outside of it are left
    out.

    Constraints:
    - (EMBGRAD1) the accumulator has the width of `dy`.
    - (EMBGRAD2) the accumulator is f64 if `dy` is, else f32, or bf16 if `dy` is.
    - (EMBGRAD3) with `shard`, the accumulator has no more rows than the whole table.

    Example:

    ```mlir
    %g1 = dyna.embedding_grad %dy, %tokens, %g0 : tensor<?x96xf32>, tensor<?xi32>, tensor<257x96xf32>
    %g2 = dyna.embedding_grad %dy, %tokens, %g1 shard<group = 1, rows = 513> : tensor<?x96xf32>, tensor<?xi32>, tensor<257x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$dy, Dyna_Ids:$ids, Dyna_Matrix:$accumulator,
                            Dyna_OptionalAttr<Dyna_ShardAttr>:$shard), places);
  let results = (outs Dyna_Matrix:$result);
  let assemblyFormat = "$dy `,` $ids `,` $accumulator (`shard` `` $shard^)? attr-dict `:` type($dy) `,` type($ids) `,` type($accumulator)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getTable() { return getAccumulator(); }
  }];
}

def Dyna_PositionsGradOp : Dyna_ComputeOp<"positions_grad", [Dyna_Accumulates, Dyna_CountsTokens, Dyna_ReadsBatchTable,
    AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "Adds rows of a gradient to the rows of a position table.";
  let description = [{
    `result = accumulator; result[position(t), :] += dy[t, :]` for t in order.

    Constraints:
    - (POSGRAD1) the accumulator has the width of `dy`.
    - (POSGRAD2) the accumulator is f64 if `dy` is, else f32, or bf16 if `dy` is.

    Example:

    ```mlir
    %g1 = dyna.positions_grad %dy, %segments, %g0 : tensor<?x96xf32>, tensor<1024x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$dy, Dyna_SegmentsType:$segments, Dyna_Matrix:$accumulator), places);
  let results = (outs Dyna_Matrix:$result);
  let assemblyFormat = "$dy `,` $segments `,` $accumulator attr-dict `:` type($dy) `,` type($accumulator)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Matrix products and attention
//===----------------------------------------------------------------------===//

def Dyna_LinearGradInputOp : Dyna_ComputeOp<"linear_grad_input", [Dyna_MatrixProduct, Dyna_AccumulatesSeveral,
    Dyna_AnyStride, Dyna_InferType]> {
  let summary = "`dy * weight`, optionally added to another gradient.";
  let description = [{
    Constraints:
    - (LGI1) the width of `dy` is the `out` size of `weight`, and the element types are equal.
    - (LGI2) `accumulator` has the type of the result.
    - (LGI3) the result has the `in` size and the element type of `weight`.

    Example:

    ```mlir
    %dx = dyna.linear_grad_input %dy, %w : tensor<?x384xf32>, tensor<384x96xf32>
    %dz = dyna.linear_grad_input %dy, %w add %dx : tensor<?x384xf32>, tensor<384x96xf32>, tensor<?x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$dy, Dyna_Matrix:$weight,
                            Optional<Dyna_Activation>:$accumulator), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$dy `,` $weight (`add` $accumulator^)? attr-dict `:` type($dy) `,` type($weight) (`,` type($accumulator)^)?";
  let hasVerifier = 1;
}

def Dyna_LinearGradWeightOp : Dyna_ComputeOp<"linear_grad_weight", [Dyna_MatrixProduct, Dyna_Accumulates,
    Dyna_AnyStride, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "`accumulator + dy^T * x`.";
  let description = [{
    Constraints:
    - (LGW1) the accumulator is `[width of dy, width of x]`.
    - (LGW2) `dy` and `x` have one element type.
    - (LGW3) the accumulator is f64 if `dy` is, else f32, or bf16 if `dy` is.

    Example:

    ```mlir
    %g1 = dyna.linear_grad_weight %dy, %x, %g0 : tensor<?x384xf32>, tensor<?x96xf32>, tensor<384x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$dy, Dyna_Activation:$x, Dyna_Matrix:$accumulator), places);
  let results = (outs Dyna_Matrix:$result);
  let assemblyFormat = "$dy `,` $x `,` $accumulator attr-dict `:` type($dy) `,` type($x) `,` type($accumulator)";
  let hasVerifier = 1;
}

def Dyna_BiasGradOp : Dyna_ComputeOp<"bias_grad", [Dyna_Elementwise, Dyna_Accumulates,
    AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "`accumulator + sum of the rows of dy`.";
  let description = [{
    Constraints:
    - (BIASGRAD1) the accumulator has the width of `dy`.
    - (BIASGRAD2) the accumulator is f64 if `dy` is, else f32, or bf16 if `dy` is.

    Example:

    ```mlir
    %g1 = dyna.bias_grad %dy, %g0 : tensor<?x384xf32>, tensor<384xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$dy, Dyna_Vector:$accumulator), places);
  let results = (outs Dyna_Vector:$result);
  let assemblyFormat = "$dy `,` $accumulator attr-dict `:` type($dy) `,` type($accumulator)";
  let hasVerifier = 1;
}

def Dyna_AttentionGradOp : Dyna_ComputeOp<"attention_grad", [Dyna_Product, Dyna_ReadsBatchTable, Dyna_AnyStride,
    AllTypesMatch<["query", "result", "d_result", "d_query"]>,
    AllTypesMatch<["key", "d_key"]>, AllTypesMatch<["value", "d_value"]>]> {
  let summary = "Gradients of `dyna.attention` with respect to query, key and value.";
  let description = [{
    Takes the operands and results of the forward op and the gradient of its first
    result.

    Constraints:
    - (ATTNGRAD1) the attributes and operands satisfy ATTN1 to ATTN5, and ATTN7.
    - (ATTNGRAD2) `lse` is `[?, heads]` of f32 (f64 if the query is f64).

    Example:

    ```mlir
    %dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %segments
        {causal, heads = 8 : i64, kv_heads = 2 : i64, scale = 2.5e-1 : f64}
        : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$query, Dyna_Activation:$key, Dyna_Activation:$value,
                            Dyna_Activation:$result, Dyna_Activation:$lse, Dyna_Activation:$d_result,
                            Dyna_SegmentsType:$segments,
                            I64Attr:$heads, I64Attr:$kv_heads, F64Attr:$scale, UnitAttr:$causal,
                            DefaultValuedAttr<I64Attr, "0">:$number), places);
  let results = (outs Dyna_Activation:$d_query, Dyna_Activation:$d_key, Dyna_Activation:$d_value);
  let assemblyFormat = "$query `,` $key `,` $value `,` $result `,` $lse `,` $d_result `,` $segments attr-dict "
                       "`:` type($query) `,` type($key) `,` type($value) `,` type($lse)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getHeadDim() { return getQuery().getType().getDimSize(1) / getHeads(); }
  }];
}

//===----------------------------------------------------------------------===//
// Row-wise ops
//===----------------------------------------------------------------------===//

class Dyna_ActivationGradOp<string mnemonic, string what, dag attributes = (ins)>
    : Dyna_ComputeOp<mnemonic, [Dyna_Elementwise, SameOperandsAndResultType]> {
  let summary = what;
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Activation:$dy), attributes, places);
  let results = (outs Dyna_Activation:$result);
}
def Dyna_GeluGradOp : Dyna_ActivationGradOp<"gelu_grad", "`dy * gelu'(x)`.", (ins Dyna_GeluFormAttr:$form)> {
  let description = "Example: `%dx = dyna.gelu_grad %x, %dy tanh : tensor<?x384xf32>`\n";
  let assemblyFormat = "$x `,` $dy `` $form attr-dict `:` type($x)";
}
def Dyna_SiluGradOp : Dyna_ActivationGradOp<"silu_grad", "`dy * silu'(x)`."> {
  let description = "Example: `%dx = dyna.silu_grad %x, %dy : tensor<?x384xf32>`\n";
  let assemblyFormat = "$x `,` $dy attr-dict `:` type($x)";
}
def Dyna_ReluGradOp : Dyna_ActivationGradOp<"relu_grad", "`dy` where `x` is positive, else 0."> {
  let description = "Example: `%dx = dyna.relu_grad %x, %dy : tensor<?x384xf32>`\n";
  let assemblyFormat = "$x `,` $dy attr-dict `:` type($x)";
}

def Dyna_LayerNormGradInputOp : Dyna_ComputeOp<"layer_norm_grad_input", [Dyna_RowWise,
    AllTypesMatch<["x", "dy", "result"]>]> {
  let summary = "Gradient of `dyna.layer_norm` with respect to its input.";
  let description = [{
    The statistics of a row are computed again from `x`, which the sweep reads anyway.

    Constraints:
    - (LNGI1) `weight` has the width and element type of `x`.
    - (LNGI2) `epsilon` is positive and finite.

    Example:

    ```mlir
    %dx = dyna.layer_norm_grad_input %x, %g, %dy {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Vector:$weight, Dyna_Activation:$dy, F64Attr:$epsilon), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `,` $weight `,` $dy attr-dict `:` type($x) `,` type($weight)";
  let hasVerifier = 1;
}

def Dyna_LayerNormGradWeightOp : Dyna_ComputeOp<"layer_norm_grad_weight", [Dyna_RowWise, Dyna_AccumulatesSeveral,
    AllTypesMatch<["x", "dy"]>,
    AllTypesMatch<["weight_accumulator", "bias_accumulator", "weight_result", "bias_result"]>]> {
  let summary = "Gradients of `dyna.layer_norm` with respect to weight and bias.";
  let description = [{
    Constraints:
    - (LNGW1) the accumulators have the width of `x`.
    - (LNGW2) `epsilon` is positive and finite.
    - (LNGW3) the accumulators are f64 if `x` is, else f32, or bf16 if `x` is.

    Example:

    ```mlir
    %gw, %gb = dyna.layer_norm_grad_weight %x, %dy, %w0, %b0 {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Activation:$dy, Dyna_Vector:$weight_accumulator,
                            Dyna_Vector:$bias_accumulator, F64Attr:$epsilon), places);
  let results = (outs Dyna_Vector:$weight_result, Dyna_Vector:$bias_result);
  let assemblyFormat = "$x `,` $dy `,` $weight_accumulator `,` $bias_accumulator attr-dict `:` type($x) `,` type($weight_accumulator)";
  let hasVerifier = 1;
}

def Dyna_RmsNormGradInputOp : Dyna_ComputeOp<"rms_norm_grad_input", [Dyna_RowWise,
    AllTypesMatch<["x", "dy", "result"]>]> {
  let summary = "Gradient of `dyna.rms_norm` with respect to its input.";
  let description = [{
    Constraints:
    - (RMSGI1) `weight` has the width and element type of `x`.
    - (RMSGI2) `epsilon` is positive and finite.

    Example:

    ```mlir
    %dx = dyna.rms_norm_grad_input %x, %g, %dy {epsilon = 1.0e-6 : f64} : tensor<?x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Vector:$weight, Dyna_Activation:$dy, F64Attr:$epsilon), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `,` $weight `,` $dy attr-dict `:` type($x) `,` type($weight)";
  let hasVerifier = 1;
}

def Dyna_RmsNormGradWeightOp : Dyna_ComputeOp<"rms_norm_grad_weight", [Dyna_RowWise, Dyna_Accumulates,
    AllTypesMatch<["x", "dy"]>, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "Gradient of `dyna.rms_norm` with respect to its weight.";
  let description = [{
    Constraints:
    - (RMSGW1) the accumulator has the width of `x`.
    - (RMSGW2) `epsilon` is positive and finite.
    - (RMSGW3) the accumulator is f64 if `x` is, else f32, or bf16 if `x` is.

    Example:

    ```mlir
    %gw = dyna.rms_norm_grad_weight %x, %dy, %w0 {epsilon = 1.0e-6 : f64} : tensor<?x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Activation:$dy, Dyna_Vector:$accumulator,
                            F64Attr:$epsilon), places);
  let results = (outs Dyna_Vector:$result);
  let assemblyFormat = "$x `,` $dy `,` $accumulator attr-dict `:` type($x) `,` type($accumulator)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def Dyna_LinearCrossEntropyTrainOp : Dyna_ComputeOp<"linear_cross_entropy_train", [Dyna_Product, Dyna_Accumulates, Dyna_TableOpInterface,
    Dyna_Exchanges, Dyna_ReadsBatchTable,
    AllTypesMatch<["x", "d_x"]>, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "The loss with both its gradients, chunk by chunk.";
  let description = [{
    `dyna.linear_cross_entropy` becomes this op in the forward role: three products per chunk of
    rows. `d_x` and the weight gradient are already divided by the target count of the mini-batch
    (`inverse_targets` of the context). The loss is the plain sum. With `shard`, `weight` and its
    gradient are this rank's part. `d_x` is then the contribution of that part: the sum over the
    ranks of the group is the gradient.

    Constraints:
    - (LCET1) the width of `x` is the `in` size of `weight`, and the element types are equal.
    - (LCET2) the accumulator has the shape of `weight`.
    - (LCET3) the accumulator is f64 if `x` is, else f32, or bf16 if `x` is.
    - (LCET4) `ignore_index` fits in the 32 bits of a target.
    - (LCET5) with `shard`, `weight` has no more rows than the whole one.

    Example:

    ```mlir
    %loss, %dx, %g1 = dyna.linear_cross_entropy_train %x, %w, %targets, %g0 {ignore_index = -1 : i64}
        : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xf32>
    %same, %part, %g2 = dyna.linear_cross_entropy_train %x, %w, %targets, %g1 shard<group = 1, rows = 513>
        : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Matrix:$weight, Dyna_Ids:$targets,
                            Dyna_Matrix:$accumulator,
                            DefaultValuedAttr<I64Attr, "-1">:$ignore_index,
                            Dyna_OptionalAttr<Dyna_ShardAttr>:$shard), places);
  let results = (outs Dyna_Scalar:$loss, Dyna_Activation:$d_x, Dyna_Matrix:$result);
  let assemblyFormat = "$x `,` $weight `,` $targets `,` $accumulator (`shard` `` $shard^)? attr-dict "
                       "`:` type($x) `,` type($weight) `,` type($targets) `,` type($accumulator)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getTable() { return getWeight(); }
  }];
}

def Dyna_LinearCrossEntropyInputOp : Dyna_ComputeOp<"linear_cross_entropy_input", [Dyna_Product, Dyna_TableOpInterface,
    Dyna_Exchanges, Dyna_ReadsBatchTable, AllTypesMatch<["x", "d_x"]>]> {
  let summary = "The loss with the gradient of its input, chunk by chunk.";
  let description = [{
    `dyna.linear_cross_entropy` becomes this op in the forward role if its weight is frozen. It is
    `dyna.linear_cross_entropy_train` without the product that the weight gradient needs.

    Constraints:
    - (LCEI1) the width of `x` is the `in` size of `weight`, and the element types are equal.
    - (LCEI2) `ignore_index` fits in the 32 bits of a target.
    - (LCEI3) with `shard`, `weight` has no more rows than the whole one.

    Example:

    ```mlir
    %loss, %dx = dyna.linear_cross_entropy_input %x, %w, %targets {ignore_index = -1 : i64}
        : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
    %same, %part = dyna.linear_cross_entropy_input %x, %w, %targets shard<group = 1, rows = 513>
        : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Matrix:$weight, Dyna_Ids:$targets,
                            DefaultValuedAttr<I64Attr, "-1">:$ignore_index,
                            Dyna_OptionalAttr<Dyna_ShardAttr>:$shard), places);
  let results = (outs Dyna_Scalar:$loss, Dyna_Activation:$d_x);
  let assemblyFormat = "$x `,` $weight `,` $targets (`shard` `` $shard^)? attr-dict "
                       "`:` type($x) `,` type($weight) `,` type($targets)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getTable() { return getWeight(); }
  }];
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

def Dyna_AdamwOp : Dyna_ComputeOp<"adamw", [Dyna_AccumulatesSeveral,
    AllTypesMatch<["master", "m", "v", "new_master", "new_m", "new_v"]>,
    AllTypesMatch<["gradient", "new_gradient"]>]> {
  let summary = "One step of AdamW with decoupled weight decay; clears the gradient.";
  let description = [{
    With `g = gradient * gradient_scale` (Loshchilov and Hutter 2019):
    `m' = beta1 m + (1 - beta1) g`, `v' = beta2 v + (1 - beta2) g^2`,
    `p' = p - lr (weight_decay p + (m' / correction1) / (sqrt(v' / correction2) + epsilon))`,
    the decay only with `decay`. The scalars come from the context. `gradient_scale` is NaN if a
    loss or the norm of the gradient is not finite. Then the gradient is cleared and the rest stays
    as it is.

    Constraints:
    - (ADAMW1) masters and moments are f64 or f32, never narrower.
    - (ADAMW2) the gradient has the type of the master, or is bf16 if that is f32.

    The type of the gradient is written if it differs from the master's.

    Example:

    ```mlir
    %p1, %g1, %m1, %v1 = dyna.adamw %p0, %g0, %m0, %v0 {decay} : tensor<257x96xf32>
    %p3, %g3, %m3, %v3 = dyna.adamw %p2, %g2, %m2, %v2 : tensor<96xf32>, tensor<96xbf16>
    ```
  }];
  let arguments = !con((ins Dyna_StaticTensor:$master, Dyna_StaticTensor:$gradient, Dyna_StaticTensor:$m,
                            Dyna_StaticTensor:$v, UnitAttr:$decay), places);
  let results = (outs Dyna_StaticTensor:$new_master, Dyna_StaticTensor:$new_gradient,
                      Dyna_StaticTensor:$new_m, Dyna_StaticTensor:$new_v);
  let assemblyFormat = "$master `,` $gradient `,` $m `,` $v attr-dict `:` "
                       "custom<MasterAndGradient>(type($master), type($gradient))";
  let hasVerifier = 1;
}

def Dyna_SumSquaresOp : Dyna_ComputeOp<"sum_squares", [Dyna_Accumulates, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "Adds the squares of a tensor's elements to an f64, for the global norm.";
  let description = [{
    Example: `%s1 = dyna.sum_squares %g, %s0 : tensor<257x96xf32>`
  }];
  let arguments = !con((ins Dyna_StaticTensor:$x, Dyna_Scalar:$accumulator), places);
  let results = (outs Dyna_Scalar:$result);
  let assemblyFormat = "$x `,` $accumulator attr-dict `:` type($x)";
}

def Dyna_CastOp : Dyna_ComputeOp<"cast"> {
  let summary = "Converts a parameter to another floating-point type, to nearest even.";
  let description = [{
    Constraints:
    - (CAST1) operand and result have one shape.

    Example: `%w = dyna.cast %master : tensor<257x96xf32> -> tensor<257x96xbf16>`
  }];
  let arguments = !con((ins Dyna_StaticTensor:$x), places);
  let results = (outs Dyna_StaticTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // DYNA_DIALECTS_DYNA_DYNAGRADIENTOPS_TD
