// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LCET1: x is 96 wide.
%x, %w, %t, %g0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x64xf32>, tensor<?xi32>, tensor<257x96xf32>)
// expected-error @+1 {{expects the 'in' size of 'weight' to be 96, the width of 'x', but got 64}}
%l, %dx, %g1 = dyna.linear_cross_entropy_train %x, %w, %t, %g0 : tensor<?x96xf32>, tensor<257x64xf32>, tensor<?xi32>, tensor<257x96xf32>

// -----

// LCET1: a weight in another element type.
%x, %w, %t, %g0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xbf16>, tensor<?xi32>, tensor<257x96xf32>)
// expected-error @+1 {{expects 'weight' to have element type 'f32', that of 'x', but got 'bf16'}}
%l, %dx, %g1 = dyna.linear_cross_entropy_train %x, %w, %t, %g0 : tensor<?x96xf32>, tensor<257x96xbf16>, tensor<?xi32>, tensor<257x96xf32>

// -----

// LCET2: an accumulator of another shape.
%x, %w, %t, %g0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<256x96xf32>)
// expected-error @+1 {{expects 'accumulator' to have shape [257, 96], that of 'weight', but got [256, 96]}}
%l, %dx, %g1 = dyna.linear_cross_entropy_train %x, %w, %t, %g0 : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<256x96xf32>

// -----

// LCET3: gradients of f32 are accumulated in f32.
%x, %w, %t, %g0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xf64>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32', in which gradients of 'f32' are accumulated (that is the type of 'x'), but got 'f64'}}
%l, %dx, %g1 = dyna.linear_cross_entropy_train %x, %w, %t, %g0 : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xf64>

// -----

// LCET4: no target can be that small.
%x, %w, %t, %g0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xf32>)
// expected-error @+1 {{expects 'ignore_index' to fit in the 32 bits of a target, but got -2147483649}}
%l, %dx, %g1 = dyna.linear_cross_entropy_train %x, %w, %t, %g0 {ignore_index = -2147483649 : i64} : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xf32>

// -----

// LCET5: a part larger than the vocabulary.
%x, %w, %t, %g0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xf32>)
// expected-error @+1 {{expects 'weight' to have at most 256 rows, those of the whole table, but got 257}}
%l, %dx, %g1 = dyna.linear_cross_entropy_train %x, %w, %t, %g0 shard<group = 1, rows = 256> : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xf32>

// -----

// LCET3: bf16 is for gradients of bf16 alone.
%x, %w, %t, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xbf16>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32'}}
%loss, %dx, %g1 = dyna.linear_cross_entropy_train %x, %w, %t, %g : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>, tensor<257x96xbf16>
