// How every op can be split over ranks: one remark per op. A `!` marks factors that are
// never split, `linear in` the operands through which a sum passes, `tied` accumulators.
// Quotes end a rule, so that one that claims more does not match.

// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -dyna-report-layout-rules -verify-diagnostics

dyna.layer @tables[%w: tensor<257x8xf32>, %p: tensor<64x8xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  // expected-remark @+1 {{'[t] [v, n] -> [t, n]'}}
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  // expected-remark @+1 {{'[p!, n] [] -> [t, n]'}}
  %1 = dyna.positions %p, %s : tensor<64x8xf32>
  // expected-remark @+1 {{'[t, n] [t] [v, n] -> [v, n] linear in {0} tied 2=0'}}
  %2 = dyna.embedding_grad %0, %ids, %w : tensor<?x8xf32>, tensor<?xi32>, tensor<257x8xf32>
  // expected-remark @+1 {{'[t, n] [] [p!, n] -> [p!, n] linear in {0} tied 2=0'}}
  %3 = dyna.positions_grad %0, %s, %p : tensor<?x8xf32>, tensor<64x8xf32>
  // expected-remark @+1 {{'[t, n] [] -> [t, n] linear in {0}'}}
  %4 = dyna.dropout %0, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %4 : tensor<?x8xf32>
}

// -----

dyna.layer @products[%w: tensor<6x8xf32>, %b: tensor<6xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-remark @+1 {{'[t, k] [n, k] -> [t, n] linear in {0}'}}
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<6x8xf32>
  // expected-remark @+1 {{'[t, k!] [n, k!] [n] -> [t, n]'}}
  %1 = dyna.linear %x, %w, %b : tensor<?x8xf32>, tensor<6x8xf32>, tensor<6xf32>
  // expected-remark @+1 {{'[t, n] [n, k] -> [t, k] linear in {0}'}}
  %2 = dyna.linear_grad_input %0, %w : tensor<?x6xf32>, tensor<6x8xf32>
  // expected-remark @+1 {{'[t, n] [n, k] [t, k] -> [t, k] linear in {0, 2} tied 2=0'}}
  %3 = dyna.linear_grad_input %0, %w add %x : tensor<?x6xf32>, tensor<6x8xf32>, tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] [t, k] [n, k] -> [n, k] linear in {0} tied 2=0'}}
  %4 = dyna.linear_grad_weight %0, %x, %w : tensor<?x6xf32>, tensor<?x8xf32>, tensor<6x8xf32>
  // expected-remark @+1 {{'[t, n] [n] -> [n] linear in {0} tied 1=0'}}
  %5 = dyna.bias_grad %0, %b : tensor<?x6xf32>, tensor<6xf32>
  // expected-remark @+1 {{'[t, n] [n] -> [t, n]'}}
  %6 = dyna.bias %0, %b : tensor<?x6xf32>, tensor<6xf32>
  dyna.return %2 : tensor<?x8xf32>
}

// -----

