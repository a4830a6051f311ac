// RUN: dyna-opt %s -dyna-differentiate -mlir-print-local-scope | FileCheck %s
// RUN: dyna-opt %s -dyna-differentiate | dyna-opt -dyna-verify-differentiated -o /dev/null

// A GPT-2-like block: every value that backward reads lies in one tier. The sum
// of the residual stream and an unsaved product is kept like a product.

// Evaluation knows no dropout.
// CHECK-LABEL: dyna.function @block.evaluate of @block as evaluate
// CHECK-SAME:    %[[X:[a-z0-9_]+]]: tensor<?x8xf32> in <input>
// CHECK-SAME:    %[[S:[a-z0-9_]+]]: !dyna.segments in <segments>) -> (tensor<?x8xf32> in <output>)
// CHECK-NOT:     dyna.dropout
// CHECK:         dyna.return

// Products: q, k, v, the attention's results, the residual sum, the hidden
// layer. Element-wise: both norms and gelu.
// CHECK-LABEL: dyna.function @block.forward of @block as forward
// CHECK-SAME:    %[[X:[a-z0-9_]+]]: tensor<?x8xf32> in <input>, %[[S:[a-z0-9_]+]]: !dyna.segments in <segments>)
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>,
// CHECK-SAME:    tensor<?x8xf32> in <products>, tensor<?x8xf32> in <products>, tensor<?x8xf32> in <products>,
// CHECK-SAME:    tensor<?x8xf32> in <products>, tensor<?x2xf32> in <products>, tensor<?x8xf32> in <products>, tensor<?x32xf32> in <products>,
// CHECK-SAME:    tensor<?x8xf32> in <elementwise>, tensor<?x8xf32> in <elementwise>, tensor<?x32xf32> in <elementwise>) {
// CHECK:         %[[N1:.+]] = dyna.layer_norm %[[X]]
// CHECK:         %[[Q:.+]] = dyna.linear %[[N1]]
// CHECK:         %[[K:.+]] = dyna.linear %[[N1]]
// CHECK:         %[[V:.+]] = dyna.linear %[[N1]]
// CHECK:         %[[O:.+]], %[[LSE:.+]] = dyna.attention %[[Q]], %[[K]], %[[V]], %[[S]]
// CHECK:         %[[P:.+]] = dyna.linear %[[O]]
// CHECK:         %[[D:.+]] = dyna.dropout %[[P]]
// CHECK:         %[[R:.+]] = dyna.add %[[X]], %[[D]]
// CHECK:         %[[N2:.+]] = dyna.layer_norm %[[R]]
// CHECK:         %[[H:.+]] = dyna.linear %[[N2]]
// CHECK:         %[[A:.+]] = dyna.gelu %[[H]]
// CHECK:         %[[M:.+]] = dyna.linear %[[A]]
// CHECK:         %[[Z:.+]] = dyna.add %[[R]], %[[M]]
// CHECK:         dyna.return %[[Z]], %[[Q]], %[[K]], %[[V]], %[[O]], %[[LSE]], %[[R]], %[[H]], %[[N1]], %[[N2]], %[[A]] :

// CHECK-LABEL: dyna.function @block.recompute_selective of @block as recompute_selective
// CHECK-SAME:    %[[X:[a-z0-9_]+]]: tensor<?x8xf32> in <saved_input>
// CHECK-SAME:    %[[R:[a-z0-9_]+]]: tensor<?x8xf32> in <products>, %[[H:[a-z0-9_]+]]: tensor<?x32xf32> in <products>)
// CHECK-SAME:    -> (tensor<?x8xf32> in <elementwise>, tensor<?x8xf32> in <elementwise>, tensor<?x32xf32> in <elementwise>) {
// CHECK-NEXT:    %[[N1:.+]] = dyna.layer_norm %[[X]]
// CHECK-NEXT:    %[[N2:.+]] = dyna.layer_norm %[[R]]
// CHECK-NEXT:    %[[A:.+]] = dyna.gelu %[[H]]
// CHECK-NEXT:    dyna.return %[[N1]], %[[N2]], %[[A]]

// Full recomputation skips the last product: four linears in, one out, one up.
// CHECK-LABEL: dyna.function @block.recompute_full of @block as recompute_full
// CHECK-COUNT-5: dyna.linear
// CHECK-NOT:     dyna.linear
// CHECK:         dyna.return

