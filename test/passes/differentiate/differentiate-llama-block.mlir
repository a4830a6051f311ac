// RUN: dyna-opt %s -dyna-differentiate -mlir-print-local-scope | FileCheck %s
// RUN: dyna-opt %s -dyna-differentiate | dyna-opt -dyna-verify-differentiated -o /dev/null

// A LLaMA-like block: grouped key/value heads, rotary positions, SwiGLU.

// Rotary results stand for the products q and k, which nobody else reads. The
// gate's silu is in no tier: a sweep of backward makes it again.
// CHECK-LABEL: dyna.function @block.forward of @block as forward
// CHECK-SAME:    -> (tensor<?x16xf32> in <output>,
// CHECK-SAME:    tensor<?x4xf32> in <products>, tensor<?x16xf32> in <products>, tensor<?x4xf32> in <products>, tensor<?x16xf32> in <products>, tensor<?x4xf32> in <products>,
// CHECK-SAME:    tensor<?x16xf32> in <products>, tensor<?x40xf32> in <products>, tensor<?x40xf32> in <products>,
// CHECK-SAME:    tensor<?x16xf32> in <elementwise>, tensor<?x16xf32> in <elementwise>, tensor<?x40xf32> in <elementwise>) {
// CHECK:         %[[N1:.+]] = dyna.rms_norm
// CHECK:         %[[Q:.+]] = dyna.linear
// CHECK:         %[[K:.+]] = dyna.linear
// CHECK:         %[[V:.+]] = dyna.linear
// CHECK:         %[[QR:.+]] = dyna.rotary %[[Q]]
// CHECK:         %[[KR:.+]] = dyna.rotary %[[K]]
// CHECK:         %[[O:.+]], %[[LSE:.+]] = dyna.attention %[[QR]], %[[KR]], %[[V]]
// CHECK:         %[[P:.+]] = dyna.linear %[[O]]
// CHECK:         %[[R:.+]] = dyna.add %{{.*}}, %[[P]]
// CHECK:         %[[N2:.+]] = dyna.rms_norm %[[R]]
// CHECK:         %[[GATE:.+]] = dyna.linear %[[N2]]
// CHECK:         %[[UP:.+]] = dyna.linear %[[N2]]
// CHECK:         %[[SILU:.+]] = dyna.silu %[[GATE]]
// CHECK:         %[[M:.+]] = dyna.mul %[[SILU]], %[[UP]]
// CHECK:         dyna.return %{{.*}}, %[[V]], %[[QR]], %[[KR]], %[[O]], %[[LSE]], %[[R]], %[[GATE]], %[[UP]], %[[N1]], %[[N2]], %[[M]] :

// CHECK-LABEL: dyna.function @block.recompute_selective
// CHECK-NOT:     dyna.linear
// CHECK-NOT:     dyna.rotary
// CHECK:         dyna.silu
// CHECK-NEXT:    dyna.mul
// CHECK-NEXT:    dyna.return

// CHECK-LABEL: dyna.function @block.backward of @block as backward
// CHECK-SAME:    %[[GATE:[a-z0-9_]+]]: tensor<?x40xf32> in <products>, %[[UP:[a-z0-9_]+]]: tensor<?x40xf32> in <products>
// CHECK:         %[[DM:.+]] = dyna.linear_grad_input
// CHECK-NEXT:    %[[DSILU:.+]] = dyna.mul %[[DM]], %[[UP]]
// CHECK-NEXT:    %[[SILU:.+]] = dyna.silu %[[GATE]]
// CHECK-NEXT:    %[[DUP:.+]] = dyna.mul %[[DM]], %[[SILU]]
// CHECK-NEXT:    %[[DGATE:.+]] = dyna.silu_grad %[[GATE]], %[[DSILU]]
// CHECK-NEXT:    dyna.linear_grad_weight %[[DUP]]
// CHECK:         dyna.linear_grad_weight %[[DGATE]]
// CHECK:         %[[DQR:.+]], %[[DKR:.+]], %[[DV:.+]] = dyna.attention_grad {{.*}}heads = 4 : i64, kv_heads = 1 : i64
// CHECK:         %[[DK:.+]] = dyna.rotary %[[DKR]], %{{.*}} {head_dim = 4 : i64, inverse, theta = 1.000000e+04 : f64}
// CHECK:         %[[DQ:.+]] = dyna.rotary %[[DQR]], %{{.*}} {head_dim = 4 : i64, inverse, theta = 1.000000e+04 : f64}
// CHECK:         dyna.linear_grad_weight %[[DK]]
// CHECK:         dyna.linear_grad_weight %[[DQ]]

// The repeated silu stands in the input half, not in the weight half.
// CHECK-LABEL: dyna.function @block.backward_input
// CHECK:         dyna.silu %
// CHECK-LABEL: dyna.function @block.backward_weight
// CHECK-NOT:     dyna.silu
// CHECK:         dyna.return
dyna.layer @block[
    %g1: tensor<16xf32>, %wq: tensor<16x16xf32>, %wk: tensor<4x16xf32>, %wv: tensor<4x16xf32>,
    %wo: tensor<16x16xf32>, %g2: tensor<16xf32>, %wg: tensor<40x16xf32>, %wu: tensor<40x16xf32>,
    %wd: tensor<16x40xf32>](%x: tensor<?x16xf32>, %s: !dyna.segments) -> tensor<?x16xf32> {
  %n1 = dyna.rms_norm %x, %g1 {epsilon = 1.0e-6} : tensor<?x16xf32>, tensor<16xf32>
  %q = dyna.linear %n1, %wq : tensor<?x16xf32>, tensor<16x16xf32>
  %k = dyna.linear %n1, %wk : tensor<?x16xf32>, tensor<4x16xf32>
  %v = dyna.linear %n1, %wv : tensor<?x16xf32>, tensor<4x16xf32>
  %qr = dyna.rotary %q, %s {head_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<?x16xf32>
  %kr = dyna.rotary %k, %s {head_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<?x4xf32>
  %o, %lse = dyna.attention %qr, %kr, %v, %s {causal, heads = 4 : i64, kv_heads = 1 : i64, scale = 5.0e-1 : f64}
      : tensor<?x16xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %p = dyna.linear %o, %wo : tensor<?x16xf32>, tensor<16x16xf32>
  %r = dyna.add %x, %p : tensor<?x16xf32>
  %n2 = dyna.rms_norm %r, %g2 {epsilon = 1.0e-6} : tensor<?x16xf32>, tensor<16xf32>
  %gate = dyna.linear %n2, %wg : tensor<?x16xf32>, tensor<40x16xf32>
  %up = dyna.linear %n2, %wu : tensor<?x16xf32>, tensor<40x16xf32>
  %silu = dyna.silu %gate : tensor<?x40xf32>
  %m = dyna.mul %silu, %up : tensor<?x40xf32>
  %d = dyna.linear %m, %wd : tensor<?x40xf32>, tensor<16x40xf32>
  %z = dyna.add %r, %d : tensor<?x16xf32>
  dyna.return %z : tensor<?x16xf32>
}
