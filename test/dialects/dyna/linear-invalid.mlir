// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// LINEAR1: x is 96 wide.
%x, %w = "test.values"() : () -> (tensor<?x96xf32>, tensor<384x64xf32>)
// expected-error @+1 {{expects the 'in' size of 'weight' to be 96, the width of 'x', but got 64}}
%y = dyna.linear %x, %w : tensor<?x96xf32>, tensor<384x64xf32>

// -----

// LINEAR2: the bias has the size of x, not of the result.
%x, %w, %b = "test.values"() : () -> (tensor<?x96xf32>, tensor<384x96xf32>, tensor<96xf32>)
// expected-error @+1 {{expects the size of 'bias' to be 384, the 'out' size of 'weight', but got 96}}
%y = dyna.linear %x, %w, %b : tensor<?x96xf32>, tensor<384x96xf32>, tensor<96xf32>

// -----

// LINEAR3: a weight in another element type.
%x, %w = "test.values"() : () -> (tensor<?x96xf32>, tensor<384x96xbf16>)
// expected-error @+1 {{expects 'weight' to have element type 'f32', that of 'x', but got 'bf16'}}
%y = dyna.linear %x, %w : tensor<?x96xf32>, tensor<384x96xbf16>

// -----

// LINEAR3: a bias in another element type.
%x, %w, %b = "test.values"() : () -> (tensor<?x96xf32>, tensor<384x96xf32>, tensor<384xf64>)
// expected-error @+1 {{expects 'bias' to have element type 'f32', that of 'x', but got 'f64'}}
%y = dyna.linear %x, %w, %b : tensor<?x96xf32>, tensor<384x96xf32>, tensor<384xf64>

// -----

// LINEAR4: the result has the width of x.
%x, %w = "test.values"() : () -> (tensor<?x96xf32>, tensor<384x96xf32>)
// expected-error @+2 {{failed to infer returned types}}
// expected-error @+1 {{inferred type(s) 'tensor<?x384xf32>' are incompatible with return type(s) of operation 'tensor<?x96xf32>'}}
%y = "dyna.linear"(%x, %w) : (tensor<?x96xf32>, tensor<384x96xf32>) -> tensor<?x96xf32>

// -----

// Types: activations are ragged.
%x, %w = "test.values"() : () -> (tensor<8x96xf32>, tensor<384x96xf32>)
// expected-error @+1 {{operand #0 must be token-major tensor [?, features] of f64, f32 or bf16, but got 'tensor<8x96xf32>'}}
%y = dyna.linear %x, %w : tensor<8x96xf32>, tensor<384x96xf32>

// -----

// Types: f16 is no compute type.
%x, %w = "test.values"() : () -> (tensor<?x96xf16>, tensor<384x96xf32>)
// expected-error @+1 {{operand #0 must be token-major tensor [?, features] of f64, f32 or bf16, but got 'tensor<?x96xf16>'}}
%y = dyna.linear %x, %w : tensor<?x96xf16>, tensor<384x96xf32>

// -----

// Types: encodings mean nothing yet.
%x, %w = "test.values"() : () -> (tensor<?x96xf32>, tensor<384x96xf32, "csr">)
// expected-error @+1 {{operand #1 must be static matrix of f64, f32 or bf16, but got 'tensor<384x96xf32, "csr">'}}
%y = dyna.linear %x, %w : tensor<?x96xf32>, tensor<384x96xf32, "csr">

// -----

// PLACES1: a linear has one result and at most one scratch.
%x, %w = "test.values"() : () -> (tensor<?x96xf32>, tensor<384x96xf32>)
// expected-error @+1 {{expects 1 places, one per result, or 2 with scratch, but got 3}}
%y = dyna.linear %x, %w {places = [#dyna.place<workspace>, #dyna.place<workspace>, #dyna.place<workspace>]} : tensor<?x96xf32>, tensor<384x96xf32>

// -----

// PLACES2: scratch is in workspace.
%x, %w = "test.values"() : () -> (tensor<?x96xf32>, tensor<384x96xf32>)
// expected-error @+1 {{to be in workspace, but got #dyna.place<products>}}
%y = dyna.linear %x, %w {places = [#dyna.place<workspace>, #dyna.place<products>]} : tensor<?x96xf32>, tensor<384x96xf32>
