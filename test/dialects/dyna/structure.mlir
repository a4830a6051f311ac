// RUN: dyna-opt %s --verify-roundtrip | FileCheck %s

// What the custom syntax of parameters, layers, models and functions prints.

// CHECK:       dyna.parameter @wte : tensor<257x8xf32> normal 2.000000e-02 decay
// CHECK-NEXT:  dyna.parameter @g : tensor<8xf32> constant 1.000000e+00{{$}}
dyna.parameter @wte : tensor<257x8xf32> normal 0.02 decay
dyna.parameter @g : tensor<8xf32> constant 1.0
// CHECK-NEXT:  dyna.parameter @kept : tensor<8xf32> constant 1.000000e+00 frozen{{$}}
dyna.parameter @kept : tensor<8xf32> constant 1.0 frozen
// CHECK-NEXT:  dyna.parameter @more : tensor<8xf32> added{{$}}
dyna.parameter @more : tensor<8xf32> added

// Where checkpoints have a parameter; what is the default is not printed.

// CHECK:       dyna.parameter @q : tensor<8x8xf32> decay stored<name = "qk.weight", parts = 2, transposed = true>{{$}}
// CHECK-NEXT:  dyna.parameter @k : tensor<4x8xf32> stored<name = "qk.weight", part = 1, parts = 2, transposed = true>{{$}}
// CHECK-NEXT:  dyna.parameter @n : tensor<8xf32> constant 1.000000e+00 stored<name = "norm.weight", copy = "ln.weight">{{$}}
dyna.parameter @q : tensor<8x8xf32> decay stored<name = "qk.weight", part = 0, parts = 2, transposed = true>
dyna.parameter @k : tensor<4x8xf32> stored<name = "qk.weight", part = 1, parts = 2, transposed = true>
dyna.parameter @n : tensor<8xf32> constant 1.0 stored<copy = "ln.weight", name = "norm.weight", transposed = false>

// CHECK-LABEL: dyna.layer @embed
// CHECK-SAME:  [%[[W:.*]]: tensor<257x8xf32>](%[[IDS:.*]]: tensor<?xi32>) -> tensor<?x8xf32> {
dyna.layer @embed[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  // CHECK: dyna.embedding %[[IDS]], %[[W]] : tensor<?xi32>, tensor<257x8xf32>
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %x : tensor<?x8xf32>
}

// A layer without parameters; attributes that the syntax does not spell stay.

