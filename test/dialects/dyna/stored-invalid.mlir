// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// STORED1: a tensor without a name.
// expected-error @+1 {{expects 'name', that of a tensor, but got none}}
dyna.parameter @w : tensor<8x4xf32> stored<name = "">

// -----

// STORED1: a copy that is the tensor itself.
// expected-error @+1 {{expects 'copy' to be another name than "w.weight", but got "w.weight"}}
dyna.parameter @w : tensor<8x4xf32> stored<name = "w.weight", copy = "w.weight">

// -----

// STORED1: a copy without a name.
// expected-error @+1 {{expects 'copy' to be another name than "w.weight", but got ""}}
dyna.parameter @w : tensor<8x4xf32> stored<name = "w.weight", copy = "">

// -----

// STORED2: a part behind the last.
// expected-error @+1 {{expects 'part' to be one of the 'parts' = 3 from 0, but got 3}}
dyna.parameter @w : tensor<8x4xf32> stored<name = "qkv", part = 3, parts = 3>

// -----

// STORED2: a negative part.
// expected-error @+1 {{expects 'part' to be one of the 'parts' = 3 from 0, but got -1}}
dyna.parameter @w : tensor<8x4xf32> stored<name = "qkv", part = -1, parts = 3>

// -----

// STORED2: a tensor of no parts.
// expected-error @+1 {{expects 'part' to be one of the 'parts' = 0 from 0, but got 0}}
dyna.parameter @w : tensor<8x4xf32> stored<name = "qkv", parts = 0>

// -----

// FACTS1: a number is no end of a name.
// expected-error @+1 {{expects 'buffers' to be ends of names, but got 3 : i64}}
"test.facts"() {f = #dyna.facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "", buffers = [3]>} : () -> ()

// -----

// FACTS1: every name ends in nothing.
// expected-error @+1 {{expects 'buffers' to be ends of names, but got ""}}
"test.facts"() {f = #dyna.facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "", buffers = [".mask", ""]>} : () -> ()
