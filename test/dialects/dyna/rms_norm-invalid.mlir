// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// RMS1: a weight of another width.
%x, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<64xf32>)
// expected-error @+1 {{expects the size of 'weight' to be 96, the width of 'x', but got 64}}
%y = dyna.rms_norm %x, %g {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<64xf32>

// -----

// RMS1: a weight in another element type.
%x, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xbf16>)
// expected-error @+1 {{expects 'weight' to have element type 'f32', that of 'x', but got 'bf16'}}
%y = dyna.rms_norm %x, %g {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xbf16>

// -----

// RMS2: a negative epsilon.
%x, %g = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xf32>)
// expected-error @+1 {{expects 'epsilon' to be positive and finite, but got -1.000000e-05}}
%y = dyna.rms_norm %x, %g {epsilon = -1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf32>
