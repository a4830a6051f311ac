// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// ATTN1: five heads do not divide into two groups.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects 'heads' to be a positive multiple of 'kv_heads', but got heads = 5 and kv_heads = 2}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 5 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// ATTN1: no key/value head.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects 'heads' to be a positive multiple of 'kv_heads', but got heads = 8 and kv_heads = 0}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i64, kv_heads = 0 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// ATTN1: no head.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{'dyna.attention' op expects a positive attribute 'heads' of i64, but got 0 : i64}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 0 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// ATTN1: heads of another integer type.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{attribute 'heads' failed to satisfy constraint: 64-bit signless integer attribute}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i32, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// ATTN1: heads that are no number.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{attribute 'heads' failed to satisfy constraint: 64-bit signless integer attribute}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = "eight", kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// ATTN2: 128 features cannot be shared by 12 heads.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects the width of 'query' to be a multiple of heads = 12, but got 128}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 12 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// ATTN3: a key of the width of the query.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects the width of 'key' to be 32, kv_heads = 2 times the head size 16 of 'query', but got 128}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x32xf32>

// -----

// ATTN3: a value of the width of the query.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x128xf32>, !dyna.segments)
// expected-error @+1 {{expects the width of 'value' to be 32, kv_heads = 2 times the head size 16 of 'query', but got 128}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x128xf32>

// -----

// ATTN4: a key in another element type.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xbf16>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects 'key' to have element type 'f32', that of 'query', but got 'bf16'}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xbf16>, tensor<?x32xf32>

// -----

// ATTN4: a value in another element type.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xbf16>, !dyna.segments)
// expected-error @+1 {{expects 'value' to have element type 'f32', that of 'query', but got 'bf16'}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xbf16>

// -----

// ATTN5: a scale of zero.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects 'scale' to be positive and finite, but got 0.000000e+00}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.0 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// ATTN5: an infinite scale.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects 'scale' to be positive and finite, but got INF}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0x7FF0000000000000 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// ATTN6: statistics of f32 input are f32.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+2 {{failed to infer returned types}}
// expected-error @+1 {{inferred type(s) 'tensor<?x128xf32>', 'tensor<?x8xf32>' are incompatible with return type(s) of operation 'tensor<?x128xf32>', 'tensor<?x8xf64>'}}
%o, %lse = "dyna.attention"(%q, %k, %v, %s) {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments) -> (tensor<?x128xf32>, tensor<?x8xf64>)

// -----

// ATTN7: a negative number.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects 'number' not to be negative, but got -1}}
%o, %lse = dyna.attention %q, %k, %v, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64, number = -1 : i64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>

// -----

// Types: an op without its attributes.
%q, %k, %v, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, !dyna.segments)
// expected-error @+1 {{expects a positive attribute 'heads' of i64, but got <<NULL ATTRIBUTE>>}}
%o, %lse = dyna.attention %q, %k, %v, %s : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>