// Each dy is used for the weights first; the input's gradient comes last.
// CHECK-LABEL: dyna.function @block.backward of @block as backward
// CHECK-SAME:    %[[G_G1:[a-z0-9_]+]]: tensor<8xf32> in <gradient>, %[[G_B1:[a-z0-9_]+]]: tensor<8xf32> in <gradient, index = 1>, %[[G_WQ:[a-z0-9_]+]]: tensor<8x8xf32> in <gradient, index = 2>
// CHECK-SAME:    %[[G_WU:[a-z0-9_]+]]: tensor<32x8xf32> in <gradient, index = 12>, %[[G_BU:[a-z0-9_]+]]: tensor<32xf32> in <gradient, index = 13>, %[[G_WD:[a-z0-9_]+]]: tensor<8x32xf32> in <gradient, index = 14>, %[[G_BD:[a-z0-9_]+]]: tensor<8xf32> in <gradient, index = 15>
// CHECK-SAME:    %[[S:[a-z0-9_]+]]: !dyna.segments in <segments>, %[[X:[a-z0-9_]+]]: tensor<?x8xf32> in <saved_input>
// CHECK-SAME:    %[[R:[a-z0-9_]+]]: tensor<?x8xf32> in <products>, %[[H:[a-z0-9_]+]]: tensor<?x32xf32> in <products>, %[[N1:[a-z0-9_]+]]: tensor<?x8xf32> in <elementwise>, %[[N2:[a-z0-9_]+]]: tensor<?x8xf32> in <elementwise>, %[[A:[a-z0-9_]+]]: tensor<?x32xf32> in <elementwise>, %[[DZ:[a-z0-9_]+]]: tensor<?x8xf32> in <input>)
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>, tensor<8xf32> in <gradient>, tensor<8xf32> in <gradient, index = 1>
// CHECK:         %[[BD:.+]] = dyna.bias_grad %[[DZ]], %[[G_BD]]
// CHECK-NEXT:    %[[WD:.+]] = dyna.linear_grad_weight %[[DZ]], %[[A]], %[[G_WD]]
// CHECK-NEXT:    %[[DA:.+]] = dyna.linear_grad_input %[[DZ]], %{{.*}} : tensor<?x8xf32>, tensor<8x32xf32>
// CHECK-NEXT:    %[[DH:.+]] = dyna.gelu_grad %[[H]], %[[DA]]
// CHECK-NEXT:    %[[BU:.+]] = dyna.bias_grad %[[DH]], %[[G_BU]]
// CHECK-NEXT:    %[[WU:.+]] = dyna.linear_grad_weight %[[DH]], %[[N2]], %[[G_WU]]
// CHECK-NEXT:    %[[DN2:.+]] = dyna.linear_grad_input %[[DH]]
// CHECK-NEXT:    dyna.layer_norm_grad_weight %[[R]], %[[DN2]]
// CHECK-NEXT:    %[[DR1:.+]] = dyna.layer_norm_grad_input %[[R]], %{{.*}}, %[[DN2]]
// CHECK-NEXT:    %[[DR:.+]] = dyna.add %[[DR1]], %[[DZ]]
// CHECK-NEXT:    %[[DP:.+]] = dyna.dropout %[[DR]], %[[S]] {instance = 0 : i64, probability = 1.000000e-01 : f64}
// CHECK:         dyna.linear_grad_weight %[[DP]]
// CHECK:         %[[DO:.+]] = dyna.linear_grad_input %[[DP]]
// CHECK-NEXT:    %[[DQ:.+]], %[[DK:.+]], %[[DV:.+]] = dyna.attention_grad {{.*}}, %[[DO]], %[[S]] {causal, heads = 2 : i64
// CHECK:         dyna.linear_grad_weight %[[DV]], %[[N1]]
// CHECK:         %[[FROM_V:.+]] = dyna.linear_grad_input %[[DV]]
// CHECK:         %[[FROM_K:.+]] = dyna.linear_grad_input %[[DK]]
// CHECK-NEXT:    %[[FROM_KV:.+]] = dyna.add %[[FROM_K]], %[[FROM_V]]
// CHECK:         %[[WQ:.+]] = dyna.linear_grad_weight %[[DQ]], %[[N1]], %[[G_WQ]]
// CHECK-NEXT:    %[[FROM_Q:.+]] = dyna.linear_grad_input %[[DQ]]
// CHECK-NEXT:    %[[DN1:.+]] = dyna.add %[[FROM_Q]], %[[FROM_KV]]
// CHECK-NEXT:    %[[G1:.+]], %[[B1:.+]] = dyna.layer_norm_grad_weight %[[X]], %[[DN1]], %[[G_G1]], %[[G_B1]]
// CHECK-NEXT:    %[[DX1:.+]] = dyna.layer_norm_grad_input %[[X]]
// CHECK-NEXT:    %[[DX:.+]] = dyna.add %[[DX1]], %[[DR]]
// CHECK-NEXT:    dyna.return %[[DX]], %[[G1]], %[[B1]], %[[WQ]], {{.*}}, %[[WU]], %[[BU]], %[[WD]], %[[BD]] :

