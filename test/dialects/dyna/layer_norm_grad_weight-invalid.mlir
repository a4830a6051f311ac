// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LNGW1: an accumulator of another width.
%x, %dy, %w0, %b0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<64xf32>, tensor<64xf32>)
// expected-error @+1 {{expects the size of 'weight_accumulator' to be 96, the width of 'x', but got 64}}
%gw, %gb = dyna.layer_norm_grad_weight %x, %dy, %w0, %b0 {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<64xf32>

// -----

// LNGW2: an epsilon of zero.
%x, %dy, %w0, %b0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<96xf32>, tensor<96xf32>)
// expected-error @+1 {{expects 'epsilon' to be positive and finite, but got 0.000000e+00}}
%gw, %gb = dyna.layer_norm_grad_weight %x, %dy, %w0, %b0 {epsilon = 0.0 : f64} : tensor<?x96xf32>, tensor<96xf32>

// -----

// LNGW3: gradients of f32 are accumulated in f32.
%x, %dy, %w0, %b0 = "test.values"() : () -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<96xf64>, tensor<96xf64>)
// expected-error @+1 {{expects 'weight_accumulator' to have element type 'f32'}}
%gw, %gb = dyna.layer_norm_grad_weight %x, %dy, %w0, %b0 {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf64>

// -----

// LNGW3: bf16 is for gradients of bf16 alone.
%x, %dy, %g, %h = "test.values"() : () -> (tensor<?x96xf32>, tensor<?x96xf32>, tensor<96xbf16>, tensor<96xbf16>)
// expected-error @+1 {{expects 'weight_accumulator' to have element type 'f32'}}
%g1, %h1 = dyna.layer_norm_grad_weight %x, %dy, %g, %h {epsilon = 1.0e-6 : f64} : tensor<?x96xf32>, tensor<96xbf16>
