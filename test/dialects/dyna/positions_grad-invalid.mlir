// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// POSGRAD1: a table of another width.
%dy, %s, %g = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments, tensor<128x64xf32>)
// expected-error @+1 {{expects the width of 'accumulator' to be 96, the width of 'dy', but got 64}}
%g1 = dyna.positions_grad %dy, %s, %g : tensor<?x96xf32>, tensor<128x64xf32>

// -----

// POSGRAD2: gradients of f64 are accumulated in f64.
%dy, %s, %g = "test.values"() : () -> (tensor<?x96xf64>, !dyna.segments, tensor<128x96xf32>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f64', in which gradients of 'f64' are accumulated (that is the type of 'dy'), but got 'f32'}}
%g1 = dyna.positions_grad %dy, %s, %g : tensor<?x96xf64>, tensor<128x96xf32>

// -----

// POSGRAD2: bf16 is for gradients of bf16 alone.
%dy, %s, %g = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments, tensor<64x96xbf16>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32'}}
%g1 = dyna.positions_grad %dy, %s, %g : tensor<?x96xf32>, tensor<64x96xbf16>
