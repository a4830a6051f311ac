// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 | FileCheck %s '-D$T=bf16'
// RUN: dyna-opt %s -dyna-convert-compute-type=type=f64 | FileCheck %s '-D$T=f64'
// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 -dyna-convert-compute-type=type=f32 > %t.back.mlir
// RUN: dyna-opt %s > %t.same.mlir
// RUN: dyna-opt %s -dyna-convert-compute-type=type=bf16 -mlir-print-op-generic | FileCheck %s --check-prefix=STAT32
// RUN: dyna-opt %s -dyna-convert-compute-type=type=f64 -mlir-print-op-generic | FileCheck %s --check-prefix=STAT64
// RUN: diff %t.back.mlir %t.same.mlir

// Everything that is computed with takes the new type; the loss and token ids do
// not, and sums have the accumulator's type.

// CHECK: dyna.parameter @wte : tensor<33x8x[[$T]]> normal 2.000000e-02 decay
dyna.parameter @wte : tensor<33x8xf32> normal 0.02 decay

// CHECK-LABEL: dyna.layer @embed
// CHECK-SAME:    tensor<33x8x[[$T]]>](%{{.*}}: tensor<?xi32>) -> tensor<?x8x[[$T]]>
dyna.layer @embed[%w: tensor<33x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %x = dyna.embedding %ids, %w : tensor<?xi32>, tensor<33x8xf32>
  dyna.return %x : tensor<?x8xf32>
}

// CHECK-LABEL: dyna.layer @mix
// STAT32:        "dyna.attention"{{.*}} -> (tensor<?x8xbf16>, tensor<?x2xf32>)
// STAT64:        "dyna.attention"{{.*}} -> (tensor<?x8xf64>, tensor<?x2xf64>)
// CHECK:         dyna.attention {{.*}} : tensor<?x8x[[$T]]>, tensor<?x8x[[$T]]>, tensor<?x8x[[$T]]>
// CHECK:         dyna.return %{{.*}} : tensor<?x8x[[$T]]>
dyna.layer @mix(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %o, %lse = dyna.attention %x, %x, %x, %s {heads = 2 : i64, kv_heads = 2 : i64, scale = 5.0e-1 : f64}
      : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  dyna.return %o : tensor<?x8xf32>
}

// CHECK-LABEL: dyna.layer @head
// CHECK-SAME:    -> tensor<1xf64>
// CHECK:         dyna.return %{{.*}} : tensor<1xf64>
dyna.layer @head[%w: tensor<33x8xf32>](%x: tensor<?x8xf32>, %targets: tensor<?xi32>) -> tensor<1xf64> {
  %loss = dyna.linear_cross_entropy %x, %w, %targets : tensor<?x8xf32>, tensor<33x8xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}

// CHECK-LABEL: dyna.model @tiny
// CHECK:         @embed[@wte](%{{.*}}) : (tensor<?xi32>) -> tensor<?x8x[[$T]]>
// CHECK:         @mix(%{{.*}}) : (tensor<?x8x[[$T]]>, !dyna.segments) -> tensor<?x8x[[$T]]>
// CHECK:         @head[@wte](%{{.*}}) : (tensor<?x8x[[$T]]>, tensor<?xi32>) -> tensor<1xf64>
dyna.model @tiny(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments) facts<family = "custom", vocabulary = 33, positions = 0, width = 8, heads = 2, kv_heads = 2, head_dim = 4, feed_forward = 0, config = "{}"> {
  %0 = dyna.call "embed" @embed[@wte](%ids) : (tensor<?xi32>) -> tensor<?x8xf32>
  %1 = dyna.call "mix" @mix(%0, %s) : (tensor<?x8xf32>, !dyna.segments) -> tensor<?x8xf32>
  %2 = dyna.call "head" @head[@wte](%1, %targets) : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<1xf64>
  dyna.return %2 : tensor<1xf64>
}
