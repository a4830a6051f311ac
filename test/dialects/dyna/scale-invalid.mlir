// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// SCALE1: a factor of 0 would end what it scales.
%x = "test.values"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects 'factor' to be positive and finite, but got}}
%y = dyna.scale %x {factor = 0.0 : f64} : tensor<?x96xf32>

// -----

// SCALE1: infinity.
%x = "test.values"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects 'factor' to be positive and finite, but got}}
%y = dyna.scale %x {factor = 0x7FF0000000000000 : f64} : tensor<?x96xf32>
