// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// PARAM1: a dynamic size.
// expected-error @+1 {{expects a static tensor of f64, f32 or bf16 with at least one element, but got 'tensor<?x96xf32>'}}
dyna.parameter @w : tensor<?x96xf32>

// -----

// PARAM1: integers are not trained.
// expected-error @+1 {{expects a static tensor of f64, f32 or bf16 with at least one element, but got 'tensor<96xi32>'}}
dyna.parameter @w : tensor<96xi32>

// -----

// PARAM1: nothing to train.
// expected-error @+1 {{expects a static tensor of f64, f32 or bf16 with at least one element, but got 'tensor<0x96xf32>'}}
dyna.parameter @w : tensor<0x96xf32>

// -----

// PARAM1: more bytes than can be counted.
// expected-error @+1 {{expects a static tensor of f64, f32 or bf16 with at least one element, but got 'tensor<4294967296x4294967296xf32>'}}
dyna.parameter @w : tensor<4294967296x4294967296xf32>

// -----

// PARAM1: no tensor.
// expected-error @+1 {{expects a static tensor of f64, f32 or bf16 with at least one element, but got 'f32'}}
dyna.parameter @w : f32

// -----

// PARAM2: a negative spread.
// expected-error @+1 {{expects 'normal' to be finite and not negative, but got -2.000000e-02}}
dyna.parameter @w : tensor<96xf32> normal -0.02

// -----

// PARAM2: an infinite spread.
// expected-error @+1 {{expects 'normal' to be finite and not negative, but got INF}}
dyna.parameter @w : tensor<96xf32> normal 0x7FF0000000000000

// -----

// PARAM2: no number.
// expected-error @+1 {{expects 'constant' to be finite, but got nan}}
dyna.parameter @w : tensor<96xf32> constant 0x7FF8000000000000

// -----

// PARAM3: a vector has nothing to transpose.
// expected-error @+1 {{expects two dimensions, as it is stored transposed, but got 'tensor<96xf32>'}}
dyna.parameter @w : tensor<96xf32> stored<name = "w.weight", transposed = true>

// -----

// PARAM3: of three dimensions it is not known which two are meant.
// expected-error @+1 {{expects two dimensions, as it is stored transposed, but got 'tensor<2x3x4xf32>'}}
dyna.parameter @w : tensor<2x3x4xf32> stored<name = "w.weight", transposed = true>

// -----

// PARAM4: a scalar has no dimension along which it could be a part.
// expected-error @+1 {{expects a dimension, as it is stored as a part of a tensor, but got 'tensor<f32>'}}
dyna.parameter @w : tensor<f32> stored<name = "w", part = 0, parts = 2>
