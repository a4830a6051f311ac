// RUN: dyna-opt %s -split-input-file -verify-diagnostics -dyna-differentiate -dyna-deduce-layouts="strategy=tp=4"

// Key/value heads that neither divide tp nor are divided by it.
dyna.layer @block[%q: tensor<48x24xf32>, %k: tensor<24x24xf32>, %o: tensor<24x48xf32>](%x: tensor<?x24xf32>, %s: !dyna.segments) -> tensor<?x24xf32> {
  %0 = dyna.linear %x, %q : tensor<?x24xf32>, tensor<48x24xf32>
  %1 = dyna.linear %x, %k : tensor<?x24xf32>, tensor<24x24xf32>
  // expected-error @+1 {{has 6 key/value heads: tp=4 must divide them, or they must divide it}}
  %2, %lse = dyna.attention %0, %1, %1, %s {heads = 12 : i64, kv_heads = 6 : i64, scale = 0.5 : f64} : tensor<?x48xf32>, tensor<?x24xf32>, tensor<?x24xf32>
  %3 = dyna.linear %2, %o : tensor<?x48xf32>, tensor<24x48xf32>
  dyna.return %3 : tensor<?x24xf32>
}

// -----

// Features that ranks cannot share evenly.
dyna.layer @mlp[%u: tensor<30x24xf32>, %d: tensor<24x30xf32>](%x: tensor<?x24xf32>) -> tensor<?x24xf32> {
  // expected-error @+1 {{has 30 output features, which 4 tensor-parallel ranks cannot share evenly}}
  %0 = dyna.linear %x, %u : tensor<?x24xf32>, tensor<30x24xf32>
  %1 = dyna.relu %0 : tensor<?x30xf32>
  %2 = dyna.linear %1, %d : tensor<?x30xf32>, tensor<24x30xf32>
  dyna.return %2 : tensor<?x24xf32>
}

// -----

// One parameter that is wanted in two ways.
dyna.layer @mlp[%u: tensor<24x24xf32>](%x: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %0 = dyna.linear %x, %u : tensor<?x24xf32>, tensor<24x24xf32>
  %1 = dyna.relu %0 : tensor<?x24xf32>
  // expected-error @+1 {{needs parameter 0 of the layer split in another way than an op before it; use two parameters, or tp=1}}
  %2 = dyna.linear %1, %u : tensor<?x24xf32>, tensor<24x24xf32>
  dyna.return %2 : tensor<?x24xf32>
}

// -----

// A table that one layer splits over its rows and another over its features.
dyna.parameter @w : tensor<24x24xf32>
dyna.layer @embed[%w: tensor<24x24xf32>](%ids: tensor<?xi32>) -> tensor<?x24xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<24x24xf32>
  dyna.return %0 : tensor<?x24xf32>
}
dyna.layer @mlp[%u: tensor<24x24xf32>, %d: tensor<24x24xf32>](%x: tensor<?x24xf32>) -> tensor<?x24xf32> {
  %0 = dyna.linear %x, %u : tensor<?x24xf32>, tensor<24x24xf32>
  %1 = dyna.relu %0 : tensor<?x24xf32>
  %2 = dyna.linear %1, %d : tensor<?x24xf32>, tensor<24x24xf32>
  dyna.return %2 : tensor<?x24xf32>
}
dyna.layer @head[%w: tensor<24x24xf32>](%x: tensor<?x24xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
  %0 = dyna.linear_cross_entropy %x, %w, %t : tensor<?x24xf32>, tensor<24x24xf32>, tensor<?xi32>
  dyna.return %0 : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 24, positions = 0, width = 24, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  // expected-note @+1 {{see the other call}}
  %0 = dyna.call "embed" @embed[@w](%ids) : (tensor<?xi32>) -> tensor<?x24xf32>
  // expected-error @+1 {{splits @w as #dist.layout<[[], [tp]] on <tp=4>>, but another call as #dist.layout<[[tp], []] on <tp=4>>; tied parameters are split alike}}
  %1 = dyna.call "mlp" @mlp[@w, @w](%0) : (tensor<?x24xf32>) -> tensor<?x24xf32>
  %2 = dyna.call "head" @head[@w](%1, %targets) : (tensor<?x24xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
