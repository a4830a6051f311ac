// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// BIASGRAD1: an accumulator of another width.
%dy, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<64xf32>)
// expected-error @+1 {{expects the size of 'accumulator' to be 96, the width of 'dy', but got 64}}
%g1 = dyna.bias_grad %dy, %g : tensor<?x96xf32>, tensor<64xf32>

// -----

// BIASGRAD2: gradients of f32 are accumulated in f32.
%dy, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xf64>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32'}}
%g1 = dyna.bias_grad %dy, %g : tensor<?x96xf32>, tensor<96xf64>

// -----

// BIASGRAD2: bf16 is for gradients of bf16 alone.
%dy, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xbf16>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32'}}
%g1 = dyna.bias_grad %dy, %g : tensor<?x96xf32>, tensor<96xbf16>
