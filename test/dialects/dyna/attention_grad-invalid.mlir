// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// ATTNGRAD1: ATTN1 does not hold.
%q, %k, %v, %o, %lse, %do, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x128xf32>, tensor<?x8xf32>, tensor<?x128xf32>, !dyna.segments)
// expected-error @+1 {{expects 'heads' to be a positive multiple of 'kv_heads', but got heads = 5 and kv_heads = 2}}
%dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %s {heads = 5 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8xf32>

// -----

// ATTNGRAD1: ATTN2 does not hold.
%q, %k, %v, %o, %lse, %do, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x128xf32>, tensor<?x8xf32>, tensor<?x128xf32>, !dyna.segments)
// expected-error @+1 {{expects the width of 'query' to be a multiple of heads = 12, but got 128}}
%dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %s {heads = 12 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8xf32>

// -----

// ATTNGRAD1: ATTN3 does not hold.
%q, %k, %v, %o, %lse, %do, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x128xf32>, tensor<?x8xf32>, tensor<?x128xf32>, !dyna.segments)
// expected-error @+1 {{expects the width of 'key' to be 32, kv_heads = 2 times the head size 16 of 'query', but got 128}}
%dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x8xf32>

// -----

// ATTNGRAD1: ATTN4 does not hold.
%q, %k, %v, %o, %lse, %do, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xbf16>, tensor<?x128xf32>, tensor<?x8xf32>, tensor<?x128xf32>, !dyna.segments)
// expected-error @+1 {{expects 'value' to have element type 'f32', that of 'query', but got 'bf16'}}
%dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xbf16>, tensor<?x8xf32>

// -----

// ATTNGRAD1: ATTN5 does not hold.
%q, %k, %v, %o, %lse, %do, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x128xf32>, tensor<?x8xf32>, tensor<?x128xf32>, !dyna.segments)
// expected-error @+1 {{expects 'scale' to be positive and finite, but got -1.000000e+00}}
%dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = -1.0 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8xf32>

// -----

// ATTNGRAD2: one number per head.
%q, %k, %v, %o, %lse, %do, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x128xf32>, tensor<?x2xf32>, tensor<?x128xf32>, !dyna.segments)
// expected-error @+1 {{expects the width of 'lse' to be 8, the number of heads, but got 2}}
%dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x2xf32>

// -----

// ATTNGRAD2: statistics of f32 input are f32.
%q, %k, %v, %o, %lse, %do, %s = "test.values"() : () -> (tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x128xf32>, tensor<?x8xf64>, tensor<?x128xf32>, !dyna.segments)
// expected-error @+1 {{expects 'lse' to have element type 'f32'}}
%dq, %dk, %dv = dyna.attention_grad %q, %k, %v, %o, %lse, %do, %s {heads = 8 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x128xf32>, tensor<?x32xf32>, tensor<?x32xf32>, tensor<?x8xf64>
