// RUN: dyna-opt %s --dyna-check-families -split-input-file -verify-diagnostics

// FAMILY5: gate and up exchanged.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  // expected-note @+1 {{see this op}}
  %e = dyna.silu %u : tensor<?x6xf32>
  %f = dyna.mul %e, %g : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "layers.0" 'dyna.silu' takes the 'dyna.linear' of @layers.0.mlp.up.weight where llama takes the 'dyna.linear' of @layers.0.mlp.gate.weight}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: attention and MLP side by side.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  // expected-note @+1 {{see this op}}
  %m = dyna.rms_norm %x, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "layers.0" 'dyna.rms_norm' takes the result of "embed" where llama takes the 'dyna.add' of the result of "embed" and the 'dyna.linear' of @layers.0.attn.o.weight}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: no norm before the head.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  // expected-note @+1 {{see this op}}
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "head" 'dyna.linear_cross_entropy' takes the result of "layers.0" where llama takes the 'dyna.rms_norm' of @norm.weight}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: nothing is added to the attention.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  // expected-note @+1 {{see this op}}
  %m = dyna.rms_norm %o, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %o, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "layers.0" 'dyna.rms_norm' takes the 'dyna.linear' of @layers.0.attn.o.weight where llama takes the 'dyna.add' of the result of "embed" and the 'dyna.linear' of @layers.0.attn.o.weight}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: nothing is added to the MLP.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  dyna.return %d : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  // expected-note @+1 {{see this op}}
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "head" 'dyna.rms_norm' takes the result of "layers.0", which is the 'dyna.linear' of @layers.0.mlp.down.weight where that of llama is the 'dyna.add' of}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: norms behind the sums.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  // expected-note @+1 {{see this op}}
  %q0 = dyna.linear %x, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %x, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %x, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y0 = dyna.add %x, %o : tensor<?x4xf32>
  %y = dyna.rms_norm %y0, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %y, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %y, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z0 = dyna.add %y, %d : tensor<?x4xf32>
  %z = dyna.rms_norm %z0, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "layers.0" 'dyna.linear' takes the result of "embed" where llama takes the 'dyna.rms_norm' of @layers.0.input_norm.weight}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: keys turned the other way.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  // expected-note @+1 {{see this op}}
  %k = dyna.rotary %k0, %s {inverse, head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "layers.0" 'dyna.rotary' has 'inverse' = unit where that of llama has none}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: values are turned, too.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  // expected-note @+1 {{see this op}}
  %r = dyna.rotary %v, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %r, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "layers.0" 'dyna.rotary' takes the 'dyna.linear' of @layers.0.attn.v.weight where llama takes the 'dyna.linear' of @layers.0.attn.q.weight}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: two epsilons, and no config that has one.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  // expected-note @+1 {{see this op}}
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-5} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and in "layers.0" 'dyna.rms_norm' has 'epsilon' = 1.000000e-05 : f64 where that of llama has}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: a name that no file of the family has.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
// expected-note @+1 {{see this parameter}}
dyna.parameter @layers.0.mlp.gates.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and "layers.0" takes @layers.0.mlp.gates.weight, which is no parameter of llama; is @layers.0.mlp.gate.weight meant?}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gates.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY5: a head with more rows than the table of tokens.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
// expected-note @+1 {{see this parameter}}
dyna.parameter @lm_head : tensor<12x4xf32> normal 0.02 decay
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<12x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<12x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, or the layers to compute what llama does, but got "llama", and @lm_head is [12, 4] where that of llama is [8, 4]}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @lm_head](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// FAMILY6: a name that programs of the family do not look for; what says nothing is filled in.
dyna.parameter @embed_tokens : tensor<8x4xf32> normal 0.02 decay
dyna.parameter @layers.0.input_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.attn.q.weight : tensor<4x4xf32> normal 0.02 decay
// expected-error @+1 {{expects to be stored as in files of llama, #dyna.stored<name = "model.layers.0.self_attn.k_proj.weight">, or to say nothing of it, but got #dyna.stored<name = "layers.0.k">}}
dyna.parameter @layers.0.attn.k.weight : tensor<4x4xf32> normal 0.02 decay stored<name = "layers.0.k">
dyna.parameter @layers.0.attn.v.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.attn.o.weight : tensor<4x4xf32> normal 0.02 decay
dyna.parameter @layers.0.post_norm.weight : tensor<4xf32> constant 1.0
dyna.parameter @layers.0.mlp.gate.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.up.weight : tensor<6x4xf32> normal 0.02 decay
dyna.parameter @layers.0.mlp.down.weight : tensor<4x6xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<4xf32> constant 1.0
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%n1: tensor<4xf32>, %wq: tensor<4x4xf32>, %wk: tensor<4x4xf32>, %wv: tensor<4x4xf32>, %wo: tensor<4x4xf32>,
                  %n2: tensor<4xf32>, %wg: tensor<6x4xf32>, %wu: tensor<6x4xf32>, %wd: tensor<4x6xf32>](%x: tensor<?x4xf32>, %s: !dyna.segments) -> tensor<?x4xf32> {
  %n = dyna.rms_norm %x, %n1 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x4xf32>, tensor<4x4xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x4xf32>, tensor<4x4xf32>
  %v = dyna.linear %n, %wv : tensor<?x4xf32>, tensor<4x4xf32>
  %q = dyna.rotary %q0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %k = dyna.rotary %k0, %s {head_dim = 4, theta = 1.0e4} : tensor<?x4xf32>
  %a, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 1, kv_heads = 1, scale = 0.5} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %o = dyna.linear %a, %wo : tensor<?x4xf32>, tensor<4x4xf32>
  %y = dyna.add %x, %o : tensor<?x4xf32>
  %m = dyna.rms_norm %y, %n2 {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %g = dyna.linear %m, %wg : tensor<?x4xf32>, tensor<6x4xf32>
  %u = dyna.linear %m, %wu : tensor<?x4xf32>, tensor<6x4xf32>
  %e = dyna.silu %g : tensor<?x6xf32>
  %f = dyna.mul %e, %u : tensor<?x6xf32>
  %d = dyna.linear %f, %wd : tensor<?x6xf32>, tensor<4x6xf32>
  %z = dyna.add %y, %d : tensor<?x4xf32>
  dyna.return %z : tensor<?x4xf32>
}
dyna.layer @head[%g: tensor<4xf32>, %w: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x4xf32>, tensor<4xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 8, positions = 16, width = 4, heads = 1, kv_heads = 1, head_dim = 4, feed_forward = 6, config = ""> {
  %0 = dyna.call "embed" @embed[@embed_tokens](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "layers.0" @block[@layers.0.input_norm.weight, @layers.0.attn.q.weight, @layers.0.attn.k.weight, @layers.0.attn.v.weight, @layers.0.attn.o.weight, @layers.0.post_norm.weight, @layers.0.mlp.gate.weight, @layers.0.mlp.up.weight, @layers.0.mlp.down.weight](%0, %s) : (tensor<?x4xf32>, !dyna.segments) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@norm.weight, @embed_tokens](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
