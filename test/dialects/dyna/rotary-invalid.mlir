// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// ROTARY1: no features in a head.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'head_dim' to be positive, even and a divisor of the width of 'x', 96, but got 0}}
%y = dyna.rotary %x, %s {head_dim = 0 : i64, theta = 1.0e4 : f64} : tensor<?x96xf32>

// -----

// ROTARY1: an odd head has a feature without partner.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'head_dim' to be positive, even and a divisor of the width of 'x', 96, but got 3}}
%y = dyna.rotary %x, %s {head_dim = 3 : i64, theta = 1.0e4 : f64} : tensor<?x96xf32>

// -----

// ROTARY1: heads that do not fill the width.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'head_dim' to be positive, even and a divisor of the width of 'x', 96, but got 64}}
%y = dyna.rotary %x, %s {head_dim = 64 : i64, theta = 1.0e4 : f64} : tensor<?x96xf32>

// -----

// ROTARY2: a negative base.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'theta' to be positive and finite, but got -1.000000e+04}}
%y = dyna.rotary %x, %s {head_dim = 32 : i64, theta = -1.0e4 : f64} : tensor<?x96xf32>
