// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// ADAMW1: bf16 masters lose small updates.
%p, %g, %m, %v = "test.values"() : () -> (tensor<96xbf16>, tensor<96xbf16>, tensor<96xbf16>, tensor<96xbf16>)
// expected-error @+1 {{expects f64 or f32 tensors, since updates are too small for narrower types, but got 'bf16'}}
%p1, %g1, %m1, %v1 = dyna.adamw %p, %g, %m, %v : tensor<96xbf16>

// -----

// ADAMW2: a gradient of another shape.
%p, %g, %m, %v = "test.values"() : () -> (tensor<96xf32>, tensor<95xbf16>, tensor<96xf32>, tensor<96xf32>)
// expected-error @+1 {{expects 'gradient' to have type 'tensor<96xf32>', that of 'master', or 'tensor<96xbf16>', but got 'tensor<95xbf16>'}}
%p1, %g1, %m1, %v1 = dyna.adamw %p, %g, %m, %v : tensor<96xf32>, tensor<95xbf16>

// -----

// ADAMW2: no narrow gradient beside f64.
%p, %g, %m, %v = "test.values"() : () -> (tensor<96xf64>, tensor<96xbf16>, tensor<96xf64>, tensor<96xf64>)
// expected-error @+1 {{expects 'gradient' to have type 'tensor<96xf64>', that of 'master', but got 'tensor<96xbf16>'}}
%p1, %g1, %m1, %v1 = dyna.adamw %p, %g, %m, %v : tensor<96xf64>, tensor<96xbf16>
