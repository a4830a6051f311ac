// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// BIAS1: a bias of another width.
%x, %b = "test.values"() : () -> (tensor<?x96xf32>, tensor<64xf32>)
// expected-error @+1 {{expects the size of 'bias' to be 96, the width of 'x', but got 64}}
%y = dyna.bias %x, %b : tensor<?x96xf32>, tensor<64xf32>

// -----

// BIAS1: a bias in another element type.
%x, %b = "test.values"() : () -> (tensor<?x96xf32>, tensor<96xf64>)
// expected-error @+1 {{expects 'bias' to have element type 'f32', that of 'x', but got 'f64'}}
%y = dyna.bias %x, %b : tensor<?x96xf32>, tensor<96xf64>
