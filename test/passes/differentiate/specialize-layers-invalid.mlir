// RUN: dyna-opt %s -dyna-differentiate -split-input-file -verify-diagnostics

// What a layer needs follows from the model that calls it.
dyna.parameter @w : tensor<33x8xf32> normal 0.02
dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{says what it needs of backward, which dyna-differentiate finds out: leave out 'frozen' and 'stops_gradient'}}
dyna.layer @head[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> attributes {stops_gradient} {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0,
          head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@w](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  %1 = dyna.call "head" @head[@w](%0, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}
