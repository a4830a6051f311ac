module {
  dyna.parameter @wte : tensor<257x64xf32> normal 2.000000e-02
  dyna.parameter @h0.n1 : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.wq : tensor<64x64xf32> normal 2.000000e-02
  dyna.parameter @h0.wk : tensor<32x64xf32> normal 2.000000e-02
  dyna.parameter @h0.wv : tensor<32x64xf32> normal 2.000000e-02
  dyna.parameter @h0.wo : tensor<64x64xf32> normal 2.000000e-02
  dyna.parameter @h0.n2 : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @h0.wg : tensor<160x64xf32> normal 2.000000e-02
  dyna.parameter @h0.wu : tensor<160x64xf32> normal 2.000000e-02
  dyna.parameter @h0.wd : tensor<64x160xf32> normal 2.000000e-02
  dyna.parameter @nf : tensor<64xf32> normal 2.000000e-02
  dyna.parameter @wlm : tensor<257x64xf32> normal 2.000000e-02
  dyna.layer @embed[%wte: tensor<257x64xf32>](%ids: tensor<?xi32>) -> tensor<?x64xf32> {
    %0 = dyna.embedding %ids, %wte : tensor<?xi32>, tensor<257x64xf32>
    dyna.return %0 : tensor<?x64xf32>
  }
  dyna.layer @block[%n1: tensor<64xf32>, %wq: tensor<64x64xf32>, %wk: tensor<32x64xf32>, %wv: tensor<32x64xf32>, %wo: tensor<64x64xf32>, %n2: tensor<64xf32>, %wg: tensor<160x64xf32>, %wu: tensor<160x64xf32>, %wd: tensor<64x160xf32>](%x: tensor<?x64xf32>, %s: !dyna.segments) -> tensor<?x64xf32> {
    %0 = dyna.rms_norm %x, %n1 {epsilon = 1.000000e-05 : f64} : tensor<?x64xf32>, tensor<64xf32>
    %1 = dyna.linear %0, %wq : tensor<?x64xf32>, tensor<64x64xf32>
    %2 = dyna.linear %0, %wk : tensor<?x64xf32>, tensor<32x64xf32>
    %3 = dyna.linear %0, %wv : tensor<?x64xf32>, tensor<32x64xf32>
    %4 = dyna.rotary %1, %s {head_dim = 16 : i64, theta = 1.000000e+04 : f64} : tensor<?x64xf32>
    %5 = dyna.rotary %2, %s {head_dim = 16 : i64, theta = 1.000000e+04 : f64} : tensor<?x32xf32>
    %result, %lse = dyna.attention %4, %5, %3, %s {causal, heads = 4 : i64, kv_heads = 2 : i64, scale = 1.250000e-01 : f64} : tensor<?x64xf32>, tensor<?x32xf32>, tensor<?x32xf32>
    %6 = dyna.linear %result, %wo : tensor<?x64xf32>, tensor<64x64xf32>
    %7 = dyna.add %x, %6 : tensor<?x64xf32>
    %8 = dyna.rms_norm %7, %n2 {epsilon = 1.000000e-05 : f64} : tensor<?x64xf32>, tensor<64xf32>
    %9 = dyna.linear %8, %wg : tensor<?x64xf32>, tensor<160x64xf32>
    %10 = dyna.linear %8, %wu : tensor<?x64xf32>, tensor<160x64xf32>
    %11 = dyna.silu %9 : tensor<?x160xf32>
    %12 = dyna.mul %11, %10 : tensor<?x160xf32>
    %13 = dyna.linear %12, %wd : tensor<?x160xf32>, tensor<64x160xf32>
    %14 = dyna.add %7, %13 : tensor<?x64xf32>
    dyna.return %14 : tensor<?x64xf32>
  }
  dyna.layer @head[%nf: tensor<64xf32>, %wlm: tensor<257x64xf32>](%x: tensor<?x64xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
    %0 = dyna.rms_norm %x, %nf {epsilon = 1.000000e-05 : f64} : tensor<?x64xf32>, tensor<64xf32>
    %1 = dyna.linear_cross_entropy %0, %wlm, %t : tensor<?x64xf32>, tensor<257x64xf32>, tensor<?xi32>
    dyna.return %1 : tensor<1xf64>
  }
  dyna.model @m(%ids: tensor<?xi32>, %t: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 1024, width = 64, heads = 4, kv_heads = 2, head_dim = 16, feed_forward = 160, config = "{}"> {
    %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x64xf32>
    %1 = dyna.call "h0" @block[@h0.n1, @h0.wq, @h0.wk, @h0.wv, @h0.wo, @h0.n2, @h0.wg, @h0.wu, @h0.wd](%0, %s) : (tensor<?x64xf32>, !dyna.segments) -> tensor<?x64xf32>
    %2 = dyna.call "head" @head[@nf, @wlm](%1, %t) : (tensor<?x64xf32>, tensor<?xi32>) -> tensor<1xf64>
    dyna.return %2 : tensor<1xf64>
  }
}

