module {
  dyna.parameter @wte : tensor<257x64xf32> normal 2.000000e-02
  dyna.parameter @wpe : tensor<1024x64xf32> normal 2.000000e-02
  dyna.parameter @h0.ln1w : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.ln1b : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.wq : tensor<64x64xf32> normal 2.000000e-02
  dyna.parameter @h0.bq : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.wk : tensor<64x64xf32> normal 2.000000e-02
  dyna.parameter @h0.bk : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.wv : tensor<64x64xf32> normal 2.000000e-02
  dyna.parameter @h0.bv : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.wo : tensor<64x64xf32> normal 2.000000e-02
  dyna.parameter @h0.bo : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.ln2w : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.ln2b : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.wf : tensor<256x64xf32> normal 2.000000e-02
  dyna.parameter @h0.bf : tensor<256xf32> normal 2.000000e-02
  dyna.parameter @h0.wp : tensor<64x256xf32> normal 2.000000e-02
  dyna.parameter @h0.bp : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @lnw : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @lnb : tensor<64xf32> normal 2.000000e-02
  dyna.layer @embed[%wte: tensor<257x64xf32>, %wpe: tensor<1024x64xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x64xf32> {
    %0 = dyna.embedding %ids, %wte : tensor<?xi32>, tensor<257x64xf32>
    %1 = dyna.positions %wpe, %s : tensor<1024x64xf32>
    %2 = dyna.add %0, %1 : tensor<?x64xf32>
    dyna.return %2 : tensor<?x64xf32>
  }
  dyna.layer @block[%ln1w: tensor<64xf32>, %ln1b: tensor<64xf32>, %wq: tensor<64x64xf32>, %bq: tensor<64xf32>, %wk: tensor<64x64xf32>, %bk: tensor<64xf32>, %wv: tensor<64x64xf32>, %bv: tensor<64xf32>, %wo: tensor<64x64xf32>, %bo: tensor<64xf32>, %ln2w: tensor<64xf32>, %ln2b: tensor<64xf32>, %wf: tensor<256x64xf32>, %bf: tensor<256xf32>, %wp: tensor<64x256xf32>, %bp: tensor<64xf32>](%x: tensor<?x64xf32>, %s: !dyna.segments) -> tensor<?x64xf32> {
    %0 = dyna.layer_norm %x, %ln1w, %ln1b {epsilon = 1.000000e-05 : f64} : tensor<?x64xf32>, tensor<64xf32>
    %1 = dyna.linear %0, %wq, %bq : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
    %2 = dyna.linear %0, %wk, %bk : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
    %3 = dyna.linear %0, %wv, %bv : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
    %result, %lse = dyna.attention %1, %2, %3, %s {causal, heads = 4 : i64, kv_heads = 4 : i64, scale = 1.250000e-01 : f64} : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>
    %4 = dyna.linear %result, %wo, %bo : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
    %5 = dyna.add %x, %4 : tensor<?x64xf32>
    %6 = dyna.layer_norm %5, %ln2w, %ln2b {epsilon = 1.000000e-05 : f64} : tensor<?x64xf32>, tensor<64xf32>
    %7 = dyna.linear %6, %wf, %bf : tensor<?x64xf32>, tensor<256x64xf32>, tensor<256xf32>
    %8 = dyna.gelu %7 tanh : tensor<?x256xf32>
    %9 = dyna.linear %8, %wp, %bp : tensor<?x256xf32>, tensor<64x256xf32>, tensor<64xf32>
    %10 = dyna.add %5, %9 : tensor<?x64xf32>
    dyna.return %10 : tensor<?x64xf32>
  }
  dyna.layer @head[%lnw: tensor<64xf32>, %lnb: tensor<64xf32>, %wte: tensor<257x64xf32>](%x: tensor<?x64xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
    %0 = dyna.layer_norm %x, %lnw, %lnb {epsilon = 1.000000e-05 : f64} : tensor<?x64xf32>, tensor<64xf32>
    %1 = dyna.linear_cross_entropy %0, %wte, %t : tensor<?x64xf32>, tensor<257x64xf32>, tensor<?xi32>
    dyna.return %1 : tensor<1xf64>
  }
  dyna.model @m(%ids: tensor<?xi32>, %t: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 1024, width = 64, heads = 4, kv_heads = 4, head_dim = 16, feed_forward = 256, config = "{}"> {
    %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x64xf32>
    %1 = dyna.call "h0" @block[@h0.ln1w, @h0.ln1b, @h0.wq, @h0.bq, @h0.wk, @h0.bk, @h0.wv, @h0.bv, @h0.wo, @h0.bo, @h0.ln2w, @h0.ln2b, @h0.wf, @h0.bf, @h0.wp, @h0.bp](%0, %s) : (tensor<?x64xf32>, !dyna.segments) -> tensor<?x64xf32>
    %2 = dyna.call "head" @head[@lnw, @lnb, @wte](%1, %t) : (tensor<?x64xf32>, tensor<?xi32>) -> tensor<1xf64>
    dyna.return %2 : tensor<1xf64>
  }
}

