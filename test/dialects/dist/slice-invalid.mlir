// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// SLICE1: no such dimension.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{, 0 to 1, but got 2}}
%y = dist.slice %x dim 2 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>

// -----

// SLICE1: another element type.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects operand and result of one rank and element type}}
%y = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf64>

// -----

// SLICE2: another dimension changes as well.
%x = "test.value"() : () -> tensor<8x96xf32>
// expected-error @+1 {{expects the sizes of dimension 0 to be equal}}
%y = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<8x96xf32> -> tensor<4x48xf32>

// -----

// SLICE3: two ranks, but four parts.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects dimension 1 of 'tensor<?x96xf32>' to be 4 times that of 'tensor<?x48xf32>', one part for each rank of the group}}
%y = dist.slice %x dim 1 over <1 [tp] on <tp=4>> : tensor<?x96xf32> -> tensor<?x48xf32>

// -----

// SLICE3: known on one side only.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects dimension 0 of}}
%y = dist.slice %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<8x96xf32>
