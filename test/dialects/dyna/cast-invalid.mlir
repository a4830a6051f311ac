// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// CAST1: a cast converts elements, not shapes.
%x = "test.values"() : () -> (tensor<4x96xf32>)
// expected-error @+1 {{expects result shape [4, 96], that of 'x', but got [96, 4]}}
%y = dyna.cast %x : tensor<4x96xf32> -> tensor<96x4xbf16>
