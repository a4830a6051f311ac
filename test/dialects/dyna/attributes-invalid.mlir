// RUN: dyna-opt %s -split-input-file -verify-diagnostics

// An attribute that an op does not know would be carried along and read by nobody.

dyna.layer @l(%q: tensor<?x32xf32>, %s: !dyna.segments) -> tensor<?x32xf32> {
  // expected-error @+1 {{'dyna.attention' op does not know the attribute 'casual'; the nearest that it knows is 'causal'}}
  %o, %lse = dyna.attention %q, %q, %q, %s {casual, heads = 2 : i64, kv_heads = 2 : i64, scale = 1.0 : f64} : tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  dyna.return %o : tensor<?x32xf32>
}

// -----

// The generic form keeps what an op knows apart; the rest of that is not dropped.
dyna.layer @l(%q: tensor<?x32xf32>, %s: !dyna.segments) -> tensor<?x32xf32> {
  // expected-error @+1 {{for op dyna.attention: does not know the attribute 'casual'; the nearest that it knows is 'causal'}}
  %o, %lse = "dyna.attention"(%q, %q, %q, %s) <{casual, heads = 2 : i64, kv_heads = 2 : i64, scale = 1.0 : f64}> : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments) -> (tensor<?x32xf32>, tensor<?x2xf32>)
  dyna.return %o : tensor<?x32xf32>
}

// -----

dyna.layer @l(%q: tensor<?x32xf32>, %s: !dyna.segments) -> tensor<?x32xf32> {
  // expected-error @+1 {{'dyna.attention' op does not know the attribute 'casual'; the nearest that it knows is 'causal'}}
  %o, %lse = "dyna.attention"(%q, %q, %q, %s) {casual, heads = 2 : i64, kv_heads = 2 : i64, scale = 1.0 : f64} : (tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments) -> (tensor<?x32xf32>, tensor<?x2xf32>)
  dyna.return %o : tensor<?x32xf32>
}

// -----

// An op without attributes of its own.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.return' op does not know the attribute 'causal': it takes none}}
  dyna.return %x : tensor<?x8xf32> {causal}
}

// -----

// expected-error @+1 {{'dyna.parameter' op does not know the attribute 'decya'; the nearest that it knows is 'decay'}}
dyna.parameter @w : tensor<8xf32> {decya}

// -----

// expected-error @+1 {{'dyna.layer' op does not know the attribute 'tires'; the nearest that it knows is 'tiers'}}
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {tires = []} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// Attributes with a prefix: what their dialect does not declare for its phases,
dyna.layer @l(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.dropout' op does not know the attribute 'dist.token'; the nearest that it knows is 'dist.tokens'}}
  %y = dyna.dropout %x, %s {dist.token, instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// what it declares for other ops,
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.relu' op does not take the attribute 'dist.tokens', which stands on ops that count tokens: dropout, positions, positions_grad}}
  %y = dyna.relu %x {dist.tokens = #dist.group<1 [tp] on <tp=2>>} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// of features too,
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.relu' op does not take the attribute 'dist.features', which stands on ops that count features: dropout}}
  %y = dyna.relu %x {dist.features = #dist.group<1 [tp] on <tp=2>>} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// of another kind,
dyna.layer @l(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.dropout' op expects 'dist.tokens' to be a group such as #dist.group<1 [tp] on <tp=2>>, but got 1 : i64}}
  %y = dyna.dropout %x, %s {dist.tokens = 1 : i64, instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// of a dialect that nobody knows,
dyna.layer @l(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.dropout' op does not know the attribute 'dits.tokens'; it knows 'instance', 'places', 'probability'}}
  %y = dyna.dropout %x, %s {dits.tokens, instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// of this one, which declares none.
// expected-error @+1 {{'dyna.layer' op does not know the attribute 'dyna.logical'; it knows 'frozen', 'stops_gradient', 'sym_visibility', 'tiers', 'variant_of'}}
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dyna.logical = @l} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// Nor do arguments have attributes.
// expected-error @+1 {{'dyna.layer' op in its argument #0 does not know the attribute 'dyna.causal': it takes none}}
"dyna.layer"() <{arg_attrs = [{dyna.causal}], function_type = (tensor<?x8xf32>) -> tensor<?x8xf32>, num_parameters = 0 : i64, sym_name = "l"}> ({
^bb0(%x: tensor<?x8xf32>):
  dyna.return %x : tensor<?x8xf32>
}) : () -> ()

// -----

// Other dialects' ops are the same.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dist.all_reduce' op does not know the attribute 'mx'; the nearest that it knows is 'max'}}
  %y = dist.all_reduce %x over <1 [tp] on <tp=2>> {mx} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{'builtin.module' op does not know the attribute 'dist.group'; the nearest that it knows is 'dist.groups'}}
module attributes {dist.group = []} {}

// -----

// Ops of other dialects with an attribute of these.
// expected-error @+1 {{'builtin.module' op does not know the attribute 'dyna.groups'; it knows 'sym_visibility'}}
module attributes {dyna.groups = []} {}

// -----

// expected-error @+1 {{'builtin.module' op does not know the attribute 'exec.strategies'; it knows 'sym_visibility', 'dyna.target', 'dist.groups'}}
module attributes {exec.strategies = "dp=2"} {}

// -----

// expected-error @+1 {{'llvm.func' op does not know the attribute 'dyna.role'; it knows }}
llvm.func @f() attributes {dyna.role = "forward"}

// -----

// expected-error @+1 {{'llvm.func' op does not know the attribute 'exec.rank'; it knows }}
llvm.func @f() attributes {exec.rank = 1 : i64}

// -----

exec.graph @g "dp=1,tp=1,pp=1" on <dp=1, pp=1, tp=1> {
  // expected-error @+1 {{'exec.stage' op does not know the attribute 'exec.layer'; it knows 'layers'}}
  stage ["a"] {exec.layer}
}

// -----

// Nothing is near: not a name from elsewhere, but those that can be written.
// expected-error @+1 {{'dyna.parameter' op does not know the attribute 'learning_rate'; it knows 'added', 'constant', 'decay', 'frozen', 'normal', 'stored', 'sym_visibility', 'type'}}
dyna.parameter @w : tensor<8xf32> {learning_rate = 1.0 : f64}

// -----

// Near to what only the syntax says, 'sym_name'.
// expected-error @+1 {{'dyna.layer' op does not know the attribute 'my_name'; it knows 'frozen', 'stops_gradient', 'sym_visibility', 'tiers', 'variant_of'}}
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {my_name = "l"} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{'builtin.module' op expects 'dyna.target' to be "cpu" or "cuda", but got "tpu"}}
module attributes {dyna.target = "tpu"} {
}

// -----

// What a kernel moves stands on kernels, and is a number of bytes.
// expected-error @+1 {{'dyna.layer' op does not take the attribute 'dyna.row_bytes', which stands on kernels}}
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dyna.row_bytes = 64 : i64} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{'llvm.func' op expects 'dyna.row_bytes' to be a positive number of bytes in i64, but got 0 : i64}}
llvm.func @f() attributes {dyna.row_bytes = 0 : i64}

// -----

// expected-error @+1 {{'llvm.func' op expects 'dyna.row_bytes' to be a positive number of bytes in i64, but got 64 : i32}}
llvm.func @f() attributes {dyna.row_bytes = 64 : i32}
