// RUN: dyna-opt %s --dyna-check-families -split-input-file -verify-diagnostics

// FAMILY1: a family misspelt.
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
// expected-error @+1 {{expects the fact 'family' to be gpt2, llama or custom, but got "GPT-2"; did you mean 'gpt2'}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "GPT-2", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY1: a family that is near to none.
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
// expected-error @+1 {{expects the fact 'family' to be gpt2, llama or custom, but got "mistral"}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "mistral", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: another vocabulary.
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
// expected-error @+1 {{expects 'vocab_size' in the fact 'config' to be 257, the fact 'vocabulary', but got 50257}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22vocab_size\22: 50257}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: more than the padded table has.
dyna.parameter @wte : tensor<384x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.layer @embed[%w: tensor<384x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<384x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<384x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<384x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects 'vocab_size' in the fact 'config' to be 257, the fact 'vocabulary', or more as far as the tables go, but got 385}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22vocab_size\22: 385}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: fewer positions.
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
// expected-error @+1 {{expects 'n_positions' in the fact 'config' to be 64, the fact 'positions', but got 32}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22n_positions\22: 32}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: a float that no 64-bit integer is.
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
// expected-error @+1 {{expects 'n_positions' in the fact 'config' to be 64, the fact 'positions', but got 9.2233720368547758e+18}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22n_positions\22: 9223372036854775808.0}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: positions in the words of the other family.
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
// expected-error @+1 {{expects 'max_position_embeddings' in the fact 'config' to be 64, the fact 'positions', but got 128}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22max_position_embeddings\22: 128}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: a width that is no number; the padded vocabulary is right.
dyna.parameter @wte : tensor<384x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.layer @embed[%w: tensor<384x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<384x96xf32>
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<384x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<384x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects 'n_embd' in the fact 'config' to be 96, the fact 'width', but got "96"}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22vocab_size\22: 384, \22n_embd\22: \2296\22}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: another width.
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
// expected-error @+1 {{expects 'hidden_size' in the fact 'config' to be 96, the fact 'width', but got 95}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22hidden_size\22: 95, \22vocab_size\22: null}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY3: layers of another family.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
dyna.layer @embed[%w: tensor<257x96xf32>, %p: tensor<64x96xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x96xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x96xf32>
  // expected-note @+1 {{see this op}}
  %1 = dyna.positions %p, %s : tensor<64x96xf32>
  %x = dyna.add %0, %1 : tensor<?x96xf32>
  dyna.return %x : tensor<?x96xf32>
}
dyna.layer @head[%w: tensor<257x96xf32>](%x: tensor<?x96xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x96xf32>, tensor<257x96xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
// expected-error @+1 {{expects the fact 'family' to be custom, as its layers have 'dyna.positions', which llama has not, but got "llama"}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "llama", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY3: layers that lack what the family has.
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
// expected-error @+1 {{expects the fact 'family' to be custom, as its layers have no 'dyna.layer_norm', which gpt2 has, but got "gpt2"}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "gpt2", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: others would build a GPT-2, and find no tensor of it.
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
// expected-error @+1 {{expects 'model_type' in the fact 'config' not to be a family by whose names the tensors are not stored, as the fact 'family' is custom, but got "gpt2"}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22model_type\22: \22gpt2\22}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: nearly as a family is called.
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
// expected-error @+1 {{expects 'model_type' in the fact 'config' not to be a family by whose names the tensors are not stored, as the fact 'family' is custom, but got "GPT-2", which people and programs take for gpt2}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22model_type\22: \22GPT-2\22}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY4: all of a long value is not repeated.
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
// expected-error-re @+1 {{expects 'n_embd' in the fact 'config' to be 96, the fact 'width', but got [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,...{{$}}}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 257, positions = 64, width = 96, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22n_embd\22: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}"> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}

// -----

// FAMILY2: the layers' width is another number than 0.
dyna.parameter @wte : tensor<257x96xf32>
dyna.parameter @wpe : tensor<64x96xf32>
// expected-note @+1 {{see the width of this layer's result}}
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
// expected-error @+1 {{expects the fact 'width' to be 96, as its layers say, but got 0}}
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "gpt2", vocabulary = 257, positions = 64, width = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = ""> {
  %0 = dyna.call "embed" @embed[@wte, @wpe](%ids, %s) : (tensor<?xi32>, !dyna.segments) -> tensor<?x96xf32>
  %1 = dyna.call "head" @head[@wte](%0, %targets) : (tensor<?x96xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %1 : tensor<1xf64>
}
