// Made by make_lora_golden.py.
// RUN: dyna-opt %s --dyna-convert-compute-type=type=f64 --dyna-differentiate | FileCheck %s
// CHECK: dyna.model @lora(

dyna.parameter @embed_tokens.weight : tensor<257x40xf32> normal 0.3 decay frozen
dyna.parameter @layers.0.input_norm.weight : tensor<40xf32> constant 1.0 normal 0.1 frozen
dyna.parameter @layers.0.attn.q.weight : tensor<96x40xf32> normal 0.15 decay frozen
dyna.parameter @layers.0.attn.q.lora_A.weight : tensor<4x40xf32> normal 0.2 decay added
dyna.parameter @layers.0.attn.q.lora_B.weight : tensor<96x4xf32> normal 0.1 decay added
dyna.parameter @layers.0.attn.k.weight : tensor<32x40xf32> normal 0.15 decay frozen
dyna.parameter @layers.0.attn.v.weight : tensor<32x40xf32> normal 0.1 decay frozen
dyna.parameter @layers.0.attn.v.lora_A.weight : tensor<4x40xf32> normal 0.2 decay added
dyna.parameter @layers.0.attn.v.lora_B.weight : tensor<32x4xf32> normal 0.1 decay added
dyna.parameter @layers.0.attn.o.weight : tensor<40x96xf32> normal 0.1 decay frozen
dyna.parameter @layers.0.attn.o.lora_A.weight : tensor<4x96xf32> normal 0.2 decay added
dyna.parameter @layers.0.attn.o.lora_B.weight : tensor<40x4xf32> normal 0.1 decay added
dyna.parameter @layers.0.post_norm.weight : tensor<40xf32> constant 1.0 normal 0.1 frozen
dyna.parameter @layers.0.mlp.gate.weight : tensor<104x40xf32> normal 0.1 decay frozen
dyna.parameter @layers.0.mlp.up.weight : tensor<104x40xf32> normal 0.1 decay frozen
dyna.parameter @layers.0.mlp.down.weight : tensor<40x104xf32> normal 0.1 decay frozen
dyna.parameter @layers.1.input_norm.weight : tensor<40xf32> constant 1.0 normal 0.1 frozen
dyna.parameter @layers.1.attn.q.weight : tensor<96x40xf32> normal 0.15 decay frozen
dyna.parameter @layers.1.attn.q.lora_A.weight : tensor<4x40xf32> normal 0.2 decay added
dyna.parameter @layers.1.attn.q.lora_B.weight : tensor<96x4xf32> normal 0.1 decay added
dyna.parameter @layers.1.attn.k.weight : tensor<32x40xf32> normal 0.15 decay frozen
dyna.parameter @layers.1.attn.v.weight : tensor<32x40xf32> normal 0.1 decay frozen
dyna.parameter @layers.1.attn.v.lora_A.weight : tensor<4x40xf32> normal 0.2 decay added
dyna.parameter @layers.1.attn.v.lora_B.weight : tensor<32x4xf32> normal 0.1 decay added
dyna.parameter @layers.1.attn.o.weight : tensor<40x96xf32> normal 0.1 decay frozen
dyna.parameter @layers.1.attn.o.lora_A.weight : tensor<4x96xf32> normal 0.2 decay added
dyna.parameter @layers.1.attn.o.lora_B.weight : tensor<40x4xf32> normal 0.1 decay added
dyna.parameter @layers.1.post_norm.weight : tensor<40xf32> constant 1.0 normal 0.1 frozen
dyna.parameter @layers.1.mlp.gate.weight : tensor<104x40xf32> normal 0.1 decay frozen
dyna.parameter @layers.1.mlp.up.weight : tensor<104x40xf32> normal 0.1 decay frozen
dyna.parameter @layers.1.mlp.down.weight : tensor<40x104xf32> normal 0.1 decay frozen
dyna.parameter @norm.weight : tensor<40xf32> constant 1.0 normal 0.1
dyna.parameter @lm_head.weight : tensor<257x40xf32> normal 0.05 decay frozen

dyna.layer @embed[%table: tensor<257x40xf32>](%ids: tensor<?xi32>) -> tensor<?x40xf32> {
  %x = dyna.embedding %ids, %table : tensor<?xi32>, tensor<257x40xf32>
  dyna.return %x : tensor<?x40xf32>
}

