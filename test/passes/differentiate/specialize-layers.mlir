// RUN: dyna-opt %s -dyna-differentiate -dyna-verify-differentiated | FileCheck %s
// RUN: dyna-opt %s -dyna-differentiate=freezable=true -dyna-verify-differentiated | FileCheck %s --check-prefix=ALL
// RUN: dyna-opt %s -dyna-differentiate | sed 's/"h.1" @block.first\[/"h.1" @block[/' | not dyna-opt - -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: dyna-opt %s -dyna-differentiate | sed 's/"h.3" @block\[/"h.3" @block.first[/' | not dyna-opt - -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=LESS

// Layers before the first one that learns run forward alone. The first one that learns gives no
// gradient of its input. Frozen layers behind it pass gradients.

dyna.parameter @wte : tensor<33x8xf32> normal 0.02 frozen
dyna.parameter @w.0 : tensor<8x8xf32> normal 0.02 frozen
dyna.parameter @w.1 : tensor<8x8xf32> normal 0.02 decay
dyna.parameter @w.2 : tensor<8x8xf32> normal 0.02 frozen
dyna.parameter @w.3 : tensor<8x8xf32> normal 0.02 decay
dyna.parameter @out : tensor<33x8xf32> normal 0.02

dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  dyna.return %x : tensor<?x8xf32>
}

// CHECK:      dyna.layer @frozen[
// CHECK-NOT:  attributes
// CHECK-SAME: {
// CHECK:      dyna.function @frozen.backward of @frozen as backward
// CHECK-SAME:   in <output>
// CHECK-NOT:  dyna.function @frozen.backward_
// CHECK-NOT:  dyna.function @frozen.update
// CHECK:      dyna.layer @frozen.alone[
// CHECK-SAME:   attributes {stops_gradient, variant_of = @frozen}
// CHECK:      dyna.function @frozen.alone.evaluate
// CHECK:      dyna.function @frozen.alone.forward
// CHECK-SAME:   -> (tensor<?x8xf32> in <output>)
// CHECK-NOT:  dyna.function @frozen.alone.
// CHECK:      dyna.layer @block[
dyna.layer @frozen[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %z = dyna.silu %y : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}

// CHECK:       dyna.function @block.backward of @block as backward
// CHECK:         dyna.linear_grad_input
// CHECK:       dyna.layer @block.first[
// CHECK-SAME:    attributes {stops_gradient, variant_of = @block}
// CHECK:       dyna.function @block.first.backward of @block.first as backward
// CHECK-NOT:     dyna.linear_grad_input
// CHECK:         dyna.linear_grad_weight
// CHECK-NOT:     dyna.linear_grad_input
// CHECK:       dyna.function @block.first.backward_input of
// CHECK-NOT:     dyna.linear_grad_input
// CHECK:       dyna.function @block.first.update of
// CHECK:         dyna.adamw
// CHECK-SAME:    decay
dyna.layer @block[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

dyna.layer @head[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

// CHECK: dyna.call "h.0" @frozen.alone[
// CHECK: dyna.call "h.1" @block.first[
// CHECK: dyna.call "h.2" @frozen[
// CHECK: dyna.call "h.3" @block[
dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0,
          head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  %1 = dyna.call "h.0" @frozen[@w.0](%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = dyna.call "h.1" @block[@w.1](%1) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = dyna.call "h.2" @frozen[@w.2](%2) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %4 = dyna.call "h.3" @block[@w.3](%3) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %5 = dyna.call "head" @head[@out](%4, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %5 : tensor<1xf64>
}

// All ways in which the rest can be frozen, and none of those that cannot be.
// ALL-NOT:     dyna.layer @embed.
// ALL-DAG:     dyna.layer @frozen[
// ALL-DAG:     dyna.layer @frozen.alone[
// ALL-DAG:     dyna.layer @block[
// ALL-DAG:     dyna.layer @block.first[{{.*}} attributes {stops_gradient, variant_of = @block}
// ALL-DAG:     dyna.layer @block.passing[{{.*}} attributes {frozen, variant_of = @block}
// ALL-DAG:     dyna.layer @block.alone[{{.*}} attributes {frozen, stops_gradient, variant_of = @block}
// ALL-DAG:     dyna.layer @head.first[{{.*}} attributes {stops_gradient, variant_of = @head}
// ALL-DAG:     dyna.layer @head.passing[{{.*}} attributes {frozen, variant_of = @head}
// ALL-NOT:     dyna.layer @head.alone
// ALL-NOT:     dyna.function @block.alone.backward
// ALL-NOT:     dyna.function @block.passing.update

// MORE: calls @block, which gives a gradient of its input, but all layers before are frozen
// LESS: calls @block.first, which gives no gradient of its input, but a layer before is trained
