// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// RMSGW1: an accumulator of another width.
%x, %dy, %w0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<64xf32>)
// expected-error @+1 {{expects the size of 'accumulator' to be 96, the width of 'x', but got 64}}
%gw = dyna.rms_norm_grad_weight %x, %dy, %w0 {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<64xf32>

// -----

// RMSGW2: an epsilon of zero.
%x, %dy, %w0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<96xf32>)
// expected-error @+1 {{expects 'epsilon' to be positive and finite, but got 0.000000e+00}}
%gw = dyna.rms_norm_grad_weight %x, %dy, %w0 {epsilon = 0.0 : f64} : tensor<?x96xf32>, tensor<96xf32>

// -----

// RMSGW3: gradients of f32 are accumulated in f32.
%x, %dy, %w0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<96xf64>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32'}}
%gw = dyna.rms_norm_grad_weight %x, %dy, %w0 {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf64>

// -----

// RMSGW3: bf16 is for gradients of bf16 alone.
%x, %dy, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<96xbf16>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32'}}
%g1 = dyna.rms_norm_grad_weight %x, %dy, %g {epsilon = 1.0e-6 : f64} : tensor<?x96xf32>, tensor<96xbf16>