// CHECK-LABEL: dyna.layer @block
// CHECK-SAME:  (%[[X:.*]]: tensor<?x8xf32>, %{{.*}}: !dyna.segments) -> tensor<?x8xf32> attributes {sym_visibility = "private"} {
dyna.layer @block(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> attributes {sym_visibility = "private"} {
  // CHECK: dyna.return %[[X]] : tensor<?x8xf32>
  dyna.return %x : tensor<?x8xf32>
}

// CHECK-LABEL: dyna.layer @head
dyna.layer @head[%g: tensor<8xf32>, %w: tensor<257x8xf32>](%x: tensor<?x8xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %t {ignore_index = -100 : i64} : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

// One parameter in two calls ties them.

// CHECK-LABEL: dyna.model @tiny
// CHECK-SAME:  (%[[IDS:.*]]: tensor<?xi32>, %[[T:.*]]: tensor<?xi32>, %[[S:.*]]: !dyna.segments)
// CHECK-NEXT:  facts<family = "custom", vocabulary = 257, positions = 0, width = 8, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{\22a\22: 1}", prefix = "body.", buffers = [".mask"], defaults = "{}"> {
dyna.model @tiny(%ids: tensor<?xi32>, %t: tensor<?xi32>, %s: !dyna.segments)
    facts<family = "custom", vocabulary = 257, positions = 0, width = 8, heads = 0, kv_heads = 0,
          head_dim = 0, feed_forward = 0, config = "{\22a\22: 1}", prefix = "body.", buffers = [".mask"], defaults = "{}"> {
  // CHECK-NEXT: %[[E:.*]] = dyna.call "embed" @embed[@wte](%[[IDS]]) : (tensor<?xi32>) -> tensor<?x8xf32>
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  // CHECK-NEXT: %[[B:.*]] = dyna.call "h.0" @block(%[[E]], %[[S]]) : (tensor<?x8xf32>, !dyna.segments) -> tensor<?x8xf32>
  %1 = dyna.call "h.0" @block(%0, %s) : (tensor<?x8xf32>, !dyna.segments) -> tensor<?x8xf32>
  // CHECK-NEXT: %[[L:.*]] = dyna.call "head" @head[@g, @wte](%[[B]], %[[T]])
  %2 = dyna.call "head" @head[@g, @wte](%1, %t) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  // CHECK-NEXT: dyna.return %[[L]] : tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}

// CHECK-LABEL: dyna.function @head.backward of @head as backward
// CHECK-SAME:  (%[[W:.*]]: tensor<257x8xf32> in <parameter, index = 1>, %[[G:.*]]: tensor<257x8xf32> in <gradient, index = 1>,
// CHECK-SAME:  %{{.*}}: !dyna.segments in <segments>, %[[DX:.*]]: tensor<?x8xf32> in <products, tq = 32, constant = 64>)
// CHECK-SAME:  -> (tensor<?x8xf32> in <output>, tensor<257x8xf32> in <gradient, index = 1>) workspace <workspace, tq = 64, tkv = 4, s = 8> attributes {sym_visibility = "private"} {
dyna.function @head.backward of @head as backward(
    %w: tensor<257x8xf32> in <parameter, index = 1>, %g: tensor<257x8xf32> in <gradient, index = 1>,
    %s: !dyna.segments in <segments>, %dx: tensor<?x8xf32> in <products, tq = 32, constant = 64>)
    -> (tensor<?x8xf32> in <output>, tensor<257x8xf32> in <gradient, index = 1>)
    workspace <workspace, tq = 64, tkv = 4, s = 8> attributes {sym_visibility = "private"} {
  // CHECK-NEXT: %[[R:.*]]:2 = dyna.rows : tensor<?x8xf32>, tensor<?x8xf32> {
  // CHECK-NEXT:   %[[A:.*]] = dyna.relu %[[DX]]
  // CHECK-NEXT:   %[[B:.*]] = dyna.silu %[[A]]
  // CHECK-NEXT:   dyna.yield %[[A]], %[[B]] : tensor<?x8xf32>, tensor<?x8xf32>
  // CHECK-NEXT: } {places = [#dyna.place<workspace>, #dyna.place<output>]}
  %r:2 = dyna.rows : tensor<?x8xf32>, tensor<?x8xf32> {
    %a = dyna.relu %dx : tensor<?x8xf32>
    %b = dyna.silu %a : tensor<?x8xf32>
    dyna.yield %a, %b : tensor<?x8xf32>, tensor<?x8xf32>
  } {places = [#dyna.place<workspace>, #dyna.place<output>]}
  // CHECK-NEXT: dyna.return %[[R]]#1, %[[G]]
  dyna.return %r#1, %g : tensor<?x8xf32>, tensor<257x8xf32>
}

// A function that does nothing has no results and prints none.

// CHECK-LABEL: dyna.function @block.recompute_selective of @block as recompute_selective() {
// CHECK-NEXT:  dyna.return
dyna.function @block.recompute_selective of @block as recompute_selective() {
  dyna.return
}

// An exit gives a loss beside its activation; a weight of 1 is not printed.

// CHECK-LABEL: dyna.layer @exit
// CHECK-SAME:  -> (tensor<?x8xf32>, tensor<1xf64>) {
dyna.layer @exit[%g: tensor<8xf32>, %w: tensor<257x8xf32>](%x: tensor<?x8xf32>, %t: tensor<?xi32>) -> (tensor<?x8xf32>, tensor<1xf64>) {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-5 : f64} : tensor<?x8xf32>, tensor<8xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %t : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>
  dyna.return %x, %loss : tensor<?x8xf32>, tensor<1xf64>
}

// CHECK-LABEL: dyna.model @exits
dyna.model @exits(%ids: tensor<?xi32>, %t: tensor<?xi32>, %s: !dyna.segments)
    facts<family = "custom", vocabulary = 257, positions = 0, width = 8, heads = 0, kv_heads = 0,
          head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  // CHECK: %[[X:.*]], %[[A:.*]] = dyna.call "first" @exit[@g, @wte](%{{.*}}, %{{.*}}) weight 3.000000e-01 : (tensor<?x8xf32>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<1xf64>)
  %1, %a = dyna.call "first" @exit[@g, @wte](%0, %t) weight 0.3 : (tensor<?x8xf32>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<1xf64>)
  // CHECK: %[[Y:.*]], %[[B:.*]] = dyna.call "second" @exit[@g, @wte](%[[X]], %{{.*}}) : (tensor<?x8xf32>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<1xf64>)
  %2, %b = dyna.call "second" @exit[@g, @wte](%1, %t) weight 1.0 : (tensor<?x8xf32>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<1xf64>)
  // CHECK: %[[C:.*]] = dyna.call "head" @head[@g, @wte](%[[Y]], %{{.*}}) weight 2.000000e+00
  %3 = dyna.call "head" @head[@g, @wte](%2, %t) weight 2.0 : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  // CHECK-NEXT: dyna.return %[[A]], %[[B]], %[[C]] : tensor<1xf64>, tensor<1xf64>, tensor<1xf64>
  dyna.return %a, %b, %3 : tensor<1xf64>, tensor<1xf64>, tensor<1xf64>
}
