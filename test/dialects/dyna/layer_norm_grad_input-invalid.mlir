// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LNGI1: a weight of another width.
%x, %g, %dy = "test.values"() : () -> (tensor<?x96xf32>, tensor<64xf32>, tensor<?x96xf32>)
// expected-error @+1 {{expects the size of 'weight' to be 96, the width of 'x', but got 64}}
%dx = dyna.layer_norm_grad_input %x, %g, %dy {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<64xf32>

// -----

// LNGI1: a weight in another element type.
%x, %g, %dy = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xf64>, tensor<?x96xf32>)
// expected-error @+1 {{expects 'weight' to have element type 'f32', that of 'x', but got 'f64'}}
%dx = dyna.layer_norm_grad_input %x, %g, %dy {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf64>

// -----

// LNGI2: an epsilon of zero.
%x, %g, %dy = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xf32>, tensor<?x96xf32>)
// expected-error @+1 {{expects 'epsilon' to be positive and finite, but got 0.000000e+00}}
%dx = dyna.layer_norm_grad_input %x, %g, %dy {epsilon = 0.0 : f64} : tensor<?x96xf32>, tensor<96xf32>
