// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LGI1: dy is 384 wide.
%dy, %w = "test.values"() : () -> (tensor<?x384xf32>, tensor<96x384xf32>)
// expected-error @+1 {{expects the 'out' size of 'weight' to be 384, the width of 'dy', but got 96}}
%dx = dyna.linear_grad_input %dy, %w : tensor<?x384xf32>, tensor<96x384xf32>

// -----

// LGI1: a weight in another element type.
%dy, %w = "test.values"() : () -> (tensor<?x384xf32>, tensor<384x96xbf16>)
// expected-error @+1 {{expects 'weight' to have element type 'f32', that of 'dy', but got 'bf16'}}
%dx = dyna.linear_grad_input %dy, %w : tensor<?x384xf32>, tensor<384x96xbf16>

// -----

// LGI2: what is added has another width.
%dy, %w, %z = "test.values"() : () -> (tensor<?x384xf32>, tensor<384x96xf32>, tensor<?x64xf32>)
// expected-error @+1 {{expects 'accumulator' to have type 'tensor<?x96xf32>', that of the result, but got 'tensor<?x64xf32>'}}
%dx = dyna.linear_grad_input %dy, %w add %z : tensor<?x384xf32>, tensor<384x96xf32>, tensor<?x64xf32>

// -----

// LGI3: the result has the width of dy.
%dy, %w = "test.values"() : () -> (tensor<?x384xf32>, tensor<384x96xf32>)
// expected-error @+2 {{failed to infer returned types}}
// expected-error @+1 {{inferred type(s) 'tensor<?x96xf32>' are incompatible with return type(s) of operation 'tensor<?x384xf32>'}}
%dx = "dyna.linear_grad_input"(%dy, %w) : (tensor<?x384xf32>, tensor<384x96xf32>) -> tensor<?x384xf32>
