dyna.parameter @wte : tensor<257x96xf32> normal 0.02 decay
dyna.parameter @wpe : tensor<128x96xf32> normal 0.02 decay
dyna.parameter @g1 : tensor<96xf32> constant 1.0
dyna.parameter @b1 : tensor<96xf32>
dyna.parameter @wq : tensor<96x96xf32> normal 0.02 decay
dyna.parameter @bq : tensor<96xf32>
dyna.parameter @wk : tensor<96x96xf32> normal 0.02 decay
dyna.parameter @bk : tensor<96xf32>
dyna.parameter @wo : tensor<96x96xf32> normal 0.02 decay
dyna.parameter @bo : tensor<96xf32>
dyna.parameter @wu : tensor<384x96xf32> normal 0.02 decay
dyna.parameter @bu : tensor<384xf32>
dyna.parameter @wd : tensor<96x384xf32> normal 0.02 decay
dyna.parameter @bd : tensor<96xf32>
dyna.layer @embed[%wte: tensor<257x96xf32>, %wpe: tensor<128x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %wte : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %wpe, %s : tensor<128x96xf32>
  %2 = dyna.add %0, %1 : tensor<?x96xf32>
  %3 = dyna.dropout %2, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x96xf32>
  dyna.return %3 : tensor<?x96xf32>
}
dyna.layer @block[%g1: tensor<96xf32>, %b1: tensor<96xf32>, %wq: tensor<96x96xf32>, %bq: tensor<96xf32>, %wk: tensor<96x96xf32>, %bk: tensor<96xf32>, %wo: tensor<96x96xf32>, %bo: tensor<96xf32>, %wu: tensor<384x96xf32>, %bu: tensor<384xf32>, %wd: tensor<96x384xf32>, %bd: tensor<96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %n = dyna.layer_norm %x, %g1, %b1 {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf32>
  %q = dyna.linear %n, %wq, %bq : tensor<?x96xf32>, tensor<96x96xf32>, tensor<96xf32>
  %k = dyna.linear %n, %wk, %bk : tensor<?x96xf32>, tensor<96x96xf32>, tensor<96xf32>
  %qr = dyna.rotary %q, %s {head_dim = 12 : i64, theta = 1.0e4 : f64} : tensor<?x96xf32>
  %o, %lse = dyna.attention %qr, %k, %k, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 2.5e-1 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  %p = dyna.linear %o, %wo, %bo : tensor<?x96xf32>, tensor<96x96xf32>, tensor<96xf32>
  %h = dyna.add %x, %p : tensor<?x96xf32>
  %m = dyna.layer_norm %h, %g1, %b1 {epsilon = 1.0e-5 : f64} : tensor<?x96xf32>, tensor<96xf32>
  %u = dyna.linear %m, %wu, %bu : tensor<?x96xf32>, tensor<384x96xf32>, tensor<384xf32>
  %a = dyna.gelu %u tanh : tensor<?x384xf32>
  %d = dyna.linear %a, %wd, %bd : tensor<?x384xf32>, tensor<96x384xf32>, tensor<96xf32>
  %dd = dyna.dropout %d, %s {instance = 1 : i64, probability = 1.0e-1 : f64} : tensor<?x96xf32>
  %z = dyna.add %h, %dd : tensor<?x96xf32>
  dyna.return %z : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @tiny(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 128, width = 96, heads = 8, kv_heads = 8, head_dim = 12, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@g1, @b1, @wq, @bq, @wk, @bk, @wo, @bo, @wu, @bu, @wd, @bd](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
