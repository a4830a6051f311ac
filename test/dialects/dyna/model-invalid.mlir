// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// MODEL1: no segments.
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
// expected-error @+1 {{token ids, target ids and segments, but got ('tensor<?xi32>', 'tensor<?xi32>')}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL2: an op between the calls.
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
  // expected-error @+1 {{expects only 'dyna.call' ops in a 'dyna.model'; put it into a 'dyna.layer'}}
  %r = dyna.relu %0 : tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL2: nothing to call.
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
  // expected-error @+1 {{expects only 'dyna.call' ops in a 'dyna.model'; put it into a 'dyna.layer'}}
  %2 = "test.value"() : () -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL2: another terminator.
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
// expected-error @+1 {{expects to end with 'dyna.return', but got 'test.end'}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  "test.end"(%2) : (tensor<1xf64>) -> ()
}

// -----

// MODEL2: the result of the body is no loss.
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
  // expected-error @+1 {{expects operand #0 to have type 'tensor<1xf64>', that of the result of the enclosing 'dyna.model', but got 'tensor<?x96xf32>'}}
  dyna.return %0 : tensor<?x96xf32>
}

// -----

// MODEL3: the first layer reads the targets.
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
  // expected-error @+1 {{expects the token ids as its first operand, but got another value}}
  %0 = dyna.call "embed" @embed[@wte](%targets) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL3: a layer skips the one before it.
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
  // expected-error @+1 {{expects the result of the call before it as its first operand, but got another value}}
  %b = dyna.call "h.1" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%b, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL4: an activation is used far away.
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
  // expected-error @+1 {{expects its result to be used by the next op alone, but got another use by 'dyna.call'}}
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  // expected-note @+1 {{used here}}
  %2 = dyna.call "head" @head[@wte](%1, %targets, %0) : (tensor<?x96xf32>, tensor<?xi32>, tensor<?x96xf32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL5: no vocabulary.
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
// expected-error @+1 {{expects the fact 'vocabulary' to be positive, but got 0}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 0, positions = 0, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL5: a negative length.
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
// expected-error @+1 {{expects the fact 'positions' not to be negative, but got -1}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = -1, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL6: two layers of one name.
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
  // expected-note @+1 {{first used here}}
  %1 = dyna.call "h.0" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  // expected-error @+1 {{expects a layer name of its own, but got "h.0" again}}
  %b = dyna.call "h.0" @block(%1) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%b, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL6: a layer without a name.
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
  // expected-error @+1 {{expects a layer name, but got ""}}
  %1 = dyna.call "" @block(%0) : (tensor<?x96xf32>) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL7: more token ids than rows.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.parameter @w : tensor<96x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  // expected-note @+1 {{see where it is looked up}}
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %q = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  %o, %lse = dyna.attention %q, %q, %q, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 1.0 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  dyna.return %o : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'vocabulary' to be from 1 to 257, the rows of a table that its layers look it up in, but got 60000000}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 60000000, positions = 64, width = 96, heads = 8, kv_heads = 8, head_dim = 12, feed_forward = 96, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@w](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL8: more positions than rows.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.parameter @w : tensor<96x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  // expected-note @+1 {{see where it is looked up}}
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %q = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  %o, %lse = dyna.attention %q, %q, %q, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 1.0 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  dyna.return %o : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'positions' to be from 1 to 64, the rows of a table that its layers look it up in, but got 100000}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 100000, width = 96, heads = 8, kv_heads = 8, head_dim = 12, feed_forward = 96, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@w](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL8: no limit, but a table.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.parameter @w : tensor<96x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  // expected-note @+1 {{see where it is looked up}}
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %q = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  %o, %lse = dyna.attention %q, %q, %q, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 1.0 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  dyna.return %o : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'positions' to be from 1 to 64, the rows of a table that its layers look it up in, but got 0}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 0, width = 96, heads = 8, kv_heads = 8, head_dim = 12, feed_forward = 96, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@w](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL9: another width.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.parameter @w : tensor<96x96xf32>
// expected-note @+1 {{see the width of this layer's result}}
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %q = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  %o, %lse = dyna.attention %q, %q, %q, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 1.0 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  dyna.return %o : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'width' to be 96, as its layers say, or 0, but got 95}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 95, heads = 8, kv_heads = 8, head_dim = 12, feed_forward = 96, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@w](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL9: other heads.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.parameter @w : tensor<96x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %q = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  // expected-note @+1 {{see the heads of this attention}}
  %o, %lse = dyna.attention %q, %q, %q, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 1.0 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  dyna.return %o : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'heads' to be 8, as its layers say, or 0, but got 4}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 4, kv_heads = 8, head_dim = 12, feed_forward = 96, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@w](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL9: other key/value heads.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.parameter @w : tensor<96x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %q = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  // expected-note @+1 {{see the key/value heads of this attention}}
  %o, %lse = dyna.attention %q, %q, %q, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 1.0 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  dyna.return %o : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'kv_heads' to be 8, as its layers say, or 0, but got 4}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 8, kv_heads = 4, head_dim = 12, feed_forward = 96, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@w](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL9: another head size.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.parameter @w : tensor<96x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %q = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  // expected-note @+1 {{see the head size of this attention}}
  %o, %lse = dyna.attention %q, %q, %q, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 1.0 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  dyna.return %o : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'head_dim' to be 12, as its layers say, or 0, but got 96}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 8, kv_heads = 8, head_dim = 96, feed_forward = 96, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@w](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL9: no linear has so many outputs.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.parameter @w : tensor<96x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @block[%w: tensor<96x96xf32>](%x: tensor<?x96xf32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %q = dyna.linear %x, %w : tensor<?x96xf32>, tensor<96x96xf32>
  %o, %lse = dyna.attention %q, %q, %q, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 1.0 : f64} : tensor<?x96xf32>, tensor<?x96xf32>, tensor<?x96xf32>
  dyna.return %o : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'feed_forward' to be 0, as no layer has any, but got 384}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 8, kv_heads = 8, head_dim = 12, feed_forward = 384, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "h.0" @block[@w](%0, %s) : (tensor<?x96xf32>, !dyna.segments) -> tensor<?x96xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL10: a config that is no JSON.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'config' to be empty or a JSON object, but got an error: }}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22n_embd\22: "> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// MODEL10: a config that is no object.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'config' to be empty or a JSON object, but got another value}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "[1]"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// MODEL10: a config that JSON's parser could not take.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'config' to be empty or a JSON object, but got more than 200 open brackets}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// MODEL10: a field twice.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'config' to be empty or a JSON object, but got 'a' twice}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22a\22: 1, \22\\u0061\22: 1}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// MODEL11: two parameters are the same part.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32> stored<name = "qk", part = 1, parts = 2>
