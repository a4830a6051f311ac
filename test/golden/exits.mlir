// Made by make_exits_golden.py.
// RUN: dyna-opt %s --dyna-convert-compute-type=type=f64 --dyna-differentiate | FileCheck %s
// CHECK: dyna.model @exits(

dyna.parameter @wte : tensor<257x48xf32> normal 0.1 decay
dyna.parameter @wpe : tensor<64x48xf32> normal 0.05 decay
dyna.parameter @h.0.ln_1.weight : tensor<48xf32> constant 1.0 normal 0.1
dyna.parameter @h.0.ln_1.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.0.attn.q.weight : tensor<48x48xf32> normal 0.15 decay
dyna.parameter @h.0.attn.q.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.0.attn.k.weight : tensor<48x48xf32> normal 0.15 decay
dyna.parameter @h.0.attn.k.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.0.attn.v.weight : tensor<48x48xf32> normal 0.1 decay
dyna.parameter @h.0.attn.v.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.0.attn.proj.weight : tensor<48x48xf32> normal 0.1 decay
dyna.parameter @h.0.attn.proj.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.0.ln_2.weight : tensor<48xf32> constant 1.0 normal 0.1
dyna.parameter @h.0.ln_2.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.0.mlp.fc.weight : tensor<192x48xf32> normal 0.1 decay
dyna.parameter @h.0.mlp.fc.bias : tensor<192xf32> normal 0.05
dyna.parameter @h.0.mlp.proj.weight : tensor<48x192xf32> normal 0.05 decay
dyna.parameter @h.0.mlp.proj.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.0.exit.ln_f.weight : tensor<48xf32> constant 1.0 normal 0.1 added
dyna.parameter @h.0.exit.ln_f.bias : tensor<48xf32> normal 0.05 added
dyna.parameter @h.1.ln_1.weight : tensor<48xf32> constant 1.0 normal 0.1
dyna.parameter @h.1.ln_1.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.1.attn.q.weight : tensor<48x48xf32> normal 0.15 decay
dyna.parameter @h.1.attn.q.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.1.attn.k.weight : tensor<48x48xf32> normal 0.15 decay
dyna.parameter @h.1.attn.k.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.1.attn.v.weight : tensor<48x48xf32> normal 0.1 decay
dyna.parameter @h.1.attn.v.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.1.attn.proj.weight : tensor<48x48xf32> normal 0.1 decay
dyna.parameter @h.1.attn.proj.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.1.ln_2.weight : tensor<48xf32> constant 1.0 normal 0.1
dyna.parameter @h.1.ln_2.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.1.mlp.fc.weight : tensor<192x48xf32> normal 0.1 decay
dyna.parameter @h.1.mlp.fc.bias : tensor<192xf32> normal 0.05
dyna.parameter @h.1.mlp.proj.weight : tensor<48x192xf32> normal 0.05 decay
dyna.parameter @h.1.mlp.proj.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.1.exit.ln_f.weight : tensor<48xf32> constant 1.0 normal 0.1 added
dyna.parameter @h.1.exit.ln_f.bias : tensor<48xf32> normal 0.05 added
dyna.parameter @h.1.exit.lm_head.weight : tensor<257x48xf32> normal 0.1 decay added
dyna.parameter @h.2.ln_1.weight : tensor<48xf32> constant 1.0 normal 0.1
dyna.parameter @h.2.ln_1.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.2.attn.q.weight : tensor<48x48xf32> normal 0.15 decay
dyna.parameter @h.2.attn.q.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.2.attn.k.weight : tensor<48x48xf32> normal 0.15 decay
dyna.parameter @h.2.attn.k.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.2.attn.v.weight : tensor<48x48xf32> normal 0.1 decay
dyna.parameter @h.2.attn.v.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.2.attn.proj.weight : tensor<48x48xf32> normal 0.1 decay
dyna.parameter @h.2.attn.proj.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.2.ln_2.weight : tensor<48xf32> constant 1.0 normal 0.1
dyna.parameter @h.2.ln_2.bias : tensor<48xf32> normal 0.05
dyna.parameter @h.2.mlp.fc.weight : tensor<192x48xf32> normal 0.1 decay
dyna.parameter @h.2.mlp.fc.bias : tensor<192xf32> normal 0.05
dyna.parameter @h.2.mlp.proj.weight : tensor<48x192xf32> normal 0.05 decay
dyna.parameter @h.2.mlp.proj.bias : tensor<48xf32> normal 0.05
dyna.parameter @ln_f.weight : tensor<48xf32> constant 1.0 normal 0.1
dyna.parameter @ln_f.bias : tensor<48xf32> normal 0.05

