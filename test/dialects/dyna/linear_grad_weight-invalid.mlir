// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LGW1: a transposed accumulator.
%dy, %x, %g = "test.values"() : () -> (tensor<?x384xf32>, tensor<?x96xf32>, tensor<96x384xf32>)
// expected-error @+1 {{expects the first size of 'accumulator' to be 384, the width of 'dy', but got 96}}
%g1 = dyna.linear_grad_weight %dy, %x, %g : tensor<?x384xf32>, tensor<?x96xf32>, tensor<96x384xf32>

// -----

// LGW1: an accumulator of another width.
%dy, %x, %g = "test.values"() : () -> (tensor<?x384xf32>, tensor<?x96xf32>, tensor<384x64xf32>)
// expected-error @+1 {{expects the second size of 'accumulator' to be 96, the width of 'x', but got 64}}
%g1 = dyna.linear_grad_weight %dy, %x, %g : tensor<?x384xf32>, tensor<?x96xf32>, tensor<384x64xf32>

// -----

// LGW2: two element types.
%dy, %x, %g = "test.values"() : () -> (tensor<?x384xf32>, tensor<?x96xbf16>, tensor<384x96xf32>)
// expected-error @+1 {{expects 'x' to have element type 'f32', that of 'dy', but got 'bf16'}}
%g1 = dyna.linear_grad_weight %dy, %x, %g : tensor<?x384xf32>, tensor<?x96xbf16>, tensor<384x96xf32>

// -----

// LGW3: gradients of f32 are accumulated in f32.
%dy, %x, %g = "test.values"() : () -> (tensor<?x384xf32>, tensor<?x96xf32>, tensor<384x96xf64>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32'}}
%g1 = dyna.linear_grad_weight %dy, %x, %g : tensor<?x384xf32>, tensor<?x96xf32>, tensor<384x96xf64>

// -----

// LGW3: bf16 is for gradients of bf16 alone.
%dy, %x, %g = "test.values"() : () -> (tensor<?x384xf32>, tensor<?x96xf32>, tensor<384x96xbf16>)
// expected-error @+1 {{expects 'accumulator' to have element type 'f32'}}
%g1 = dyna.linear_grad_weight %dy, %x, %g : tensor<?x384xf32>, tensor<?x96xf32>, tensor<384x96xbf16>
