// What CUDA's products take along: a bias, a bias and gelu by tanh, the gradient of that gelu. Each
// is cut out of its sweep and stands behind its product where that moves fewer bytes.

// RUN: dyna-opt %s -split-input-file --pass-pipeline='builtin.module(dyna-set-target{target=cuda},dyna.function(dyna-fuse-rows))' | FileCheck %s

// A bias whose sum leaves the sweep: query, key and value are so.
// CHECK-LABEL: dyna.function @bias
// CHECK:         %[[M:.*]] = dyna.linear %{{.*}}, %{{.*}} :
// CHECK-NEXT:    %[[Y:.*]] = dyna.rows : tensor<?x64xf32> {
// CHECK-NEXT:      dyna.bias %[[M]]
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.return %[[Y]]
dyna.function @bias of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  dyna.return %h : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Must not fire: the sum is read by the rest of its sweep alone, which has to read something.
// CHECK-LABEL: dyna.function @residual
// CHECK:         dyna.linear
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.add
// CHECK-NEXT:      dyna.yield
dyna.function @residual of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %y = dyna.add %h, %x : tensor<?x64xf32>
  dyna.return %y : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Must not fire: nor is there relu or silu, or gelu by erf.
// CHECK-LABEL: dyna.function @others
// CHECK:         dyna.linear
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.relu
// CHECK-NEXT:      dyna.yield
// CHECK:         dyna.linear
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.silu
// CHECK-NEXT:      dyna.yield
// CHECK:         dyna.linear
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.gelu %{{.*}} erf
// CHECK-NEXT:      dyna.yield
dyna.function @others of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %r = dyna.relu %h : tensor<?x64xf32>
  %i = dyna.linear %r, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %s = dyna.silu %i : tensor<?x64xf32>
  %j = dyna.linear %s, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %g = dyna.gelu %j erf : tensor<?x64xf32>
  dyna.return %g : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// A saved sum in front of a relu is the product's, so that the relu reads what is there anyway.
// CHECK-LABEL: dyna.function @saved_sum
// CHECK:         dyna.linear
// CHECK-NEXT:    %[[H:.*]] = dyna.rows
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[Y:.*]] = dyna.rows
// CHECK-NEXT:      dyna.relu %[[H]]
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.return %[[Y]], %[[H]]
dyna.function @saved_sum of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <products>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %y = dyna.relu %h : tensor<?x64xf32>
  dyna.return %y, %h : tensor<?x64xf32>, tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Bias and gelu, with what gelu is of where that is saved, and without.