dyna.layer @attention[%w: tensor<8x16xf32>](%q: tensor<?x16xf32>, %s: !dyna.segments) -> tensor<?x16xf32> {
  // expected-remark @+1 {{'[t, k] [n, k] -> [t, n] linear in {0}'}}
  %k = dyna.linear %q, %w : tensor<?x16xf32>, tensor<8x16xf32>
  // expected-remark @+1 {{'[t!, g r d!] [s!, g d!] [s!, g d!] [] -> [t!, g r d!] [t!, g r]'}}
  %0, %lse = dyna.attention %q, %k, %k, %s {causal, heads = 4 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  // expected-remark @+1 {{'[t!, g r d!] [s!, g d!] [s!, g d!] [t!, g r d!] [t!, g r] [t!, g r d!] [] -> [t!, g r d!] [s!, g d!] [s!, g d!]'}}
  %1, %2, %3 = dyna.attention_grad %q, %k, %k, %0, %lse, %0, %s {causal, heads = 4 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4xf32>
  // expected-remark @+1 {{'[t!, h d!] [] -> [t!, h d!] linear in {0}'}}
  %4 = dyna.rotary %q, %s {head_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<?x16xf32>
  dyna.return %4 : tensor<?x16xf32>
}

// -----

dyna.layer @rows[%g: tensor<8xf32>, %b: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-remark @+1 {{'[t, n] -> [t, n]'}}
  %0 = dyna.gelu %x tanh : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] -> [t, n] linear in {0}'}}
  %scaled = dyna.scale %x {factor = 0.5 : f64} : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] -> [t, n]'}}
  %1 = dyna.silu %x : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] -> [t, n]'}}
  %2 = dyna.relu %x : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] [t, n] -> [t, n] linear in {0, 1}'}}
  %3 = dyna.add %x, %1 : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] [t, n] -> [t, n]'}}
  %4 = dyna.mul %x, %1 : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] [t, n] -> [t, n]'}}
  %5 = dyna.gelu_grad %x, %1 tanh : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] [t, n] -> [t, n]'}}
  %6 = dyna.silu_grad %x, %1 : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n] [t, n] -> [t, n]'}}
  %7 = dyna.relu_grad %x, %1 : tensor<?x8xf32>
  // expected-remark @+1 {{'[t, n!] [n!] [n!] -> [t, n!]'}}
  %8 = dyna.layer_norm %x, %g, %g {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>
  // expected-remark @+1 {{'[t, n!] [n!] -> [t, n!]'}}
  %9 = dyna.rms_norm %x, %g {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>
  // expected-remark @+1 {{'[t, n!] [n!] [t, n!] -> [t, n!]'}}
  %10 = dyna.layer_norm_grad_input %x, %g, %1 {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>
  // expected-remark @+1 {{'[t, n!] [n!] [t, n!] -> [t, n!]'}}
  %11 = dyna.rms_norm_grad_input %x, %g, %1 {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>
  // expected-remark @+1 {{'[t, n!] [t, n!] [n!] [n!] -> [n!] [n!] tied 2=0 tied 3=1'}}
  %12, %13 = dyna.layer_norm_grad_weight %x, %1, %g, %b {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>
  // expected-remark @+1 {{'[t, n!] [t, n!] [n!] -> [n!] tied 2=0'}}
  %14 = dyna.rms_norm_grad_weight %x, %1, %g {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>
  dyna.return %11 : tensor<?x8xf32>
}

// -----

dyna.layer @loss[%w: tensor<257x8xf32>, %d: tensor<257x8xf32>](%x: tensor<?x8xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
  // expected-remark @+1 {{'[t!, k!] [v, k!] [t!] -> [1!] reduced 0'}}
  %0 = dyna.linear_cross_entropy %x, %w, %t : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>
  // expected-remark @+1 {{'[t!, k!] [v, k!] [t!] [v, k!] -> [1!] [t!, k!] [v, k!] tied 3=2 reduced 0'}}
  %1, %2, %3 = dyna.linear_cross_entropy_train %x, %w, %t, %d : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>, tensor<257x8xf32>
  // expected-remark @+1 {{'[t!, k!] [v, k!] [t!] -> [1!] [t!, k!] reduced 0'}}
  %4, %5 = dyna.linear_cross_entropy_input %x, %w, %t : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>
  dyna.return %0 : tensor<1xf64>
}

// -----

// expected-error @+1 {{has no layout rule: nothing says how it can be split over ranks; implement dist::LayoutRuleOpInterface for it}}
%p, %g, %m, %v, %one = "test.values"() : () -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<1xf64>)
// expected-remark @+1 {{'[a, b] [a, b] [a, b] [a, b] -> [a, b] [a, b] [a, b] [a, b]'}}
%0, %1, %2, %3 = dyna.adamw %p, %g, %m, %v {decay} : tensor<4x8xf32>
// expected-remark @+1 {{'[a, b] [1!] -> [1!] tied 1=0'}}
%4 = dyna.sum_squares %p, %one : tensor<4x8xf32>
// expected-remark @+1 {{'[a, b] -> [a, b]'}}
%5 = dyna.cast %p : tensor<4x8xf32> -> tensor<4x8xbf16>
