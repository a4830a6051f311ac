// RUN: dyna-opt %s -split-input-file --pass-pipeline='builtin.module(dyna.function(dyna-fuse-rows,dyna-join-products),dyna-plan-memory,dyna-verify-memory)' | FileCheck %s

// Two products of one x by neighbouring matrices, a bias between them in the
// list: they follow each other, their sweeps are one behind the last, and their
// rows lie side by side in the tier.
// CHECK-LABEL: dyna.function @joined.forward
// CHECK:         %[[Q:.*]] = dyna.linear %{{.*}}, %wq {places = [#dyna.place<products, stride = 192>]}
// CHECK-NEXT:    %[[K:.*]] = dyna.linear %{{.*}}, %wk {places = [#dyna.place<products, column = 64, stride = 192>]}
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.gelu %[[K]]
// CHECK:         } {places = [#dyna.place<products, column = 64, stride = 192>]}
// CHECK-NEXT:    dyna.rows
// CHECK-NEXT:      dyna.bias %[[Q]], %b
// CHECK:         } {places = [#dyna.place<products, stride = 192>]}
dyna.layer @joined[%wq: tensor<16x64xf32>, %b: tensor<16xf32>, %wk: tensor<32x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @joined.forward of @joined as forward(%wq: tensor<16x64xf32> in <parameter>, %b: tensor<16xf32> in <parameter, index = 1>, %wk: tensor<32x64xf32> in <parameter, index = 2>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x16xf32> in <products>, tensor<?x32xf32> in <products>) {
  %q = dyna.linear %x, %wq, %b : tensor<?x64xf32>, tensor<16x64xf32>, tensor<16xf32>
  %k = dyna.linear %x, %wk : tensor<?x64xf32>, tensor<32x64xf32>
  %g = dyna.gelu %k tanh : tensor<?x32xf32>
  dyna.return %q, %g : tensor<?x16xf32>, tensor<?x32xf32>
}
// Who finds them there goes by the same stride.
// CHECK-LABEL: dyna.function @joined.backward
// CHECK-SAME:    tensor<?x16xf32> in <products, stride = 192>, %{{.*}}: tensor<?x32xf32> in <products, column = 64, stride = 192>
// The gradients lie side by side in workspace; weights' gradients, then the
// chain of sums.
// CHECK:         dyna.rows
// CHECK:         } {places = [#dyna.place<workspace, stride = 192>]}
// CHECK:         } {places = [#dyna.place<workspace, column = 64, stride = 192>]}
// CHECK-NEXT:    dyna.linear_grad_weight %{{.*}}, %x, %dwq
// CHECK-NEXT:    dyna.linear_grad_weight %{{.*}}, %x, %dwk
// CHECK-NEXT:    %[[D:.*]] = dyna.linear_grad_input %{{.*}}, %wq {places = [#dyna.place<output>]}
// CHECK-NEXT:    dyna.linear_grad_input %{{.*}}, %wk add %[[D]] {places = [#dyna.place<output>]}
dyna.function @joined.backward of @joined as backward(%wq: tensor<16x64xf32> in <parameter>, %wk: tensor<32x64xf32> in <parameter, index = 2>, %dwq: tensor<16x64xf32> in <gradient>, %dwk: tensor<32x64xf32> in <gradient, index = 2>, %x: tensor<?x64xf32> in <saved_input>, %q: tensor<?x16xf32> in <products>, %k: tensor<?x32xf32> in <products>) -> (tensor<?x64xf32> in <output>, tensor<16x64xf32> in <gradient>, tensor<32x64xf32> in <gradient, index = 2>) {
  %dq = dyna.relu %q : tensor<?x16xf32>
  %0 = dyna.linear_grad_weight %dq, %x, %dwq : tensor<?x16xf32>, tensor<?x64xf32>, tensor<16x64xf32>
  %1 = dyna.linear_grad_input %dq, %wq : tensor<?x16xf32>, tensor<16x64xf32>
  %dk = dyna.relu %k : tensor<?x32xf32>
  %2 = dyna.linear_grad_weight %dk, %x, %dwk : tensor<?x32xf32>, tensor<?x64xf32>, tensor<32x64xf32>
  %3 = dyna.linear_grad_input %dk, %wk add %1 : tensor<?x32xf32>, tensor<32x64xf32>, tensor<?x64xf32>
  dyna.return %3, %0, %2 : tensor<?x64xf32>, tensor<16x64xf32>, tensor<32x64xf32>
}

// -----

// Not joined: another matrix lies between the two.
// CHECK-LABEL: dyna.function @between.evaluate
// CHECK-NOT:     stride =
dyna.layer @between[%wq: tensor<16x64xf32>, %o: tensor<64x64xf32>, %wk: tensor<16x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x16xf32> {
  %q = dyna.linear %x, %wq : tensor<?x64xf32>, tensor<16x64xf32>
  dyna.return %q : tensor<?x16xf32>
}
dyna.function @between.evaluate of @between as evaluate(%wq: tensor<16x64xf32> in <parameter>, %o: tensor<64x64xf32> in <parameter, index = 1>, %wk: tensor<16x64xf32> in <parameter, index = 2>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x16xf32> in <output>) {
  %q = dyna.linear %x, %wq : tensor<?x64xf32>, tensor<16x64xf32>
  %k = dyna.linear %x, %wk : tensor<?x64xf32>, tensor<16x64xf32>
  %s = dyna.mul %q, %k : tensor<?x16xf32>
  dyna.return %s : tensor<?x16xf32>
}

// -----

// Not joined: products of two different values.
// CHECK-LABEL: dyna.function @apart.evaluate
// CHECK-NOT:     stride =
dyna.layer @apart[%wq: tensor<64x64xf32>, %wk: tensor<64x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @apart.evaluate of @apart as evaluate(%wq: tensor<64x64xf32> in <parameter>, %wk: tensor<64x64xf32> in <parameter, index = 1>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>) {
  %q = dyna.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32>
  %k = dyna.linear %q, %wk : tensor<?x64xf32>, tensor<64x64xf32>
  %s = dyna.mul %q, %k : tensor<?x64xf32>
  dyna.return %s : tensor<?x64xf32>
}

// -----

// Not joined: rows of 48 bytes would put what is behind them out of alignment.
// CHECK-LABEL: dyna.function @narrow.evaluate
// CHECK-NOT:     stride =
dyna.layer @narrow[%wq: tensor<12x64xf32>, %wk: tensor<12x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @narrow.evaluate of @narrow as evaluate(%wq: tensor<12x64xf32> in <parameter>, %wk: tensor<12x64xf32> in <parameter, index = 1>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x12xf32> in <output>) {
  %q = dyna.linear %x, %wq : tensor<?x64xf32>, tensor<12x64xf32>
  %k = dyna.linear %x, %wk : tensor<?x64xf32>, tensor<12x64xf32>
  %s = dyna.mul %q, %k : tensor<?x12xf32>
  dyna.return %s : tensor<?x12xf32>
}

// -----

// Brought together, but not side by side: each has a place of its own to go to.
// CHECK-LABEL: dyna.function @handed_out.evaluate
// CHECK:         dyna.linear
// CHECK-NEXT:    dyna.linear
// CHECK-NOT:     stride =
dyna.layer @handed_out[%wq: tensor<64x64xf32>, %wk: tensor<64x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
dyna.function @handed_out.evaluate of @handed_out as evaluate(%wq: tensor<64x64xf32> in <parameter>, %wk: tensor<64x64xf32> in <parameter, index = 1>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <output, index = 1>) {
  %q = dyna.linear %x, %wq : tensor<?x64xf32>, tensor<64x64xf32>
  %k = dyna.linear %x, %wk : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %q, %k : tensor<?x64xf32>, tensor<?x64xf32>
}
