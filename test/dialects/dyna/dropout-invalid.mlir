// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// DROPOUT1: everything dropped: nothing could be scaled up.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'probability' to lie in [0, 1), but got 1.000000e+00}}
%y = dyna.dropout %x, %s {instance = 0 : i64, probability = 1.0 : f64} : tensor<?x96xf32>

// -----

// DROPOUT1: a negative probability.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'probability' to lie in [0, 1), but got -1.000000e-01}}
%y = dyna.dropout %x, %s {instance = 0 : i64, probability = -0.1 : f64} : tensor<?x96xf32>

// -----

// DROPOUT1: no number.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'probability' to lie in [0, 1), but got nan}}
%y = dyna.dropout %x, %s {instance = 0 : i64, probability = 0x7FF8000000000000 : f64} : tensor<?x96xf32>

// -----

// DROPOUT2: a negative instance.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'instance' to lie in [0, 2^32), but got -1}}
%y = dyna.dropout %x, %s {instance = -1 : i64, probability = 0.1 : f64} : tensor<?x96xf32>

// -----

// DROPOUT2: an instance that runs into the layer index.
%x, %s = "test.values"() : () -> (tensor<?x96xf32>, !dyna.segments)
// expected-error @+1 {{expects 'instance' to lie in [0, 2^32), but got 4294967296}}
%y = dyna.dropout %x, %s {instance = 4294967296 : i64, probability = 0.1 : f64} : tensor<?x96xf32>
