// RUN: dyna-opt %s -dyna-differentiate -split-input-file -verify-diagnostics

// The targets are gone after forward, so a table looked up by them cannot learn.
dyna.layer @targets[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.embedding_grad' needs input 1 of the layer in role 'backward', but only its first input and its segments are kept after forward}}
  %e = dyna.embedding %targets, %w : tensor<?xi32>, tensor<33x8xf32>
  %y = dyna.add %x, %e : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// The statistics of attention are for its own gradient.
dyna.layer @statistics(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  // expected-error @+1 {{has no gradient through 'lse'; use only its first result in the layer}}
  %o, %lse = dyna.attention %x, %x, %x, %s {heads = 8 : i64, kv_heads = 8 : i64, scale = 5.0e-1 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  %y = dyna.add %o, %lse : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// A gradient op has no gradient itself.
dyna.layer @second(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.relu_grad' op has no gradient, so it cannot stand in a layer that is trained}}
  %y = dyna.relu_grad %x, %x : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// Nor has an op with a region, whose uses would not be seen.
dyna.layer @rows(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.rows' op has no gradient; row-wise ops are fused after the layer is differentiated}}
  %y = dyna.rows : tensor<?x8xf32> {
    %r = dyna.relu %x : tensor<?x8xf32>
    dyna.yield %r : tensor<?x8xf32>
  }
  %z = dyna.add %x, %y : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}

// -----

dyna.layer @cast[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{expects a parameter of the layer where a weight is used, but got the result of 'dyna.cast'}}
  %c = dyna.cast %w : tensor<8x8xf32> -> tensor<8x8xf32>
  %y = dyna.linear %x, %c : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

dyna.layer @norm[%g: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{has no gradient if 'weight' and 'bias' are one parameter; give it two}}
  %n = dyna.layer_norm %x, %g, %g {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  dyna.return %n : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{expects a result that depends on the first input, so that the layer before can learn}}
dyna.layer @constant[%w: tensor<16x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %p = dyna.positions %w, %s : tensor<16x8xf32>
  dyna.return %p : tensor<?x8xf32>
}

// -----

// The loss ends the layer.
dyna.layer @two_uses[%w: tensor<33x8xf32>, %g: tensor<8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  // expected-error @+1 {{expects its loss to be the layer's result and nothing else, but it is used 2 times}}
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  %sum = dyna.sum_squares %g, %loss : tensor<8xf32>
  dyna.return %loss : tensor<1xf64>
}

// -----

dyna.layer @unused_loss[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<?x8xf32> {
  // expected-error @+1 {{expects its loss to be the layer's result and nothing else, but it is used 0 times}}
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %x : tensor<?x8xf32>
}

// -----

// Something behind the loss.
dyna.layer @not_last[%w: tensor<33x8xf32>, %g: tensor<8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  // expected-error @+1 {{expects its loss to be the layer's result, but it is used by 'dyna.sum_squares'}}
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  %sum = dyna.sum_squares %g, %loss : tensor<8xf32>
  dyna.return %sum : tensor<1xf64>
}

// -----

// Calls of one layer share one update function.
dyna.parameter @wte : tensor<33x8xf32> normal 0.02 decay
dyna.parameter @a : tensor<8xf32> constant 1.0
dyna.parameter @b : tensor<8xf32> constant 1.0 decay
dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @norm[%g: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x8xf32>, tensor<8xf32>
  dyna.return %n : tensor<?x8xf32>
}
dyna.layer @head[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @tiny(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  // expected-note @+1 {{see the first call}}
  %1 = dyna.call "n.0" @norm[@a](%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @+1 {{gives parameter 0 as @b with weight decay, but the first call of the layer gives it without decay; calls of one layer share one update function}}
  %2 = dyna.call "n.1" @norm[@b](%1) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = dyna.call "head" @head[@wte](%2, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %3 : tensor<1xf64>
}

// -----

// A module is differentiated once.
dyna.layer @relu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.relu %x : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
// expected-error @+1 {{stands in a module that is to be differentiated; differentiate a module only once}}
dyna.function @relu.evaluate of @relu as evaluate(%x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  %y = dyna.relu %x : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{takes segments twice; one is enough}}
dyna.layer @segments(%x: tensor<?x8xf32>, %s: !dyna.segments, %t: !dyna.segments) -> tensor<?x8xf32> {
  %y = dyna.relu %x : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

dyna.layer @no_loss[%w: tensor<1xf64>](%ids: tensor<?xi32>) -> tensor<1xf64> {
  // expected-error @+1 {{expects the loss to be the result of 'dyna.linear_cross_entropy'}}
  dyna.return %w : tensor<1xf64>
}