// expected-error @+1 {{expects to be stored where no other parameter is, but got part 1 of the tensor "qk", as @a is}}
dyna.parameter @b : tensor<4x4xf32> stored<name = "qk", part = 1, parts = 2>
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL11: two parameters are the same tensor.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32> stored<name = "w">
// expected-error @+1 {{expects to be stored where no other parameter is, but got part 0 of the tensor "w", as @a is}}
dyna.parameter @b : tensor<4x4xf32> stored<name = "w">
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL11: the tensor has another parameter's own name.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32>
// expected-error @+1 {{expects to be stored where no other parameter is, but got part 0 of the tensor "a", as @a is}}
dyna.parameter @b : tensor<4x4xf32> stored<name = "a">
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL11: a whole tensor and a part of it.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32> stored<name = "w">
// expected-error @+1 {{expects to be stored where no other parameter is, but got part 1 of the tensor "w", as @a is}}
dyna.parameter @b : tensor<4x4xf32> stored<name = "w", part = 1, parts = 2>
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL11: the names differ in the prefix alone, which files may lack.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32> stored<name = "body.w">
// expected-error @+1 {{expects to be stored where no other parameter is, but got part 0 of the tensor "w", as @a is}}
dyna.parameter @b : tensor<4x4xf32> stored<name = "w">
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "", prefix = "body."> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL11: a part is missing.
dyna.parameter @t : tensor<8x4xf32>
// expected-error @+1 {{expects all 3 parts of the tensor "qkv" to be parameters of the model, but got none for part 1}}
dyna.parameter @a : tensor<4x4xf32> stored<name = "qkv", part = 0, parts = 3>
dyna.parameter @b : tensor<4x4xf32> stored<name = "qkv", part = 2, parts = 3>
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL12: parts of other widths.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32> stored<name = "qk", part = 0, parts = 2>
// expected-error @+1 {{expects all dimensions but the first to be those of @a, the other part of "qk", 'tensor<4x4xf32>', but got 'tensor<4x6xf32>'}}
dyna.parameter @b : tensor<4x6xf32> stored<name = "qk", part = 1, parts = 2>
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x6xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL12: one part is transposed, the other is not.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32> stored<name = "qk", part = 0, parts = 2>
// expected-error @+1 {{expects to say of the tensor "qk" what @a says}}
dyna.parameter @b : tensor<4x4xf32> stored<name = "qk", part = 1, parts = 2, transposed = true>
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL12: of two parts, and of three.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32> stored<name = "qk", part = 0, parts = 2>
// expected-error @+1 {{expects to say of the tensor "qk" what @a says}}
dyna.parameter @b : tensor<4x4xf32> stored<name = "qk", part = 1, parts = 3>
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL13: a copy that is the tensor of another parameter.
dyna.parameter @t : tensor<8x4xf32>
// expected-note @+1 {{see @a}}
dyna.parameter @a : tensor<4x4xf32>
// expected-error @+1 {{expects 'copy' to name no tensor of the model, but got "a"}}
dyna.parameter @b : tensor<4x4xf32> stored<name = "w", copy = "a">
dyna.layer @embed[%t: tensor<8x4xf32>](%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %x = dyna.embedding %ids, %t : tensor<?xi32>, tensor<8x4xf32>
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @block[%a: tensor<4x4xf32>, %b: tensor<4x4xf32>](%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  dyna.return %x : tensor<?x4xf32>
}
dyna.layer @head[%t: tensor<8x4xf32>](%x: tensor<?x4xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %t, %targets : tensor<?x4xf32>, tensor<8x4xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 8, positions = 0, width = 4, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@t](%ids) : (tensor<?xi32>) -> tensor<?x4xf32>
  %1 = dyna.call "b" @block[@a, @b](%0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = dyna.call "head" @head[@t](%1, %targets) : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL2: the loss of an exit is not returned.
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
  %1, %early = dyna.call "exit" @exit[@wte](%0, %targets) weight 0.5 : (tensor<?x96xf32>, tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>)
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  // expected-error @+1 {{expects to return the losses of all calls, in their order: 2, but got 1}}
  dyna.return %2 : tensor<1xf64>
}

// -----

// MODEL2: losses in another order.
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
  %1, %early = dyna.call "exit" @exit[@wte](%0, %targets) weight 0.5 : (tensor<?x96xf32>, tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>)
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  // expected-error @+1 {{expects to return the losses of all calls, in their order: 2, but got 2 in another order}}
  dyna.return %2, %early : tensor<1xf64>, tensor<1xf64>
}

// -----

// MODEL3: the last call is an exit.
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
  // expected-error @+1 {{expects the loss alone as the result of the last call, but got an activation, which no call takes}}
  %1, %early = dyna.call "exit" @exit[@wte](%0, %targets) weight 0.5 : (tensor<?x96xf32>, tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>)
  dyna.return %early : tensor<1xf64>
}

// -----

// MODEL4: a loss is given to a layer.
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
  // expected-error @+1 {{expects its loss to be used by the terminator alone, but got another use by 'dyna.call'}}
  %1, %early = dyna.call "exit" @exit[@wte](%0, %targets) weight 0.5 : (tensor<?x96xf32>, tensor<?xi32>) -> (tensor<?x96xf32>, tensor<1xf64>)
  // expected-note @+1 {{used here}}
  %2 = dyna.call "head" @head[@wte](%1, %targets, %early) : (tensor<?x96xf32>, tensor<?xi32>, tensor<1xf64>) -> tensor<1xf64>
  dyna.return %early, %2 : tensor<1xf64>, tensor<1xf64>
}
