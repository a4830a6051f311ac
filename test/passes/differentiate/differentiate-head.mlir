// RUN: dyna-opt %s -dyna-differentiate -split-input-file -mlir-print-local-scope | FileCheck %s

// Forward makes the gradients of the loss; backward starts from the saved d_x.
// It takes no gradient from outside, and there is nothing to recompute.

// CHECK-LABEL: dyna.function @head.evaluate
// CHECK:         dyna.linear_cross_entropy %
// CHECK-LABEL: dyna.function @head.forward of @head as forward
// CHECK-SAME:    %[[W:[a-z0-9_]+]]: tensor<33x8xf32> in <parameter, index = 1>, %[[G:[a-z0-9_]+]]: tensor<33x8xf32> in <gradient, index = 1>, %[[X:[a-z0-9_]+]]: tensor<?x8xf32> in <input>, %[[T:[a-z0-9_]+]]: tensor<?xi32> in <input, index = 1>)
// CHECK-SAME:    -> (tensor<1xf64> in <output>, tensor<33x8xf32> in <gradient, index = 1>, tensor<?x8xf32> in <products>) {
// CHECK:         %[[N:.+]] = dyna.rms_norm %[[X]]
// CHECK:         %[[LOSS:.+]], %[[DX:.+]], %[[GW:.+]] = dyna.linear_cross_entropy_train %[[N]], %[[W]], %[[T]], %[[G]] {ignore_index = -100 : i64}
// CHECK:         dyna.return %[[LOSS]], %[[GW]], %[[DX]]
// CHECK-NOT:   recompute
// CHECK-LABEL: dyna.function @head.backward of @head as backward
// CHECK-SAME:    %[[G0:[a-z0-9_]+]]: tensor<8xf32> in <gradient>, %[[G1:[a-z0-9_]+]]: tensor<33x8xf32> in <gradient, index = 1>, %[[X:[a-z0-9_]+]]: tensor<?x8xf32> in <saved_input>, %[[DN:[a-z0-9_]+]]: tensor<?x8xf32> in <products>)
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>, tensor<8xf32> in <gradient>, tensor<33x8xf32> in <gradient, index = 1>) {
// CHECK-NEXT:    %[[GG:.+]] = dyna.rms_norm_grad_weight %[[X]], %[[DN]], %[[G0]]
// CHECK-NEXT:    %[[DX:.+]] = dyna.rms_norm_grad_input %[[X]], %{{.*}}, %[[DN]]
// CHECK-NEXT:    dyna.return %[[DX]], %[[GG]], %[[G1]]

// The saved d_x is all that the weight half needs: nothing is deferred.
// CHECK-LABEL: dyna.function @head.backward_input
// CHECK-NOT:     deferred
// CHECK-LABEL: dyna.function @head.backward_weight
// CHECK:         dyna.rms_norm_grad_weight
// CHECK-NEXT:    dyna.return
dyna.layer @head[%g: tensor<8xf32>, %w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x8xf32>, tensor<8xf32>
  %loss = dyna.linear_cross_entropy %n, %w, %targets {ignore_index = -100 : i64} : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

// -----

// A head without anything else hands over what forward made.
// CHECK-LABEL: dyna.function @bare.backward of @bare as backward
// CHECK-SAME:    %[[G:[a-z0-9_]+]]: tensor<33x8xf32> in <gradient>
// CHECK-SAME:    %[[DX:[a-z0-9_]+]]: tensor<?x8xf32> in <products>)
// CHECK-NEXT:    dyna.return %[[DX]], %[[G]]
dyna.layer @bare[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

// -----

// A whole model in one layer, tied: forward adds the head's part to the one
// accumulator, backward the table's.
// CHECK-LABEL: dyna.function @tied.forward of @tied as forward
// CHECK-SAME:    %[[G:[a-z0-9_]+]]: tensor<33x8xf32> in <gradient>
// CHECK:         %[[LOSS:.+]], %[[DX:.+]], %[[G1:.+]] = dyna.linear_cross_entropy_train
// CHECK:         dyna.return %[[LOSS]], %[[G1]], %[[DX]]
// CHECK-LABEL: dyna.function @tied.backward of @tied as backward
// CHECK-SAME:    %[[G1:[a-z0-9_]+]]: tensor<33x8xf32> in <gradient>, %[[IDS:[a-z0-9_]+]]: tensor<?xi32> in <saved_input>, %[[DX:[a-z0-9_]+]]: tensor<?x8xf32> in <products>)
// CHECK-SAME:    -> (tensor<33x8xf32> in <gradient>) {
// CHECK-NEXT:    %[[G2:.+]] = dyna.embedding_grad %[[DX]], %[[IDS]], %[[G1]]
// CHECK-NEXT:    dyna.return %[[G2]]
dyna.layer @tied[%w: tensor<33x8xf32>](%ids: tensor<?xi32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}
