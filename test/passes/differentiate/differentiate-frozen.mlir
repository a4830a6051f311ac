// RUN: dyna-opt %s -dyna-differentiate -dyna-verify-differentiated -mlir-print-local-scope | FileCheck %s

// A frozen parameter has no accumulator in any function, and no part in what the optimizer does.

dyna.parameter @wte : tensor<33x8xf32> normal 0.02 decay frozen
dyna.parameter @g : tensor<8xf32> constant 1.0 frozen
dyna.parameter @b : tensor<8xf32>
dyna.parameter @w : tensor<8x8xf32> normal 0.02 decay frozen
dyna.parameter @a : tensor<2x8xf32> normal 0.02 decay
dyna.parameter @c : tensor<8x2xf32> decay

// A frozen table has no gradient at all: it has no backward, and no functions of the optimizer.
// CHECK-LABEL: dyna.function @embed.forward
// CHECK-NOT:     gradient
// CHECK-NOT:   dyna.function @embed.
dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  dyna.return %x : tensor<?x8xf32>
}

// Of the frozen linear, backward has the product with its weight alone. What only the frozen
// weight's gradient would need, the input of the linear, is read by the adapter here. The bias of
// a norm whose weight is frozen has the gradient of a bias. No layer before learns, so that none
// needs the gradient of the input.
// CHECK-LABEL: dyna.layer @block
// CHECK-SAME:    stops_gradient
// CHECK-LABEL: dyna.function @block.backward of @block as backward
// CHECK-SAME:    in <gradient, index = 1>
// CHECK-NOT:     in <gradient>,
// CHECK-SAME:    in <gradient, index = 3>
// CHECK-SAME:    in <gradient, index = 4>
// CHECK-NOT:     tensor<8x8xf32> in <gradient
// CHECK-DAG:     dyna.bias_grad
// CHECK-DAG:     dyna.linear_grad_weight %{{.*}} : tensor<?x2xf32>, tensor<?x8xf32>, tensor<2x8xf32>
// CHECK-DAG:     dyna.linear_grad_weight %{{.*}} : tensor<?x8xf32>, tensor<?x2xf32>, tensor<8x2xf32>
// CHECK-DAG:     dyna.linear_grad_input %{{.*}} : tensor<?x8xf32>, tensor<8x8xf32>
// CHECK-NOT:     dyna.layer_norm_grad
// CHECK-LABEL: dyna.function @block.backward_weight
// CHECK-COUNT-2: dyna.linear_grad_weight
// CHECK-NOT:     dyna.linear_grad_weight
// CHECK-LABEL: dyna.function @block.update
// CHECK-COUNT-3: dyna.adamw
// CHECK-NOT:     dyna.adamw
// CHECK-LABEL: dyna.function @block.grad_norm
// CHECK-COUNT-3: dyna.sum_squares
// CHECK-NOT:     dyna.sum_squares
dyna.layer @block[%g: tensor<8xf32>, %b: tensor<8xf32>, %w: tensor<8x8xf32>, %a: tensor<2x8xf32>, %c: tensor<8x2xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = dyna.layer_norm %x, %g, %b {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  %y = dyna.linear %n, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %d = dyna.linear %n, %a : tensor<?x8xf32>, tensor<2x8xf32>
  %u = dyna.linear %d, %c : tensor<?x2xf32>, tensor<8x2xf32>
  %s = dyna.scale %u {factor = 0.5 : f64} : tensor<?x8xf32>
  %z = dyna.add %y, %s : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}

// A frozen head makes the gradient of its input with two products.
// CHECK-LABEL: dyna.function @head.forward of @head as forward
// CHECK-NOT:     gradient
// CHECK:         %[[LOSS:.+]], %[[DX:.+]] = dyna.linear_cross_entropy_input
// CHECK-NEXT:    dyna.return %[[LOSS]], %[[DX]]
// CHECK-NOT:   dyna.linear_cross_entropy_train
dyna.layer @head[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

dyna.model @m(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %segments: !dyna.segments)
    facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0,
          head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  %1 = dyna.call "block" @block[@g, @b, @w, @a, @c](%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
