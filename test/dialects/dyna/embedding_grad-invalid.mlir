// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// EMBGRAD1: a table of another width.
%dy, %ids, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<?xi32>, tensor<257x64xf32>)
// expected-error @+1 {{expects the width of 'accumulator' to be 96, the width of 'dy', but got 64}}
%g1 = dyna.embedding_grad %dy, %ids, %g : tensor<?x96xf32>, tensor<?xi32>, tensor<257x64xf32>

// -----

// EMBGRAD2: gradients of bf16 are accumulated in f32 or bf16.
%dy, %ids, %g = "test.values"() : () -> (tensor<?x96xbf16>, tensor<?xi32>, tensor<257x96xf64>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32' or 'bf16', in which gradients of 'bf16' are accumulated (that is the type of 'dy'), but got 'f64'}}
%g1 = dyna.embedding_grad %dy, %ids, %g : tensor<?x96xbf16>, tensor<?xi32>, tensor<257x96xf64>

// -----

// EMBGRAD2: bf16 is for gradients of bf16 alone.
%dy, %ids, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<?xi32>, tensor<257x96xbf16>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32', in which gradients of 'f32' are accumulated (that is the type of 'dy'), but got 'bf16'}}
%g1 = dyna.embedding_grad %dy, %ids, %g : tensor<?x96xf32>, tensor<?xi32>, tensor<257x96xbf16>

// -----

// EMBGRAD3: a part larger than the table.
%dy, %ids, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<?xi32>, tensor<257x96xf32>)
// expected-error @+1 {{expects 'accumulator' to have at most 256 rows, those of the whole table, but got 257}}
%g1 = dyna.embedding_grad %dy, %ids, %g shard<group = 1, rows = 256> : tensor<?x96xf32>, tensor<?xi32>, tensor<257x96xf32>