dyna.layer @embed[%wte: tensor<257x48xf32>, %wpe: tensor<64x48xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x48xf32> {
  %tokens = dyna.embedding %ids, %wte : tensor<?xi32>, tensor<257x48xf32>
  %places = dyna.positions %wpe, %s : tensor<64x48xf32>
  %x = dyna.add %tokens, %places : tensor<?x48xf32>
  dyna.return %x : tensor<?x48xf32>
}

dyna.layer @block[%g1: tensor<48xf32>, %b1: tensor<48xf32>, %wq: tensor<48x48xf32>, %bq: tensor<48xf32>, %wk: tensor<48x48xf32>, %bk: tensor<48xf32>,
                  %wv: tensor<48x48xf32>, %bv: tensor<48xf32>, %wo: tensor<48x48xf32>, %bo: tensor<48xf32>, %g2: tensor<48xf32>, %b2: tensor<48xf32>,
                  %wf: tensor<192x48xf32>, %bf: tensor<192xf32>, %wp: tensor<48x192xf32>, %bp: tensor<48xf32>]
                 (%x: tensor<?x48xf32>, %s: !dyna.segments) -> tensor<?x48xf32> {
  %n = dyna.layer_norm %x, %g1, %b1 {epsilon = 1.0e-5 : f64} : tensor<?x48xf32>, tensor<48xf32>
  %q = dyna.linear %n, %wq, %bq : tensor<?x48xf32>, tensor<48x48xf32>, tensor<48xf32>
  %k = dyna.linear %n, %wk, %bk : tensor<?x48xf32>, tensor<48x48xf32>, tensor<48xf32>
  %v = dyna.linear %n, %wv, %bv : tensor<?x48xf32>, tensor<48x48xf32>, tensor<48xf32>
  %o, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 4 : i64, kv_heads = 4 : i64, scale = 0.28867513459481287 : f64} : tensor<?x48xf32>, tensor<?x48xf32>, tensor<?x48xf32>
  %p = dyna.linear %o, %wo, %bo : tensor<?x48xf32>, tensor<48x48xf32>, tensor<48xf32>
  %r = dyna.add %x, %p : tensor<?x48xf32>
  %m = dyna.layer_norm %r, %g2, %b2 {epsilon = 1.0e-5 : f64} : tensor<?x48xf32>, tensor<48xf32>
  %f = dyna.linear %m, %wf, %bf : tensor<?x48xf32>, tensor<192x48xf32>, tensor<192xf32>
  %g = dyna.gelu %f tanh : tensor<?x192xf32>
  %d = dyna.linear %g, %wp, %bp : tensor<?x192xf32>, tensor<48x192xf32>, tensor<48xf32>
  %y = dyna.add %r, %d : tensor<?x48xf32>
  dyna.return %y : tensor<?x48xf32>
}

dyna.layer @exit[%g: tensor<48xf32>, %b: tensor<48xf32>, %wte: tensor<257x48xf32>](%x: tensor<?x48xf32>, %targets: tensor<?xi32>) -> (tensor<?x48xf32>, tensor<1xf64>) {
  %n = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : tensor<?x48xf32>, tensor<48xf32>
  %loss = dyna.linear_cross_entropy %n, %wte, %targets : tensor<?x48xf32>, tensor<257x48xf32>, tensor<?xi32>
  dyna.return %x, %loss : tensor<?x48xf32>, tensor<1xf64>
}

