// A model of one block over bytes, small enough to read after every phase.
dyna.parameter @tokens : tensor<257x32xf32> normal 0.02 decay
dyna.parameter @block.norm : tensor<32xf32> constant 1.0
dyna.parameter @block.q : tensor<32x32xf32> normal 0.02 decay
dyna.parameter @block.k : tensor<16x32xf32> normal 0.02 decay
dyna.parameter @block.v : tensor<16x32xf32> normal 0.02 decay
dyna.parameter @block.out : tensor<32x32xf32> normal 0.02 decay

dyna.layer @embed[%table: tensor<257x32xf32>](%ids: tensor<?xi32>) -> tensor<?x32xf32> {
  %x = dyna.embedding %ids, %table : tensor<?xi32>, tensor<257x32xf32>
  dyna.return %x : tensor<?x32xf32>
}

dyna.layer @block[%g: tensor<32xf32>, %wq: tensor<32x32xf32>, %wk: tensor<16x32xf32>,
                  %wv: tensor<16x32xf32>, %wo: tensor<32x32xf32>]
                 (%x: tensor<?x32xf32>, %segments: !dyna.segments) -> tensor<?x32xf32> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x32xf32>, tensor<32xf32>
  %q0 = dyna.linear %n, %wq : tensor<?x32xf32>, tensor<32x32xf32>
  %k0 = dyna.linear %n, %wk : tensor<?x32xf32>, tensor<16x32xf32>
  %v = dyna.linear %n, %wv : tensor<?x32xf32>, tensor<16x32xf32>
  %q = dyna.rotary %q0, %segments {head_dim = 8, theta = 1.0e4} : tensor<?x32xf32>
  %k = dyna.rotary %k0, %segments {head_dim = 8, theta = 1.0e4} : tensor<?x16xf32>
  %a, %lse = dyna.attention %q, %k, %v, %segments {causal, heads = 4, kv_heads = 2, scale = 0.35355339059327379}
      : tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  %y = dyna.linear %a, %wo : tensor<?x32xf32>, tensor<32x32xf32>
  %z = dyna.add %x, %y : tensor<?x32xf32>
  dyna.return %z : tensor<?x32xf32>
}

dyna.layer @head[%table: tensor<257x32xf32>](%x: tensor<?x32xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %table, %targets : tensor<?x32xf32>, tensor<257x32xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

dyna.model @tiny(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 257, positions = 256, width = 32, heads = 4, kv_heads = 2,
          head_dim = 8, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@tokens](%ids) : (tensor<?xi32>) -> tensor<?x32xf32>
  %1 = dyna.call "block" @block[@block.norm, @block.q, @block.k, @block.v, @block.out](%0, %segments)
      : (tensor<?x32xf32>, !dyna.segments) -> tensor<?x32xf32>
  %2 = dyna.call "head" @head[@tokens](%1, %targets) : (tensor<?x32xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
