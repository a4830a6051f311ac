// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 -dyna-differentiate=gradients=bf16 -mlir-print-local-scope | FileCheck %s
// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 -dyna-differentiate=gradients=f32 > %t.f32
// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 -dyna-differentiate > %t.default
// RUN: diff %t.f32 %t.default
// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 -dyna-differentiate=gradients=bf16 -dyna-memory -o %t.planned
// RUN: dyna-opt %t.planned -dyna-verify-memory -o /dev/null
// RUN: dyna-opt %t.planned --dyna-report-memory -o /dev/null | FileCheck %s --check-prefix=REPORT

// RUN: not dyna-opt %s -dyna-differentiate=gradients=bf16 2>&1 | FileCheck %s --check-prefix=F32
// F32: error: 'dyna.layer' op computes in 'f32', whose gradients are kept in 'f32', but gradients in 'bf16' are asked for; use the compute type bf16 with them
// RUN: not dyna-opt %s -dyna-convert-compute-type=type=f64 -dyna-differentiate=gradients=f32 2>&1 | FileCheck %s --check-prefix=F64
// F64: error: 'dyna.layer' op computes in 'f64', whose gradients are kept in 'f64', but gradients in 'f32' are asked for
// RUN: not dyna-opt %s -dyna-differentiate=gradients=f16 2>&1 | FileCheck %s --check-prefix=F16
// F16: error: expects gradients in f32 or bf16, but got 'f16'

// One layer whose gradients are wider than those of the others.
// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 -dyna-differentiate=gradients=bf16 | sed -e '/@norm.grad_norm of/,/^  }/s/xbf16>/xf32>/g' | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF2
// DIFF2: 'dyna.function' op expects argument 0 of type 'tensor<8xbf16>', but got 'tensor<8xf32>'

// Gradients of parameters are bf16 in every role, masters and moments f32.

// CHECK-LABEL: dyna.function @embed.backward of @embed as backward
// CHECK-SAME:    tensor<33x8xbf16> in <gradient>
// CHECK:         dyna.embedding_grad {{.*}} : tensor<?x8xbf16>, tensor<?xi32>, tensor<33x8xbf16>

// CHECK-LABEL: dyna.function @norm.backward of @norm as backward
// CHECK:         dyna.linear_grad_weight {{.*}} tensor<8x8xbf16>
// CHECK:         dyna.rms_norm_grad_weight {{.*}} : tensor<?x8xbf16>, tensor<8xbf16>

// CHECK-LABEL: dyna.function @norm.update of @norm as update
// CHECK-SAME:    (%[[G:[a-z0-9_]+]]: tensor<8xbf16> in <gradient>, %[[P:[a-z0-9_]+]]: tensor<8xf32> in <input>, %[[M:[a-z0-9_]+]]: tensor<8xf32> in <input, index = 1>, %[[V:[a-z0-9_]+]]: tensor<8xf32> in <input, index = 2>,
// CHECK-SAME:    -> (tensor<8xbf16> in <gradient>, tensor<8xf32> in <input>,
// CHECK-NEXT:    dyna.adamw %[[P]], %[[G]], %[[M]], %[[V]] : tensor<8xf32>, tensor<8xbf16>

// CHECK-LABEL: dyna.function @norm.grad_norm of @norm as grad_norm
// CHECK:         dyna.sum_squares {{.*}} : tensor<8xbf16>

// CHECK-LABEL: dyna.function @head.forward of @head as forward
// CHECK:         dyna.linear_cross_entropy_train {{.*}} : tensor<?x8xbf16>, tensor<33x8xbf16>, tensor<?xi32>, tensor<33x8xbf16>

// Every tensor in a block of its own of 64 bytes: 33x8, 8 and 8x8 elements.
// REPORT: persistent bytes: {{[0-9]+}} (parameters 768, gradients 768, masters 1408, optimizer 2816)

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
dyna.model @tiny(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  %1 = dyna.call "norm" @norm[@norm.weight, @norm.matrix](%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
