// RUN: dyna-opt %s -dyna-differentiate -mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,F32
// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 -dyna-differentiate -mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,BF16

// The optimizer's functions: decay as the parameters say; under bf16 the masters
// are f32, and their copies are written by update and by cast.

// CHECK-LABEL: dyna.function @norm.update of @norm as update
// CHECK-SAME:    (%[[G0:[a-z0-9_]+]]: tensor<8xf32> in <gradient>, %[[P0:[a-z0-9_]+]]: tensor<8xf32> in <input>, %[[M0:[a-z0-9_]+]]: tensor<8xf32> in <input, index = 1>, %[[V0:[a-z0-9_]+]]: tensor<8xf32> in <input, index = 2>,
// CHECK-SAME:    %[[G1:[a-z0-9_]+]]: tensor<8x8xf32> in <gradient, index = 1>, %[[P1:[a-z0-9_]+]]: tensor<8x8xf32> in <input, index = 3>, %[[M1:[a-z0-9_]+]]: tensor<8x8xf32> in <input, index = 4>, %[[V1:[a-z0-9_]+]]: tensor<8x8xf32> in <input, index = 5>)
// F32-SAME:      -> (tensor<8xf32> in <gradient>, tensor<8xf32> in <input>, tensor<8xf32> in <input, index = 1>, tensor<8xf32> in <input, index = 2>, tensor<8x8xf32> in <gradient, index = 1>,
// BF16-SAME:     tensor<8xf32> in <input, index = 2>, tensor<8xbf16> in <parameter>, tensor<8x8xf32> in <gradient, index = 1>,
// BF16-SAME:     tensor<8x8xf32> in <input, index = 5>, tensor<8x8xbf16> in <parameter, index = 1>) {
// CHECK-NEXT:    %[[NP0:.+]], %[[NG0:.+]], %[[NM0:.+]], %[[NV0:.+]] = dyna.adamw %[[P0]], %[[G0]], %[[M0]], %[[V0]] : tensor<8xf32>
// BF16-NEXT:     %[[C0:.+]] = dyna.cast %[[NP0]] : tensor<8xf32> -> tensor<8xbf16>
// CHECK-NEXT:    %[[NP1:.+]], %[[NG1:.+]], %[[NM1:.+]], %[[NV1:.+]] = dyna.adamw %[[P1]], %[[G1]], %[[M1]], %[[V1]] {decay}
// BF16-NEXT:     %[[C1:.+]] = dyna.cast %[[NP1]] : tensor<8x8xf32> -> tensor<8x8xbf16>
// F32-NEXT:      dyna.return %[[NG0]], %[[NP0]], %[[NM0]], %[[NV0]], %[[NG1]], %[[NP1]], %[[NM1]], %[[NV1]] :
// BF16-NEXT:     dyna.return %[[NG0]], %[[NP0]], %[[NM0]], %[[NV0]], %[[C0]], %[[NG1]], %[[NP1]], %[[NM1]], %[[NV1]], %[[C1]] :

// CHECK-LABEL: dyna.function @norm.grad_norm of @norm as grad_norm
// CHECK-SAME:    (%[[G0:[a-z0-9_]+]]: tensor<8xf32> in <gradient>, %[[G1:[a-z0-9_]+]]: tensor<8x8xf32> in <gradient, index = 1>, %[[S0:[a-z0-9_]+]]: tensor<1xf64> in <output>) -> (tensor<1xf64> in <output>) {
// CHECK-NEXT:    %[[S1:.+]] = dyna.sum_squares %[[G0]], %[[S0]]
// CHECK-NEXT:    %[[S2:.+]] = dyna.sum_squares %[[G1]], %[[S1]]
// CHECK-NEXT:    dyna.return %[[S2]]

// F32-NOT:     as cast
// BF16-LABEL:  dyna.function @norm.cast of @norm as cast
// BF16-SAME:     (%[[P0:[a-z0-9_]+]]: tensor<8xf32> in <input>, %[[P1:[a-z0-9_]+]]: tensor<8x8xf32> in <input, index = 1>) -> (tensor<8xbf16> in <parameter>, tensor<8x8xbf16> in <parameter, index = 1>) {

// A layer that no model calls has no decay.
// CHECK-LABEL: dyna.function @idle.update of @idle as update
// CHECK:         dyna.adamw
// CHECK-NOT:     {decay}
// CHECK:         dyna.return
dyna.parameter @wte : tensor<33x8xf32> normal 0.02 decay
dyna.parameter @norm.weight : tensor<8xf32> constant 1.0
dyna.parameter @norm.matrix : tensor<8x8xf32> normal 0.02 decay
dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @norm[%g: tensor<8xf32>, %w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x8xf32>, tensor<8xf32>
  %y = dyna.linear %n, %w : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
dyna.layer @head[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
dyna.layer @idle[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
dyna.model @tiny(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  %1 = dyna.call "norm" @norm[@norm.weight, @norm.matrix](%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
