// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LCEI1: x is 96 wide.
%x, %w, %t = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x64xf32>, tensor<?xi32>)
// expected-error @+1 {{expects the 'in' size of 'weight' to be 96, the width of 'x', but got 64}}
%l, %dx = dyna.linear_cross_entropy_input %x, %w, %t : tensor<?x96xf32>, tensor<257x64xf32>, tensor<?xi32>

// -----

// LCEI1: a weight in another element type.
%x, %w, %t = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xbf16>, tensor<?xi32>)
// expected-error @+1 {{expects 'weight' to have element type 'f32', that of 'x', but got 'bf16'}}
%l, %dx = dyna.linear_cross_entropy_input %x, %w, %t : tensor<?x96xf32>, tensor<257x96xbf16>, tensor<?xi32>

// -----

// LCEI2: no target can be that small.
%x, %w, %t = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>)
// expected-error @+1 {{expects 'ignore_index' to fit in the 32 bits of a target, but got -2147483649}}
%l, %dx = dyna.linear_cross_entropy_input %x, %w, %t {ignore_index = -2147483649 : i64} : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>

// -----

// LCEI3: a part larger than the vocabulary.
%x, %w, %t = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>)
// expected-error @+1 {{expects 'weight' to have at most 256 rows, those of the whole table, but got 257}}
%l, %dx = dyna.linear_cross_entropy_input %x, %w, %t shard<group = 1, rows = 256> : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
