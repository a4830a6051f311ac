// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// ADAMW1: bf16 masters lose small updates.
%p, %g, %m, %v = "test.values"() : () -> (tensor<96xbf16>, tensor<96xbf16>, tensor<96xbf16>, tensor<96xbf16>)
// expected-error @+1 {{expects f64 or f32 tensors, since updates are too small for narrower types, but got 'bf16'}}
%p1, %g1, %m1, %v1 = dyna.adamw %p, %g, %m, %v : tensor<96xbf16>
