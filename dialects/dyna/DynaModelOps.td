//===- DynaModelOps.td - The ops a transformer is written in ----*- tablegen -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_DIALECTS_DYNA_DYNAMODELOPS_TD
#define DYNA_DIALECTS_DYNA_DYNAMODELOPS_TD

def Dyna_Differentiable : DeclareOpInterfaceMethods<Dyna_DifferentiableOpInterface>;
def Dyna_InferType : DeclareOpInterfaceMethods<InferTypeOpInterface>;

//===----------------------------------------------------------------------===//
// Tokens in
//===----------------------------------------------------------------------===//

def Dyna_EmbeddingOp : Dyna_ComputeOp<"embedding", [Dyna_Differentiable, Dyna_TableOpInterface, Dyna_InferType]> {
  let summary = "Rows of a table, chosen by token ids.";
  let description = [{
    `result[t, :] = table[ids[t], :]`. The runtime checks ids against the vocabulary
    when it loads them.

    With `shard`, `table` is this rank's part of a table. Ids outside of it give rows of zeros, so
    the sum over the ranks of the group is the whole table's result.

    Constraints:
    - (EMBEDDING1) the result has the width and element type of `table`.
    - (EMBEDDING2) with `shard`, `table` has no more rows than the whole one.

    Example:

    ```mlir
    %x = dyna.embedding %tokens, %wte : tensor<?xi32>, tensor<257x96xf32>
    %y = dyna.embedding %tokens, %part shard<group = 1, rows = 513> : tensor<?xi32>, tensor<257x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Ids:$ids, Dyna_Matrix:$table, Dyna_OptionalAttr<Dyna_ShardAttr>:$shard), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$ids `,` $table (`shard` `` $shard^)? attr-dict `:` type($ids) `,` type($table)";
  let hasVerifier = 1;
}

def Dyna_PositionsOp : Dyna_ComputeOp<"positions", [Dyna_Differentiable, Dyna_Elementwise, Dyna_CountsTokens, Dyna_InferType]> {
  let summary = "Rows of a table, chosen by each token's position in its sample.";
  let description = [{
    `result[t, :] = table[position(t), :]`; positions count from each segment's `position0`.

    Constraints:
    - (POSITIONS1) the result has the width and element type of `table`.

    Example:

    ```mlir
    %p = dyna.positions %wpe, %segments : tensor<1024x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Matrix:$table, Dyna_SegmentsType:$segments), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$table `,` $segments attr-dict `:` type($table)";
}

//===----------------------------------------------------------------------===//
// Matrix products and attention
//===----------------------------------------------------------------------===//

def Dyna_LinearOp : Dyna_ComputeOp<"linear", [Dyna_Differentiable, Dyna_MatrixProduct, Dyna_AnyStride, Dyna_InferType]> {
  let summary = "`x * weight^T + bias`.";
  let description = [{
    The weight is stored `[out, in]`, the bias is optional.

    Constraints:
    - (LINEAR1) the width of `x` is the `in` size of `weight`.
    - (LINEAR2) `bias` has the `out` size of `weight`.
    - (LINEAR3) all element types are equal.
    - (LINEAR4) the result has the `out` size and the element type of `weight`.

    Example:

    ```mlir
    %y = dyna.linear %x, %w, %b : tensor<?x96xf32>, tensor<384x96xf32>, tensor<384xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Matrix:$weight,
                            Optional<Dyna_Vector>:$bias), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `,` $weight (`,` $bias^)? attr-dict "
                       "`:` type($x) `,` type($weight) (`,` type($bias)^)?";
  let hasVerifier = 1;
}

def Dyna_AttentionOp : Dyna_ComputeOp<"attention", [Dyna_Differentiable, Dyna_Product, Dyna_ReadsBatchTable, Dyna_AnyStride, Dyna_InferType]> {
  let summary = "Softmax attention inside each segment.";
  let description = [{
    Query head `h` reads key/value head `h / (heads / kv_heads)`; a head's features
    are contiguous. Scores are multiplied by `scale`. `causal` hides the keys behind
    a query. Queries and keys/values have token dimensions of their own: a segment's
    query range may be the tail of its key/value range. The second result is the
    logarithm of each row's sum of exponentials, per head, which backward needs.
    `number` tells the attentions of a layer apart: slices of samples find their keys
    in columns by it (`runtime/abi/Abi.h`). `--dyna-differentiate` sets it.

    Constraints:
    - (ATTN1) `heads` and `kv_heads` are positive and `kv_heads` divides `heads`.
    - (ATTN2) the width of `query` is a multiple of `heads`.
    - (ATTN3) the widths of `key` and `value` are `kv_heads` times the head size of `query`.
    - (ATTN4) all element types are equal.
    - (ATTN5) `scale` is finite and positive.
    - (ATTN6) the result has the type of `query`; `lse` is `[?, heads]` of f32 (f64 if the
      query is f64).
    - (ATTN7) `number` is not negative.

    Example:

    ```mlir
    %o, %lse = dyna.attention %q, %k, %v, %segments {causal, heads = 8 : i64, kv_heads = 2 : i64, scale = 2.5e-1 : f64}
        : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$query, Dyna_Activation:$key, Dyna_Activation:$value,
                            Dyna_SegmentsType:$segments,
                            I64Attr:$heads, I64Attr:$kv_heads, F64Attr:$scale, UnitAttr:$causal,
                            DefaultValuedAttr<I64Attr, "0">:$number), places);
  let results = (outs Dyna_Activation:$result, Dyna_Activation:$lse);
  let assemblyFormat = "$query `,` $key `,` $value `,` $segments attr-dict "
                       "`:` type($query) `,` type($key) `,` type($value)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getHeadDim() { return getQuery().getType().getDimSize(1) / getHeads(); }
  }];
}