// The input half touches no gradient of a parameter, and leaves behind one
// gradient per weight: dz itself (copied), dh, dn2, dp, dv, dk, dq, dn1.
// CHECK-LABEL: dyna.function @block.backward_input of @block as backward_input
// CHECK-NOT:     in <gradient
// CHECK-SAME:    %[[DZ:[a-z0-9_]+]]: tensor<?x8xf32> in <input>)
// CHECK-SAME:    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <deferred>, tensor<?x32xf32> in <deferred>, tensor<?x8xf32> in <deferred>, tensor<?x8xf32> in <deferred>, tensor<?x8xf32> in <deferred>, tensor<?x8xf32> in <deferred>, tensor<?x8xf32> in <deferred>, tensor<?x8xf32> in <deferred>) {
// CHECK-NOT:     grad_weight
// CHECK-NOT:     bias_grad
// CHECK:         dyna.return %{{.*}}, %[[DZ]],

// CHECK-LABEL: dyna.function @block.backward_weight of @block as backward_weight
// CHECK-SAME:    %[[DZ:[a-z0-9_]+]]: tensor<?x8xf32> in <deferred>, %[[DH:[a-z0-9_]+]]: tensor<?x32xf32> in <deferred>
// CHECK-NOT:     grad_input
// CHECK-NOT:     attention_grad
// CHECK:         dyna.bias_grad %[[DZ]]
// CHECK:         dyna.linear_grad_weight %[[DH]]
// CHECK-NOT:     grad_input
// CHECK:         dyna.return
dyna.layer @block[
    %g1: tensor<8xf32>, %b1: tensor<8xf32>, %wq: tensor<8x8xf32>, %bq: tensor<8xf32>, %wk: tensor<8x8xf32>,
    %bk: tensor<8xf32>, %wv: tensor<8x8xf32>, %bv: tensor<8xf32>, %wo: tensor<8x8xf32>, %bo: tensor<8xf32>,
    %g2: tensor<8xf32>, %b2: tensor<8xf32>, %wu: tensor<32x8xf32>, %bu: tensor<32xf32>, %wd: tensor<8x32xf32>,
    %bd: tensor<8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %n1 = dyna.layer_norm %x, %g1, %b1 {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  %q = dyna.linear %n1, %wq, %bq : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32>
  %k = dyna.linear %n1, %wk, %bk : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32>
  %v = dyna.linear %n1, %wv, %bv : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32>
  %o, %lse = dyna.attention %q, %k, %v, %s {causal, heads = 2 : i64, kv_heads = 2 : i64, scale = 5.0e-1 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  %p = dyna.linear %o, %wo, %bo : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32>
  %pd = dyna.dropout %p, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  %r = dyna.add %x, %pd : tensor<?x8xf32>
  %n2 = dyna.layer_norm %r, %g2, %b2 {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  %h = dyna.linear %n2, %wu, %bu : tensor<?x8xf32>, tensor<32x8xf32>, tensor<32xf32>
  %a = dyna.gelu %h tanh : tensor<?x32xf32>
  %m = dyna.linear %a, %wd, %bd : tensor<?x32xf32>, tensor<8x32xf32>, tensor<8xf32>
  %z = dyna.add %r, %m : tensor<?x8xf32>
  dyna.return %z : tensor<?x8xf32>
}
