// RUN: dyna-opt %s -split-input-file --pass-pipeline='builtin.module(dyna.function(dyna-fuse-rows))' | FileCheck %s

// A linear's bias goes into the sweep behind the product; what passes between
// ops of the sweep is not yielded.
// CHECK-LABEL: dyna.function @chain
// CHECK-SAME:    (%[[X:.*]]: tensor<?x64xf32> in <input>, %[[W:[^ ]*]]: {{.*}}, %[[B:[^ ]*]]: {{.*}}, %[[Z:[^ ]*]]: tensor<?x64xf32> in <input, index = 1>)
// CHECK-NEXT:    %[[M:.*]] = dyna.linear %[[X]], %[[W]] : tensor<?x64xf32>, tensor<64x64xf32>
// CHECK-NEXT:    %[[Y:.*]] = dyna.rows : tensor<?x64xf32> {
// CHECK-NEXT:      %[[H:.*]] = dyna.bias %[[M]], %[[B]]
// CHECK-NEXT:      %[[A:.*]] = dyna.gelu %[[H]] tanh
// CHECK-NEXT:      %[[S:.*]] = dyna.add %[[A]], %[[Z]]
// CHECK-NEXT:      dyna.yield %[[S]] : tensor<?x64xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.return %[[Y]]
dyna.function @chain of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>, %z: tensor<?x64xf32> in <input, index = 1>) -> (tensor<?x64xf32> in <output>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %a = dyna.gelu %h tanh : tensor<?x64xf32>
  %y = dyna.add %a, %z : tensor<?x64xf32>
  dyna.return %y : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// A value that a later product or the caller needs is yielded, others are not.
// CHECK-LABEL: dyna.function @yielded
// CHECK:         dyna.linear
// CHECK-NEXT:    %[[R:.*]]:2 = dyna.rows : tensor<?x64xf32>, tensor<?x64xf32> {
// CHECK-NEXT:      %[[H:.*]] = dyna.bias
// CHECK-NEXT:      %[[A:.*]] = dyna.gelu %[[H]]
// CHECK-NEXT:      dyna.yield %[[H]], %[[A]]
// CHECK:         %[[O:.*]] = dyna.linear %[[R]]#1
// CHECK-NEXT:    dyna.return %[[O]], %[[R]]#0
dyna.function @yielded of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <products>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %a = dyna.gelu %h tanh : tensor<?x64xf32>
  %o = dyna.linear %a, %w : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %o, %h : tensor<?x64xf32>, tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Must not fire: a product lies between the two, so they stay apart.
// CHECK-LABEL: dyna.function @product_between
// CHECK:         dyna.rows
// CHECK-NEXT:      dyna.gelu
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.linear
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.add
// CHECK-NEXT:      dyna.yield
dyna.function @product_between of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) {
  %a = dyna.gelu %x tanh : tensor<?x64xf32>
  %m = dyna.linear %a, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.add %a, %m : tensor<?x64xf32>
  dyna.return %y : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// The sum of two input gradients happens in the later product.
// CHECK-LABEL: dyna.function @sum_in_product
// CHECK:         %[[A:.*]] = dyna.linear_grad_input %{{.*}}, %{{.*}} : tensor<?x32xf32>, tensor<32x64xf32>
// CHECK-NEXT:    %[[B:.*]] = dyna.linear_grad_input %{{.*}}, %{{.*}} add %[[A]]
// CHECK-NEXT:    dyna.return %[[B]]
dyna.function @sum_in_product of @l as backward(%d0: tensor<?x32xf32> in <input>, %d1: tensor<?x32xf32> in <input, index = 1>, %w: tensor<32x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) {
  %a = dyna.linear_grad_input %d0, %w : tensor<?x32xf32>, tensor<32x64xf32>
  %b = dyna.linear_grad_input %d1, %w : tensor<?x32xf32>, tensor<32x64xf32>
  %c = dyna.add %a, %b : tensor<?x64xf32>
  dyna.return %c : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Must not fire: both summands are needed elsewhere too, or are not ours to
// overwrite. The sum is a sweep.
// CHECK-LABEL: dyna.function @sum_not_in_product
// CHECK-NOT:     add %
// CHECK:         dyna.rows
// CHECK-NEXT:      dyna.add
dyna.function @sum_not_in_product of @l as backward(%d0: tensor<?x32xf32> in <input>, %z: tensor<?x64xf32> in <input, index = 1>, %w: tensor<32x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) {
  %a = dyna.linear_grad_input %d0, %w : tensor<?x32xf32>, tensor<32x64xf32>
  %c = dyna.add %a, %z : tensor<?x64xf32>
  dyna.return %c : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// A rotary op may feed others of its sweep, but is not fed by them.
// CHECK-LABEL: dyna.function @rotary
// CHECK:         dyna.linear
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.rotary
// CHECK-NEXT:      dyna.relu
// CHECK-NEXT:      dyna.yield
dyna.function @rotary of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>, %s: !dyna.segments in <segments>) -> (tensor<?x64xf32> in <output>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %r = dyna.rotary %h, %s {head_dim = 32 : i64, theta = 1.0e4 : f64} : tensor<?x64xf32>
  %y = dyna.relu %r : tensor<?x64xf32>
  dyna.return %y : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Sums over rows join the sweep that makes their operand; the sum into an
// accumulator that another sweep's sum begins with does not.
// CHECK-LABEL: dyna.function @accumulators
// CHECK:         dyna.linear_grad_input
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.gelu_grad
// CHECK-NEXT:      dyna.bias_grad
// CHECK-NEXT:      dyna.yield
// CHECK:         dyna.rows
// CHECK-NEXT:      dyna.bias_grad
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.return
dyna.function @accumulators of @l as backward(%d: tensor<?x64xf32> in <input>, %h: tensor<?x64xf32> in <products>, %w: tensor<64x64xf32> in <parameter>, %g: tensor<64xf32> in <gradient>) -> (tensor<?x64xf32> in <output>, tensor<64xf32> in <gradient>) {
  %m = dyna.linear_grad_input %d, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %dh = dyna.gelu_grad %h, %m tanh : tensor<?x64xf32>
  %g1 = dyna.bias_grad %dh, %g : tensor<?x64xf32>, tensor<64xf32>
  %g2 = dyna.bias_grad %dh, %g1 : tensor<?x64xf32>, tensor<64xf32>
  dyna.return %dh, %g2 : tensor<?x64xf32>, tensor<64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Positions need no operand with rows.
// CHECK-LABEL: dyna.function @embedding
// CHECK:         dyna.embedding
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.positions
// CHECK-NEXT:      dyna.add
// CHECK-NEXT:      dyna.yield
dyna.function @embedding of @l as forward(%ids: tensor<?xi32> in <input>, %e: tensor<257x64xf32> in <parameter>, %p: tensor<128x64xf32> in <parameter, index = 1>, %s: !dyna.segments in <segments>) -> (tensor<?x64xf32> in <output>) {
  %0 = dyna.embedding %ids, %e : tensor<?xi32>, tensor<257x64xf32>
  %1 = dyna.positions %p, %s : tensor<128x64xf32>
  %2 = dyna.add %0, %1 : tensor<?x64xf32>
  dyna.return %2 : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
