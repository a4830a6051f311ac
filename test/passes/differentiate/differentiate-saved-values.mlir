// RUN: dyna-opt %s -dyna-differentiate -split-input-file -mlir-print-local-scope | FileCheck %s

// What lies in which tier, and what sweeps of backward repeat.

// Nothing is element-wise: the tier is empty, but the function exists.
// CHECK-LABEL: dyna.function @products.forward
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>, tensor<?x16xf32> in <products>) {
// CHECK-LABEL: dyna.function @products.recompute_selective
// CHECK-SAME:    tensor<?x16xf32> in <products>) {
// CHECK-NEXT:    dyna.return{{$}}
// CHECK-LABEL: dyna.function @products.recompute_full
// CHECK-SAME:    -> (tensor<?x16xf32> in <products>) {
// CHECK-NEXT:    dyna.linear
// CHECK-NEXT:    dyna.return
dyna.layer @products[%v: tensor<16x8xf32>, %w: tensor<8x16xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.linear %x, %v : tensor<?x8xf32>, tensor<16x8xf32>
  %z = dyna.linear %y, %w : tensor<?x16xf32>, tensor<8x16xf32>
  dyna.return %z : tensor<?x8xf32>
}

// -----

// A linear op alone reads only the layer's input: nothing is saved.
// CHECK-LABEL: dyna.function @linear.forward
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>) {
dyna.layer @linear[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// A chain of cheap ops behind an unsaved product: its first saved value stands for
// the product, the rest follow from that.
// CHECK-LABEL: dyna.function @chain.forward
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <products>, tensor<?x8xf32> in <elementwise>) {
// CHECK:         %[[B:.+]] = dyna.bias
// CHECK:         %[[N:.+]] = dyna.rms_norm %[[B]]
// CHECK:         dyna.return %{{.*}}, %[[B]], %[[N]]
// CHECK-LABEL: dyna.function @chain.recompute_selective
// CHECK-SAME:    %[[B:[a-z0-9_]+]]: tensor<?x8xf32> in <products>)
// CHECK-NEXT:    dyna.rms_norm %[[B]]
// CHECK-NEXT:    dyna.return
dyna.layer @chain[%w: tensor<8x8xf32>, %b: tensor<8xf32>, %g: tensor<8xf32>, %v: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %m = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %h = dyna.bias %m, %b : tensor<?x8xf32>, tensor<8xf32>
  %n = dyna.rms_norm %h, %g {epsilon = 1.0e-6} : tensor<?x8xf32>, tensor<8xf32>
  %z = dyna.linear %n, %v : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %z : tensor<?x8xf32>
}

// -----

// gelu(g) is read by one sweep that reads g as well: repeated, not saved.
// CHECK-LABEL: dyna.function @gated.forward
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <products>, tensor<?x8xf32> in <products>) {
// CHECK-LABEL: dyna.function @gated.backward of @gated as backward
// CHECK-SAME:    %[[G:[a-z0-9_]+]]: tensor<?x8xf32> in <products>, %[[U:[a-z0-9_]+]]: tensor<?x8xf32> in <products>, %[[DZ:[a-z0-9_]+]]: tensor<?x8xf32> in <input>)
// CHECK-NEXT:    %[[DA:.+]] = dyna.mul %[[DZ]], %[[U]]
// CHECK-NEXT:    %[[A:.+]] = dyna.gelu %[[G]] erf
// CHECK-NEXT:    %[[DU:.+]] = dyna.mul %[[DZ]], %[[A]]
// CHECK-NEXT:    dyna.gelu_grad %[[G]], %[[DA]]
dyna.layer @gated[%v: tensor<8x8xf32>, %w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %g = dyna.linear %x, %v : tensor<?x8xf32>, tensor<8x8xf32>
  %u = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %a = dyna.gelu %g erf : tensor<?x8xf32>
  %z = dyna.mul %a, %u : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}

// -----

// Not repeated: a matrix product reads gelu(g), too.
// CHECK-LABEL: dyna.function @needed.forward
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <products>, tensor<?x8xf32> in <elementwise>) {
dyna.layer @needed[%v: tensor<8x8xf32>, %w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %g = dyna.linear %x, %v : tensor<?x8xf32>, tensor<8x8xf32>
  %a = dyna.gelu %g erf : tensor<?x8xf32>
  %u = dyna.linear %a, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %z = dyna.mul %a, %x : tensor<?x8xf32>
  %y = dyna.add %u, %z : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// Not repeated: a norm needs the whole row first.
// CHECK-LABEL: dyna.function @norm.forward
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <elementwise>) {
dyna.layer @norm[%g: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %n = dyna.rms_norm %x, %g {epsilon = 1.0e-6} : tensor<?x8xf32>, tensor<8xf32>
  %z = dyna.mul %n, %x : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}

// -----

// Not repeated: no sweep reads the attention's result otherwise, so repeating the
// sum would read two values for one.
// CHECK-LABEL: dyna.function @sum.forward
// CHECK:         %[[O:.+]], %[[LSE:.+]] = dyna.attention
// CHECK:         %[[R:.+]] = dyna.add %{{.*}}, %[[O]]
// CHECK:         dyna.return %{{.*}}, %[[O]], %[[LSE]], %[[R]] :
dyna.layer @sum[%g: tensor<8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %o, %lse = dyna.attention %x, %x, %x, %s {heads = 2 : i64, kv_heads = 2 : i64, scale = 5.0e-1 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  %r = dyna.add %x, %o : tensor<?x8xf32>
  %n = dyna.rms_norm %r, %g {epsilon = 1.0e-6} : tensor<?x8xf32>, tensor<8xf32>
  dyna.return %n : tensor<?x8xf32>
}
