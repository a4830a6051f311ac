// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LAYER1: parameters alone.
// expected-error @+1 {{expects an input behind its 1 parameters, but got 1 arguments in all}}
dyna.layer @l[%x: tensor<96xf32>]() -> tensor<96xf32> {
  dyna.return %x : tensor<96xf32>
}

// -----

// LAYER1: nothing at all.
// expected-error @+1 {{expects an input behind its 0 parameters, but got 0 arguments in all}}
dyna.layer @l() -> tensor<?x96xf32> {
  %x = "test.value"() : () -> tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}

// -----

// LAYER1: more parameters than arguments, in the generic form.
// expected-error @+1 {{expects an input behind its 9 parameters, but got 1 arguments in all}}
"dyna.layer"() <{sym_name = "l", function_type = (tensor<?x96xf32>) -> tensor<?x96xf32>, num_parameters = 9 : i64}> ({
^bb0(%x: tensor<?x96xf32>):
  dyna.return %x : tensor<?x96xf32>
}) : () -> ()

// -----

// LAYER2: a parameter with a dynamic size.
// expected-error @+1 {{expects parameter #1 to be a static tensor of f64, f32 or bf16, but got 'tensor<?x96xf32>'}}
dyna.layer @l[%g: tensor<96xf32>, %w: tensor<?x96xf32>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// LAYER3: the first input is neither activation nor ids.
// expected-error @+1 {{expects input #0 to be an activation such as tensor<?x96xf32> or token ids tensor<?xi32>, but got '!dyna.segments'}}
dyna.layer @l(%s: !dyna.segments, %x: tensor<?xi32>) -> tensor<?x96xf32> {
  %y = "test.value"() : () -> tensor<?x96xf32>
  dyna.return %y : tensor<?x96xf32>
}

// -----

// LAYER3: a second activation.
// expected-error @+1 {{expects input #1 to be ids tensor<?xi32> or !dyna.segments, but got 'tensor<?x96xf32>'}}
dyna.layer @l(%x: tensor<?x96xf32>, %y: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// LAYER4: three results.
// expected-error @+1 {{expects 1 or 2 results, but got 3}}
dyna.layer @l(%x: tensor<?x96xf32>) -> (tensor<?x96xf32>, tensor<1xf64>, tensor<1xf64>) {
  %loss = "test.value"() : () -> tensor<1xf64>
  dyna.return %x, %loss, %loss : tensor<?x96xf32>, tensor<1xf64>, tensor<1xf64>
}

// -----

// LAYER4: two activations.
// expected-error @+1 {{expects an activation and then the loss tensor<1xf64> as two results, but got 'tensor<?x96xf32>' and 'tensor<?x96xf32>'}}
dyna.layer @l(%x: tensor<?x96xf32>) -> (tensor<?x96xf32>, tensor<?x96xf32>) {
  dyna.return %x, %x : tensor<?x96xf32>, tensor<?x96xf32>
}

// -----

// LAYER4: a result that is no activation.
// expected-error @+1 {{expects the result to be an activation such as tensor<?x96xf32> or the loss tensor<1xf64>, but got 'tensor<?xi32>'}}
dyna.layer @l(%x: tensor<?xi32>) -> tensor<?xi32> {
  dyna.return %x : tensor<?xi32>
}

// -----

// LAYER5: a parameter in another element type.
// expected-error @+1 {{expects one element type for parameters and activations, but got 'bf16' and 'f32'}}
dyna.layer @l[%g: tensor<96xbf16>](%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// LAYER6: both dropouts would drop the same elements.
dyna.layer @l(%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  // expected-note @+1 {{first used here}}
  %y = dyna.dropout %x, %s {instance = 3 : i64, probability = 0.1 : f64} : tensor<?x96xf32>
  // expected-error @+1 {{expects an 'instance' of its own within the layer, but got 3 again}}
  %z = dyna.dropout %y, %s {instance = 3 : i64, probability = 0.1 : f64} : tensor<?x96xf32>
  dyna.return %z : tensor<?x96xf32>
}

// -----

// Syntax: what the op's form says does not appear again among its attributes.
// expected-error @+1 {{expects no attribute 'num_parameters' here: the syntax of the op says it elsewhere}}
dyna.layer @l(%x: tensor<?x96xf32>) -> tensor<?x96xf32> attributes {num_parameters = 5 : i64} {
  dyna.return %x : tensor<?x96xf32>
}

// -----

// Structure: a layer has a body.
// expected-error @+1 {{failed to verify constraint: region with 1 blocks}}
"dyna.layer"() <{sym_name = "l", function_type = (tensor<?x96xf32>) -> tensor<?x96xf32>, num_parameters = 0 : i64}> ({
}) : () -> ()

// -----

// LAYER7: ranks of a mesh have parts of tables, a layer for all has none.
dyna.layer @embed[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.embedding' op expects no 'shard' in a layer without 'dist.mesh', but got a part of 513 rows: write the whole table, --dyna-distribute deals it to ranks}}
  %x = dyna.embedding %ids, %w shard<group = 1, rows = 513> : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %x : tensor<?x8xf32>
}

// -----

dyna.layer @head[%w: tensor<257x8xf32>](%x: tensor<?x8xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
  // expected-error @+1 {{'dyna.linear_cross_entropy' op expects no 'shard' in a layer without 'dist.mesh'}}
  %loss = dyna.linear_cross_entropy %x, %w, %t shard<group = 1, rows = 513> : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