dyna.layer @own_exit[%g: tensor<48xf32>, %b: tensor<48xf32>, %wte: tensor<257x48xf32>](%x: tensor<?x48xf32>, %targets: tensor<?xi32>) -> (tensor<?x48xf32>, tensor<1xf64>) {
  %n = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : tensor<?x48xf32>, tensor<48xf32>
  %loss = dyna.linear_cross_entropy %n, %wte, %targets : tensor<?x48xf32>, tensor<257x48xf32>, tensor<?xi32>
  dyna.return %x, %loss : tensor<?x48xf32>, tensor<1xf64>
}

dyna.layer @head[%g: tensor<48xf32>, %b: tensor<48xf32>, %wte: tensor<257x48xf32>](%x: tensor<?x48xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5 : f64} : tensor<?x48xf32>, tensor<48xf32>
  %loss = dyna.linear_cross_entropy %n, %wte, %targets : tensor<?x48xf32>, tensor<257x48xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

dyna.model @exits(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments)
    facts<family = "gpt2", vocabulary = 257, positions = 64, width = 48, heads = 4, kv_heads = 4, head_dim = 12, feed_forward = 192, config = ""> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x48xf32>
  %1 = dyna.call "h.0" @block[@h.0.ln_1.weight, @h.0.ln_1.bias, @h.0.attn.q.weight, @h.0.attn.q.bias, @h.0.attn.k.weight, @h.0.attn.k.bias, @h.0.attn.v.weight, @h.0.attn.v.bias, @h.0.attn.proj.weight, @h.0.attn.proj.bias, @h.0.ln_2.weight, @h.0.ln_2.bias, @h.0.mlp.fc.weight, @h.0.mlp.fc.bias, @h.0.mlp.proj.weight, @h.0.mlp.proj.bias](%0, %s) : (tensor<?x48xf32>, !dyna.segments) -> tensor<?x48xf32>
  %x0, %early0 = dyna.call "h.0.exit" @exit[@h.0.exit.ln_f.weight, @h.0.exit.ln_f.bias, @wte](%1, %targets) weight 0.3 : (tensor<?x48xf32>, tensor<?xi32>) -> (tensor<?x48xf32>, tensor<1xf64>)
  %2 = dyna.call "h.1" @block[@h.1.ln_1.weight, @h.1.ln_1.bias, @h.1.attn.q.weight, @h.1.attn.q.bias, @h.1.attn.k.weight, @h.1.attn.k.bias, @h.1.attn.v.weight, @h.1.attn.v.bias, @h.1.attn.proj.weight, @h.1.attn.proj.bias, @h.1.ln_2.weight, @h.1.ln_2.bias, @h.1.mlp.fc.weight, @h.1.mlp.fc.bias, @h.1.mlp.proj.weight, @h.1.mlp.proj.bias](%x0, %s) : (tensor<?x48xf32>, !dyna.segments) -> tensor<?x48xf32>
  %x1, %early1 = dyna.call "h.1.exit" @own_exit[@h.1.exit.ln_f.weight, @h.1.exit.ln_f.bias, @h.1.exit.lm_head.weight](%2, %targets) weight 0.5 : (tensor<?x48xf32>, tensor<?xi32>) -> (tensor<?x48xf32>, tensor<1xf64>)
  %3 = dyna.call "h.2" @block[@h.2.ln_1.weight, @h.2.ln_1.bias, @h.2.attn.q.weight, @h.2.attn.q.bias, @h.2.attn.k.weight, @h.2.attn.k.bias, @h.2.attn.v.weight, @h.2.attn.v.bias, @h.2.attn.proj.weight, @h.2.attn.proj.bias, @h.2.ln_2.weight, @h.2.ln_2.bias, @h.2.mlp.fc.weight, @h.2.mlp.fc.bias, @h.2.mlp.proj.weight, @h.2.mlp.proj.bias](%x1, %s) : (tensor<?x48xf32>, !dyna.segments) -> tensor<?x48xf32>
  %loss = dyna.call "head" @head[@ln_f.weight, @ln_f.bias, @wte](%3, %targets) : (tensor<?x48xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %early0, %early1, %loss : tensor<1xf64>, tensor<1xf64>, tensor<1xf64>
}
