// RUN: dyna-opt %s -dyna-differentiate -split-input-file -mlir-print-local-scope | FileCheck %s

// One weight used twice: both contributions go to one accumulator, one behind
// the other; and the activation used twice gets the sum of two gradients.
// CHECK-LABEL: dyna.function @twice.backward of @twice as backward
// CHECK-SAME:    %[[W:[a-z0-9_]+]]: tensor<8x8xf32> in <parameter>, %[[G0:[a-z0-9_]+]]: tensor<8x8xf32> in <gradient>, %[[X:[a-z0-9_]+]]: tensor<?x8xf32> in <saved_input>, %[[Y:[a-z0-9_]+]]: tensor<?x8xf32> in <products>, %[[DZ:[a-z0-9_]+]]: tensor<?x8xf32> in <input>)
// CHECK-NEXT:    %[[G1:.+]] = dyna.linear_grad_weight %[[DZ]], %[[Y]], %[[G0]]
// CHECK-NEXT:    %[[DY0:.+]] = dyna.linear_grad_input %[[DZ]], %[[W]]
// CHECK-NEXT:    %[[DY:.+]] = dyna.add %[[DY0]], %[[DZ]]
// CHECK-NEXT:    %[[G2:.+]] = dyna.linear_grad_weight %[[DY]], %[[X]], %[[G1]]
// CHECK-NEXT:    %[[DX:.+]] = dyna.linear_grad_input %[[DY]], %[[W]]
// CHECK-NEXT:    dyna.return %[[DX]], %[[G2]]
dyna.layer @twice[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %u = dyna.linear %y, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %z = dyna.add %y, %u : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}

// -----

// Both operands of one op are the same value.
// CHECK-LABEL: dyna.function @square.backward of @square as backward
// CHECK-SAME:    %[[X:[a-z0-9_]+]]: tensor<?x8xf32> in <saved_input>, %[[DZ:[a-z0-9_]+]]: tensor<?x8xf32> in <input>)
// CHECK-NEXT:    %[[D:.+]] = dyna.add %[[DZ]], %[[DZ]]
// CHECK-NEXT:    %[[Y:.+]] = dyna.mul
// CHECK-SAME:      %[[D]], %[[X]]
// CHECK-NEXT:    %[[DX:.+]] = dyna.add %[[Y]], %[[Y]]
// CHECK-NEXT:    dyna.return %[[DX]]
dyna.layer @square(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.mul %x, %x : tensor<?x8xf32>
  %z = dyna.add %y, %y : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}

// -----

// An unused parameter keeps its gradient. Dead ops and what is computed twice
// are in no function, and do not count as uses.
// CHECK-LABEL: dyna.function @unused.forward of @unused as forward
// CHECK:         dyna.linear
// CHECK-NOT:     dyna.linear
// CHECK:         dyna.return
// CHECK-LABEL: dyna.function @unused.backward of @unused as backward
// CHECK-SAME:    %{{[a-z0-9_]+}}: tensor<8x8xf32> in <gradient>, %[[G1:[a-z0-9_]+]]: tensor<8xf32> in <gradient, index = 1>
// CHECK:         %[[G0:.+]] = dyna.linear_grad_weight
// CHECK-NOT:     dyna.linear_grad_weight
// CHECK-NOT:     dyna.bias_grad
// CHECK:         dyna.return %{{.*}}, %[[G0]], %[[G1]]
dyna.layer @unused[%w: tensor<8x8xf32>, %b: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %dead = dyna.bias %x, %b : tensor<?x8xf32>, tensor<8xf32>
  %y = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %same = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %z = dyna.add %y, %same : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}
