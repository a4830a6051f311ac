// RUN: dyna-opt %s -dyna-differentiate -split-input-file -verify-diagnostics

// Nothing would be trained.
// expected-error @+1 {{has only frozen parameters, so training would change nothing: leave 'frozen' out of at least one dyna.parameter}}
module {
  dyna.parameter @w : tensor<33x8xf32> normal 0.02 frozen
  dyna.parameter @v : tensor<8xf32> constant 1.0 frozen
}

// -----

// Calls of one layer have one backward function.
dyna.parameter @w : tensor<33x8xf32> normal 0.02
dyna.parameter @g.0 : tensor<8xf32> constant 1.0 frozen
dyna.parameter @g.1 : tensor<8xf32> constant 1.0
dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @norm[%g: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  dyna.return %y : tensor<?x8xf32>
}
dyna.layer @head[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0,
          head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@w](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  // expected-note @+1 {{see the first call}}
  %1 = dyna.call "n0" @norm[@g.0](%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @+1 {{gives parameter 0 as @g.1 trained, but the first call of the layer gives it frozen; calls of one layer share its backward function; write a second layer of the same ops for one of them}}
  %2 = dyna.call "n1" @norm[@g.1](%1) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = dyna.call "head" @head[@w](%2, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %3 : tensor<1xf64>
}

// -----

// One op has the gradients of both vectors of a norm; that of a bias alone is a sum.
dyna.parameter @w : tensor<33x8xf32> normal 0.02
dyna.parameter @g : tensor<8xf32> constant 1.0
dyna.parameter @b : tensor<8xf32> frozen
dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @head[%g: tensor<8xf32>, %b: tensor<8xf32>, %w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  // expected-error @+1 {{has a frozen 'bias' but a trained 'weight'; freeze both, or the weight alone}}
  %y = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  %loss = dyna.linear_cross_entropy %y, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0,
          head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@w](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  %1 = dyna.call "head" @head[@g, @b, @w](%0, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}
