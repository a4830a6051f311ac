// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// CALL1: there is no such layer.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects callee @blok to name a 'dyna.layer', but there is no such symbol}}
  %1 = dyna.call "h.0" @blok(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL1: a parameter is no layer.
// expected-note @+1 {{defined here}}
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects callee @wte to name a 'dyna.layer', but got a 'dyna.parameter'}}
  %1 = dyna.call "h.0" @wte(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL2: a parameter is missing.
dyna.parameter @wte : tensor<257x96xf32>
// expected-note @+1 {{layer defined here}}
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  // expected-error @+1 {{expects 1 parameters, as @embed takes, but got 0}}
  %0 = dyna.call "embed" @embed(%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL2: there is no such parameter.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  // expected-error @+1 {{expects the parameter @wpe to name a 'dyna.parameter', but there is no such symbol}}
  %0 = dyna.call "embed" @embed[@wpe](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL3: a parameter of another shape.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-note @+1 {{parameter defined here}}
dyna.parameter @small : tensor<8x96xf32>
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  // expected-error @+1 {{expects parameter #0 to have type 'tensor<257x96xf32>', as @embed takes, but @small is 'tensor<8x96xf32>'}}
  %0 = dyna.call "embed" @embed[@small](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL3: an operand too many.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects 1 operands, as @block takes, but got 2}}
  %1 = dyna.call "h.0" @block(%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL3: an operand of another type.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects operand #1 to have type 'tensor<?xi32>', as @head takes, but got '!dyna.segments'}}
  %2 = dyna.call "head" @head[@wte](%1, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL3: a result of another type.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32> {
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.layer @narrow(%x: tensor<?x64xf32>) -> tensor<?x96xf32> {
  %y = "test.value"() : () -> tensor<?x96xf32>
  dyna.return %y : tensor<?x96xf32>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  // expected-error @+1 {{expects the result to have type 'tensor<?x96xf32>', as @embed gives, but got 'tensor<?x64xf32>'}}
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x64xf32>
  %1 = dyna.call "h.0" @narrow(%0) : (tensor<?x64xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// Structure: a call outside of a model.
%x = "test.value"() : () -> tensor<?x96xf32>
// expected-error @+1 {{expects parent op 'dyna.model'}}
%y = dyna.call "h.0" @block(%x) : (tensor<?x96xf32>) -> tensor<?x96xf32>

// -----

// CALL1: a part of a layer is called by nobody: its attributes would be read by nobody.
dyna.layer @block(%x: tensor<?x96xf32>) -> tensor<?x96xf32>
    attributes {dist.mesh = #dist.mesh<tp=2>, dist.logical = @block, dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>], dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x96xf32>
}
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects callee @block to be a whole layer, but it has 'dist.mesh', which --dyna-distribute alone writes, on parts}}
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL3: the loss of an exit is left out.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @exit[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>) {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %x, %loss : tensor<?x96xf32>, tensor<1xf64>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects 2 results, as @exit gives, but got 1}}
  %1 = dyna.call "exit" @exit[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// CALL4: a negative weight.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @exit[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>) {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %x, %loss : tensor<?x96xf32>, tensor<1xf64>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects 'weight' to be finite and not negative, but got -5.000000e-01}}
  %1, %early = dyna.call "exit" @exit[@wte](%0, %targets) weight -0.5 : (tensor<?x96xf32>, tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>)
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %early, %2 : tensor<1xf64>, tensor<1xf64>
}

// -----

// CALL4: an infinite weight.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @exit[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>) {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %x, %loss : tensor<?x96xf32>, tensor<1xf64>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects 'weight' to be finite and not negative, but got INF}}
  %1, %early = dyna.call "exit" @exit[@wte](%0, %targets) weight 0x7FF0000000000000 : (tensor<?x96xf32>, tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>)
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %early, %2 : tensor<1xf64>, tensor<1xf64>
}

// -----

// CALL4: a weight without a loss.
dyna.parameter @wte : tensor<257x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>](%ids: tensor<?xi32>) -> tensor<?x96xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @exit[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>) {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %x, %loss : tensor<?x96xf32>, tensor<1xf64>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  // expected-error @+1 {{expects no 'weight' without a loss, but got 5.000000e-01}}
  %0 = dyna.call "embed" @embed[@wte](%ids) weight 0.5 : (tensor<?xi32>) -> tensor<?x96xf32>
  %1, %early = dyna.call "exit" @exit[@wte](%0, %targets) weight 0.5 : (tensor<?x96xf32>, tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>)
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %early, %2 : tensor<1xf64>, tensor<1xf64>
}
