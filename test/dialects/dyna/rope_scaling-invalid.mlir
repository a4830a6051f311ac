// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// ROPE1: a factor below 1 would make positions grow faster.
// expected-error @+1 {{expects 'factor' to be an f64 of at least 1 and finite, but got 5.000000e-01}}
"test.op"() {scaling = #dyna.rope_scaling<factor = 0.5>} : () -> ()

// -----

// ROPE1: not a number.
// expected-error @+1 {{expects 'factor' to be an f64 of at least 1 and finite, but got 0x7FF8000000000000}}
"test.op"() {scaling = #dyna.rope_scaling<factor = 0x7FF8000000000000 : f64>} : () -> ()

// -----

// ROPE1: another type.
// expected-error @+1 {{expects 'factor' to be an f64 of at least 1 and finite, but got 2.000000e+00 : f32}}
"test.op"() {scaling = #dyna.rope_scaling<factor = 2.0 : f32>} : () -> ()

// -----

// ROPE2: half of llama3's parameters.
// expected-error @+1 {{expects all of 'low_freq_factor', 'high_freq_factor' and 'original_positions' or none, but got 2}}
"test.op"() {scaling = #dyna.rope_scaling<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0>} : () -> ()

// -----

// ROPE3: nothing lies between them.
// expected-error @+1 {{expects 0 < 'low_freq_factor' < 'high_freq_factor', f64 and finite, but got 4.000000e+00 : f64 and 4.000000e+00 : f64}}
"test.op"() {scaling = #dyna.rope_scaling<factor = 8.0, low_freq_factor = 4.0, high_freq_factor = 4.0, original_positions = 8192>} : () -> ()

// -----

// ROPE3: negative positions.
// expected-error @+1 {{expects 'original_positions' to be positive, but got -1}}
"test.op"() {scaling = #dyna.rope_scaling<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_positions = -1>} : () -> ()