//===----------------------------------------------------------------------===//
// Row-wise ops
//===----------------------------------------------------------------------===//

class Dyna_ElementwiseOp<string mnemonic, list<Trait> traits = []>
    : Dyna_ComputeOp<mnemonic, !listconcat(traits,
        [Dyna_Differentiable, Dyna_Elementwise, SameOperandsAndResultType])>;

def Dyna_BiasOp : Dyna_ComputeOp<"bias", [Dyna_Differentiable, Dyna_Elementwise, Dyna_InferType]> {
  let summary = "Adds a vector to every row.";
  let description = [{
    Constraints:
    - (BIAS1) `bias` has the width and element type of `x`.

    Example:

    ```mlir
    %y = dyna.bias %x, %b : tensor<?x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Vector:$bias), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `,` $bias attr-dict `:` type($x) `,` type($bias)";
  let hasVerifier = 1;
}

def Dyna_LayerNormOp : Dyna_ComputeOp<"layer_norm", [Dyna_Differentiable, Dyna_RowWise, Dyna_InferType,
      AllTypesMatch<["weight", "bias"]>]> {
  let summary = "`(x - mean) / sqrt(variance + epsilon) * weight + bias`, per row.";
  let description = [{
    Mean and (biased) variance are computed in f32 or wider.

    Constraints:
    - (LN1) `weight` and `bias` have the width and element type of `x`.
    - (LN2) `epsilon` is positive and finite.

    Example:

    ```mlir
    %y = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Vector:$weight, Dyna_Vector:$bias,
                            F64Attr:$epsilon), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `,` $weight `,` $bias attr-dict `:` type($x) `,` type($weight)";
  let hasVerifier = 1;
}

def Dyna_RmsNormOp : Dyna_ComputeOp<"rms_norm", [Dyna_Differentiable, Dyna_RowWise, Dyna_InferType]> {
  let summary = "`x / sqrt(mean(x^2) + epsilon) * weight`, per row.";
  let description = [{
    Constraints:
    - (RMS1) `weight` has the width and element type of `x`.
    - (RMS2) `epsilon` is positive and finite.

    Example:

    ```mlir
    %y = dyna.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : tensor<?x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Vector:$weight, F64Attr:$epsilon), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `,` $weight attr-dict `:` type($x) `,` type($weight)";
  let hasVerifier = 1;
}

def Dyna_RotaryOp : Dyna_ComputeOp<"rotary", [Dyna_Differentiable, Dyna_RowWise, Dyna_PairsFeatures, Dyna_InferType]> {
  let summary = "Rotates pairs of features by angles that grow with the position.";
  let description = [{
    Feature `j` of the first half of a head and feature `j` of its second half form a pair. The op
    turns each pair by `position * theta^(-2j / head_dim)` (Su et al. 2021, in the half-split order
    of LLaMA checkpoints). `inverse` turns in the opposite direction, which is the gradient.
    `scaling` changes the frequencies `theta^(-2j / head_dim)`.

    Constraints:
    - (ROTARY1) `head_dim` is positive, even, and divides the width of `x`.
    - (ROTARY2) `theta` is positive and finite.

    Example:

    ```mlir
    %y = dyna.rotary %x, %segments {head_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_SegmentsType:$segments, I64Attr:$head_dim,
                            F64Attr:$theta, UnitAttr:$inverse,
                            OptionalAttr<Dyna_RopeScalingAttr>:$scaling), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `,` $segments attr-dict `:` type($x)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Dyna_GeluOp : Dyna_ElementwiseOp<"gelu"> {
  let summary = "Gaussian error linear unit, exact (erf) or by tanh.";
  let description = [{
    `erf`: `x/2 * (1 + erf(x / sqrt 2))`; `tanh`: `x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`.

    Example: `%y = dyna.gelu %x tanh : tensor<?x384xf32>`
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_GeluFormAttr:$form), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `` $form attr-dict `:` type($x)";
}

class Dyna_UnaryOp<string mnemonic, string what, string formula> : Dyna_ElementwiseOp<mnemonic> {
  let summary = what;
  let description = formula # "\n\nExample: `%y = dyna." # mnemonic # " %x : tensor<?x384xf32>`\n";
  let arguments = !con((ins Dyna_Activation:$x), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
def Dyna_SiluOp : Dyna_UnaryOp<"silu", "Sigmoid linear unit.", "`x / (1 + exp(-x))`.">;
def Dyna_ReluOp : Dyna_UnaryOp<"relu", "Rectified linear unit.", "`max(x, 0)`; its derivative at 0 is 0."> {
  let hasFolder = 1;
}

def Dyna_ScaleOp : Dyna_ElementwiseOp<"scale"> {
  let summary = "Multiplies by a constant.";
  let description = [{
    `factor * x`. Low-rank adapters scale their contribution by it.

    Constraints:
    - (SCALE1) `factor` is positive and finite.

    Example: `%y = dyna.scale %x {factor = 0.5 : f64} : tensor<?x384xf32>`
  }];
  let arguments = !con((ins Dyna_Activation:$x, F64Attr:$factor), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
  let hasVerifier = 1;
}

class Dyna_BinaryOp<string mnemonic, string what, list<Trait> traits = []>
    : Dyna_ElementwiseOp<mnemonic, traits> {
  let summary = what;
  let description = "Example: `%z = dyna." # mnemonic # " %x, %y : tensor<?x384xf32>`\n";
  let arguments = !con((ins Dyna_Activation:$lhs, Dyna_Activation:$rhs), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs)";
}
def Dyna_AddOp : Dyna_BinaryOp<"add", "Element-wise sum.", [Commutative]>;
def Dyna_MulOp : Dyna_BinaryOp<"mul", "Element-wise product.", [Commutative]>;

def Dyna_DropoutOp : Dyna_ComputeOp<"dropout", [Dyna_Differentiable, Dyna_Elementwise, Dyna_CountsTokens, Dyna_CountsFeatures,
                                                Dyna_InferType]> {
  let summary = "Zeroes elements at random and scales the others.";
  let description = [{
    A counter-based random number of (seed, step, layer, `instance`, sample, position, feature)
    decides whether an element is dropped (`runtime/abi/Random.h`). So the cut into micro-batches,
    recomputation and the split of features over ranks do not change the result. Survivors are
    divided by `1 - probability`. The op is its own gradient. In the `evaluate` role it is the
    identity. `instance` numbers the dropouts of a layer.

    Constraints:
    - (DROPOUT1) `probability` lies in [0, 1).
    - (DROPOUT2) `instance` is not negative and fits in 32 bits.

    Example:

    ```mlir
    %y = dyna.dropout %x, %segments {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x96xf32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_SegmentsType:$segments, F64Attr:$probability,
                            I64Attr:$instance), places);
  let results = (outs Dyna_Activation:$result);
  let assemblyFormat = "$x `,` $segments attr-dict `:` type($x)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def Dyna_LinearCrossEntropyOp : Dyna_ComputeOp<"linear_cross_entropy", [Dyna_Differentiable, Dyna_Product, Dyna_TableOpInterface,
    Dyna_Exchanges, Dyna_ReadsBatchTable]> {
  let summary = "Output head and cross-entropy loss in one; logits are never stored whole.";
  let description = [{
    The sum over all rows whose target is not `ignore_index` of
    `-log softmax(x * weight^T)[target]`, in f64. Training divides by the number of
    targets of the whole mini-batch, which only the planner knows. Training binaries mark
    rows outside of the loss with -1 and are compiled for this `ignore_index` alone.

    With `shard`, `weight` is this rank's part of the vocabulary. For each row, the ranks of the
    group exchange the maximum, and then the sum of exponentials and the target's logit. The loss is
    the same on all of them.

    Constraints:
    - (LCE1) the width of `x` is the `in` size of `weight`, and the element types are equal.
    - (LCE2) `ignore_index` fits in the 32 bits of a target.
    - (LCE3) with `shard`, `weight` has no more rows than the whole one.

    Example:

    ```mlir
    %loss = dyna.linear_cross_entropy %x, %w, %targets {ignore_index = -1 : i64} : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
    %same = dyna.linear_cross_entropy %x, %w, %targets shard<group = 1, rows = 513> : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
    ```
  }];
  let arguments = !con((ins Dyna_Activation:$x, Dyna_Matrix:$weight, Dyna_Ids:$targets,
                            DefaultValuedAttr<I64Attr, "-1">:$ignore_index,
                            Dyna_OptionalAttr<Dyna_ShardAttr>:$shard), places);
  let results = (outs Dyna_Scalar:$loss);
  let assemblyFormat = "$x `,` $weight `,` $targets (`shard` `` $shard^)? attr-dict `:` type($x) `,` type($weight) `,` type($targets)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getTable() { return getWeight(); }
  }];
}

#endif // DYNA_DIALECTS_DYNA_DYNAMODELOPS_TD
