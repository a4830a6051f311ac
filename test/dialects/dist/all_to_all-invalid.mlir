// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// TOALL1: no such dimension.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{, 0 to 1, but got -1}}
%y = dist.all_to_all %x dim 0 to -1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x48xf32>

// -----

// TOALL1: one dimension.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects two dimensions, but got 1 twice}}
%y = dist.all_to_all %x dim 1 to 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x96xf32>

// -----

// TOALL2: a third dimension changes.
%x = "test.value"() : () -> tensor<8x4x96xf32>
// expected-error @+1 {{expects the sizes of dimension 0 to be equal}}
%y = dist.all_to_all %x dim 1 to 2 over <1 [tp] on <tp=2>> : tensor<8x4x96xf32> -> tensor<4x8x48xf32>

// -----

// TOALL3: the operand's part is no part.
%x = "test.value"() : () -> tensor<?x4x96xf32>
// expected-error @+1 {{expects dimension 1 of 'tensor<?x4x48xf32>' to be 2 times that of 'tensor<?x4x96xf32>'}}
%y = dist.all_to_all %x dim 1 to 2 over <1 [tp] on <tp=2>> : tensor<?x4x96xf32> -> tensor<?x4x48xf32>

// -----

// TOALL3: nor the result's.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects dimension 1 of 'tensor<?x96xf32>' to be 2 times that of 'tensor<?x96xf32>'}}
%y = dist.all_to_all %x dim 0 to 1 over <1 [tp] on <tp=2>> : tensor<?x96xf32> -> tensor<?x96xf32>
