// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LN1: weights of another width.
%x, %g, %b = "test.values"() : () -> (tensor<?x96xf32>, tensor<64xf32>, tensor<64xf32>)
// expected-error @+1 {{expects the size of 'weight' to be 96, the width of 'x', but got 64}}
%y = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<64xf32>

// -----

// LN1: weights in another element type.
%x, %g, %b = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xbf16>, tensor<96xbf16>)
// expected-error @+1 {{expects 'weight' to have element type 'f32', that of 'x', but got 'bf16'}}
%y = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xbf16>

// -----

// LN2: an epsilon of zero.
%x, %g, %b = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xf32>, tensor<96xf32>)
// expected-error @+1 {{expects 'epsilon' to be positive and finite, but got 0.000000e+00}}
%y = dyna.layer_norm %x, %g, %b {epsilon = 0.0 : f64} : tensor<?x96xf32>, tensor<96xf32>

// -----

// LN2: an epsilon that is no number.
%x, %g, %b = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xf32>, tensor<96xf32>)
// expected-error @+1 {{expects 'epsilon' to be positive and finite, but got nan}}
%y = dyna.layer_norm %x, %g, %b {epsilon = 0x7FF8000000000000 : f64} : tensor<?x96xf32>, tensor<96xf32>