dyna.layer @block[%g1: tensor<40xf32>, %wq: tensor<96x40xf32>, %aq: tensor<4x40xf32>, %bq: tensor<96x4xf32>, %wk: tensor<32x40xf32>, %wv: tensor<32x40xf32>, %av: tensor<4x40xf32>, %bv: tensor<32x4xf32>, %wo: tensor<40x96xf32>, %ao: tensor<4x96xf32>, %bo: tensor<40x4xf32>,
                  %g2: tensor<40xf32>, %wg: tensor<104x40xf32>, %wu: tensor<104x40xf32>, %wd: tensor<40x104xf32>](%x: tensor<?x40xf32>, %s: !dyna.segments) -> tensor<?x40xf32> {
  %n = dyna.rms_norm %x, %g1 {epsilon = 1.0e-6 : f64} : tensor<?x40xf32>, tensor<40xf32>
  %q_base = dyna.linear %n, %wq : tensor<?x40xf32>, tensor<96x40xf32>
  %q_down = dyna.linear %n, %aq : tensor<?x40xf32>, tensor<4x40xf32>
  %q_up = dyna.linear %q_down, %bq : tensor<?x4xf32>, tensor<96x4xf32>
  %q_scaled = dyna.scale %q_up {factor = 1.5 : f64} : tensor<?x96xf32>
  %q0 = dyna.add %q_base, %q_scaled : tensor<?x96xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x40xf32>, tensor<32x40xf32>
  %v_base = dyna.linear %n, %wv : tensor<?x40xf32>, tensor<32x40xf32>
  %v_down = dyna.linear %n, %av : tensor<?x40xf32>, tensor<4x40xf32>
  %v_up = dyna.linear %v_down, %bv : tensor<?x4xf32>, tensor<32x4xf32>
  %v_scaled = dyna.scale %v_up {factor = 1.5 : f64} : tensor<?x32xf32>
  %v = dyna.add %v_base, %v_scaled : tensor<?x32xf32>
  %q = dyna.rotary %q0, %s {head_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x96xf32>
  %k = dyna.rotary %k0, %s {head_dim = 16 : i64, theta = 1.0e4 : f64} : tensor<?x32xf32>
  %o, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 6 : i64, kv_heads = 2 : i64, scale = 0.25 : f64} : tensor<?x96xf32>, tensor<?x32xf32>, tensor<?x32xf32>
  %o_base = dyna.linear %o, %wo : tensor<?x96xf32>, tensor<40x96xf32>
  %o_down = dyna.linear %o, %ao : tensor<?x96xf32>, tensor<4x96xf32>
  %o_up = dyna.linear %o_down, %bo : tensor<?x4xf32>, tensor<40x4xf32>
  %o_scaled = dyna.scale %o_up {factor = 1.5 : f64} : tensor<?x40xf32>
  %p = dyna.add %o_base, %o_scaled : tensor<?x40xf32>
  %r = dyna.add %x, %p : tensor<?x40xf32>
  %m = dyna.rms_norm %r, %g2 {epsilon = 1.0e-6 : f64} : tensor<?x40xf32>, tensor<40xf32>
  %gate = dyna.linear %m, %wg : tensor<?x40xf32>, tensor<104x40xf32>
  %up = dyna.linear %m, %wu : tensor<?x40xf32>, tensor<104x40xf32>
  %act = dyna.silu %gate : tensor<?x104xf32>
  %f = dyna.mul %act, %up : tensor<?x104xf32>
  %d = dyna.linear %f, %wd : tensor<?x104xf32>, tensor<40x104xf32>
  %y = dyna.add %r, %d : tensor<?x40xf32>
  dyna.return %y : tensor<?x40xf32>
}

dyna.layer @head[%g: tensor<40xf32>, %w: tensor<257x40xf32>](%x: tensor<?x40xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : tensor<?x40xf32>, tensor<40xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x40xf32>, tensor<257x40xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

dyna.model @lora(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments)
    facts<family = "llama", vocabulary = 257, positions = 96, width = 40, heads = 6, kv_heads = 2, head_dim = 16, feed_forward = 104, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens.weight](%ids) : (tensor<?xi32>) -> tensor<?x40xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.q.lora_A.weight, @layers.0.attn.q.lora_B.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.v.lora_A.weight, @layers.0.attn.v.lora_B.weight, @layers.0.attn.o.weight, @layers.0.attn.o.lora_A.weight, @layers.0.attn.o.lora_B.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x40xf32>, !dyna.segments) -> tensor<?x40xf32>
  %2 = dyna.call "layers.1" @block[@layers.1.input_norm.weight, @layers.1.attn.q.weight, @layers.1.attn.q.lora_A.weight, @layers.1.attn.q.lora_B.weight, @layers.1.attn.k.weight, @layers.1.attn.v.weight, @layers.1.attn.v.lora_A.weight, @layers.1.attn.v.lora_B.weight, @layers.1.attn.o.weight, @layers.1.attn.o.lora_A.weight, @layers.1.attn.o.lora_B.weight, @layers.1.post_norm.weight, @layers.1.mlp.gate.weight, @layers.1.mlp.up.weight, @layers.1.mlp.down.weight](%1, %s) : (tensor<?x40xf32>, !dyna.segments) -> tensor<?x40xf32>
  %3 = dyna.call "head" @head[@norm.weight, @lm_head.weight](%2, %targets) : (tensor<?x40xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %3 : tensor<1xf64>
}