// CHECK-LABEL: dyna.function @gelu_saved
// CHECK:         dyna.linear
// CHECK-NEXT:    %[[R:.*]]:2 = dyna.rows
// CHECK-NEXT:      %[[H:.*]] = dyna.bias
// CHECK-NEXT:      %[[A:.*]] = dyna.gelu %[[H]] tanh
// CHECK-NEXT:      dyna.yield %[[H]], %[[A]]
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.linear %[[R]]#1
dyna.function @gelu_saved of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <products>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %a = dyna.gelu %h tanh : tensor<?x64xf32>
  %o = dyna.linear %a, %w : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %o, %h : tensor<?x64xf32>, tensor<?x64xf32>
}
// CHECK-LABEL: dyna.function @gelu_alone
// CHECK:         dyna.linear
// CHECK-NEXT:    dyna.rows : tensor<?x64xf32> {
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.gelu
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.linear
dyna.function @gelu_alone of @l as evaluate(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %a = dyna.gelu %h tanh : tensor<?x64xf32>
  %o = dyna.linear %a, %w : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %o : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// The gradient of gelu; that of the bias is a sweep of its own, which reads what the product writes.
// CHECK-LABEL: dyna.function @gelu_grad
// CHECK-SAME:    %[[H:[^ ]*]]: tensor<?x64xf32> in <products>
// CHECK:         %[[M:.*]] = dyna.linear_grad_input
// CHECK-NEXT:    %[[D:.*]] = dyna.rows : tensor<?x64xf32> {
// CHECK-NEXT:      dyna.gelu_grad %[[H]], %[[M]] tanh
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.rows : tensor<64xf32> {
// CHECK-NEXT:      dyna.bias_grad %[[D]]
// CHECK-NEXT:      dyna.yield
dyna.function @gelu_grad of @l as backward(%d: tensor<?x64xf32> in <input>, %h: tensor<?x64xf32> in <products>, %w: tensor<64x64xf32> in <parameter>, %g: tensor<64xf32> in <gradient>) -> (tensor<?x64xf32> in <output>, tensor<64xf32> in <gradient>) {
  %m = dyna.linear_grad_input %d, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %dh = dyna.gelu_grad %h, %m tanh : tensor<?x64xf32>
  %g1 = dyna.bias_grad %dh, %g : tensor<?x64xf32>, tensor<64xf32>
  dyna.return %dh, %g1 : tensor<?x64xf32>, tensor<64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// The product moves to where what its epilogue reads is there.
// CHECK-LABEL: dyna.function @moved
// CHECK-SAME:    (%[[D:[^ ]*]]: tensor<?x64xf32> in <input>, %[[X:[^ ]*]]: {{.*}}, %{{[^ ]*}}: {{.*}})
// CHECK-NEXT:    %[[H:.*]] = dyna.linear %[[X]]
// CHECK-NEXT:    dyna.linear_grad_input %[[D]]
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.gelu_grad %[[H]]
dyna.function @moved of @l as backward(%d: tensor<?x64xf32> in <input>, %x: tensor<?x64xf32> in <saved_input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <output, index = 1>) {
  %m = dyna.linear_grad_input %d, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %h = dyna.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %dh = dyna.gelu_grad %h, %m tanh : tensor<?x64xf32>
  dyna.return %dh, %h : tensor<?x64xf32>, tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Must not fire: the product adds to another, somebody else needs it, or what gelu is of is made in
// the sweep itself.
// CHECK-LABEL: dyna.function @not_alone
// CHECK:         dyna.linear_grad_input %{{.*}} add
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.gelu_grad
// CHECK-NEXT:      dyna.bias_grad
dyna.function @not_alone of @l as backward(%d: tensor<?x64xf32> in <input>, %h: tensor<?x64xf32> in <products>, %w: tensor<64x64xf32> in <parameter>, %g: tensor<64xf32> in <gradient>) -> (tensor<?x64xf32> in <output>, tensor<64xf32> in <gradient>) {
  %z = dyna.linear_grad_input %h, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %m = dyna.linear_grad_input %d, %w add %z : tensor<?x64xf32>, tensor<64x64xf32>, tensor<?x64xf32>
  %dh = dyna.gelu_grad %h, %m tanh : tensor<?x64xf32>
  %g1 = dyna.bias_grad %dh, %g : tensor<?x64xf32>, tensor<64xf32>
  dyna.return %dh, %g1 : tensor<?x64xf32>, tensor<64xf32>
}
// CHECK-LABEL: dyna.function @used_twice
// CHECK:         dyna.linear_grad_input
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.gelu_grad
// CHECK-NEXT:      dyna.bias_grad
dyna.function @used_twice of @l as backward(%d: tensor<?x64xf32> in <input>, %h: tensor<?x64xf32> in <products>, %w: tensor<64x64xf32> in <parameter>, %g: tensor<64xf32> in <gradient>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <output, index = 1>, tensor<64xf32> in <gradient>) {
  %m = dyna.linear_grad_input %d, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %dh = dyna.gelu_grad %h, %m tanh : tensor<?x64xf32>
  %g1 = dyna.bias_grad %dh, %g : tensor<?x64xf32>, tensor<64xf32>
  dyna.return %dh, %m, %g1 : tensor<?x64xf32>, tensor<?x64xf32>, tensor<64xf32>
}
// CHECK-LABEL: dyna.function @remade
// CHECK:         dyna.linear_grad_input
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.gelu_grad
// CHECK-NEXT:      dyna.yield
dyna.function @remade of @l as backward(%d: tensor<?x64xf32> in <input>, %h: tensor<?x64xf32> in <products>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>) {
  %m = dyna.linear_grad_input %d, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %s = dyna.bias %h, %b : tensor<?x64xf32>, tensor<64xf32>
  %dh = dyna.gelu_grad %s, %m tanh : tensor<?x64xf32>
  dyna.return %dh : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Must not fire: rows of what gelu is of are no whole groups of eight. A bias may be so.
// CHECK-LABEL: dyna.function @odd_width
// CHECK:         dyna.linear_grad_input
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.gelu_grad
// CHECK-NEXT:      dyna.bias_grad
dyna.function @odd_width of @l as backward(%d: tensor<?x64xf32> in <input>, %h: tensor<?x60xf32> in <products>, %w: tensor<64x60xf32> in <parameter>, %g: tensor<60xf32> in <gradient>) -> (tensor<?x60xf32> in <output>, tensor<60xf32> in <gradient>) {
  %m = dyna.linear_grad_input %d, %w : tensor<?x64xf32>, tensor<64x60xf32>
  %dh = dyna.gelu_grad %h, %m tanh : tensor<?x60xf32>
  %g1 = dyna.bias_grad %dh, %g : tensor<?x60xf32>, tensor<60xf32>
  dyna.return %dh, %g1 : tensor<?x60xf32>, tensor<60xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Must not fire: the library has nothing of it in f64.
// CHECK-LABEL: dyna.function @f64
// CHECK:         dyna.linear_grad_input
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.gelu_grad
// CHECK-NEXT:      dyna.bias_grad
dyna.function @f64 of @l as backward(%d: tensor<?x64xf64> in <input>, %h: tensor<?x64xf64> in <products>, %w: tensor<64x64xf64> in <parameter>, %g: tensor<64xf64> in <gradient>) -> (tensor<?x64xf64> in <output>, tensor<64xf64> in <gradient>) {
  %m = dyna.linear_grad_input %d, %w : tensor<?x64xf64>, tensor<64x64xf64>
  %dh = dyna.gelu_grad %h, %m tanh : tensor<?x64xf64>
  %g1 = dyna.bias_grad %dh, %g : tensor<?x64xf64>, tensor<64xf64>
  dyna.return %dh, %g1 : tensor<?x64xf64>, tensor<64xf64>
}
dyna.layer @l(%x: tensor<?x64xf64>) -> tensor<?x64xf64> {
  dyna.return %x : tensor<?x64xf64>
}

// -----

// What the rest of a sweep does with the gelu, it reads from memory: nothing is saved by handing it
// over, but something by handing over the sum that is saved.
// CHECK-LABEL: dyna.function @gelu_and_more
// CHECK:         dyna.linear
// CHECK-NEXT:    %[[H:.*]] = dyna.rows : tensor<?x64xf32> {
// CHECK-NEXT:      dyna.bias
// CHECK-NEXT:      dyna.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.rows : tensor<?x64xf32> {
// CHECK-NEXT:      dyna.gelu %[[H]]
// CHECK-NEXT:      dyna.mul
// CHECK-NEXT:      dyna.yield
dyna.function @gelu_and_more of @l as forward(%x: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>, %b: tensor<64xf32> in <parameter, index = 1>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <products>) {
  %h = dyna.linear %x, %w, %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
  %a = dyna.gelu %h tanh : tensor<?x64xf32>
  %y = dyna.mul %a, %x : tensor<?x64xf32>
  dyna.return %y, %h : tensor<?x64xf32>, tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
