// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// POSITIONS1: a result of another width than the table.
%w, %s = "test.values"() : () -> (tensor<128x96xf32>, !dyna.segments)
// expected-error @+2 {{failed to infer returned types}}
// expected-error @+1 {{inferred type(s) 'tensor<?x96xf32>' are incompatible with return type(s) of operation 'tensor<?x64xf32>'}}
%x = "dyna.positions"(%w, %s) : (tensor<128x96xf32>, !dyna.segments) -> tensor<?x64xf32>
