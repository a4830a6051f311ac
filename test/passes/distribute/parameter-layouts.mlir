// Which linears are split over ranks, and how.

// RUN: dyna-opt %s -dyna-differentiate -dyna-deduce-layouts="strategy=tp=2" -mlir-print-local-scope | grep "^ *dyna.layer @.*tp2" | FileCheck %s

// A gated MLP: two column-parallel linears, one row-parallel.
// CHECK:      @gated.tp2
// CHECK-SAME: dist.arguments = [#dist.layout<{{\[\[}}tp], []] on <tp=2>>, #dist.layout<{{\[\[}}tp], []] on <tp=2>>, #dist.layout<{{\[\[}}], [tp]] on <tp=2>>,
dyna.layer @gated[%g: tensor<16x8xf32>, %u: tensor<16x8xf32>, %d: tensor<8x16xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %g : tensor<?x8xf32>, tensor<16x8xf32>
  %1 = dyna.silu %0 : tensor<?x16xf32>
  %2 = dyna.linear %x, %u : tensor<?x8xf32>, tensor<16x8xf32>
  %3 = dyna.mul %1, %2 : tensor<?x16xf32>
  %4 = dyna.linear %3, %d : tensor<?x16xf32>, tensor<8x16xf32>
  dyna.return %4 : tensor<?x8xf32>
}

// Four in a row: two regions.
// CHECK-NEXT: @chain.tp2
// CHECK-SAME: dist.arguments = [#dist.layout<{{\[\[}}tp], []] on <tp=2>>, #dist.layout<{{\[\[}}], [tp]] on <tp=2>>, #dist.layout<{{\[\[}}tp], []] on <tp=2>>, #dist.layout<{{\[\[}}], [tp]] on <tp=2>>,
dyna.layer @chain[%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>, %d: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %a : tensor<?x8xf32>, tensor<8x8xf32>
  %1 = dyna.linear %0, %b : tensor<?x8xf32>, tensor<8x8xf32>
  %2 = dyna.relu %1 : tensor<?x8xf32>
  %3 = dyna.linear %2, %c : tensor<?x8xf32>, tensor<8x8xf32>
  %4 = dyna.relu %3 : tensor<?x8xf32>
  %5 = dyna.linear %4, %d : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %5 : tensor<?x8xf32>
}

// A norm needs whole rows, a residual a value from outside: nothing of these is split. Dropout is
// no obstacle: the last two linears are.
// CHECK-NEXT: @whole.tp2
// CHECK-SAME: dist.arguments = [#dist.layout<{{\[\[}}], []] on <tp=2>>, #dist.layout<{{\[\[}}], []] on <tp=2>>, #dist.layout<{{\[\[}}tp], []] on <tp=2>>, #dist.layout<{{\[\[}}], [tp]] on <tp=2>>, #dist.layout<{{\[\[}}]] on <tp=2>>,
dyna.layer @whole[%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>, %d: tensor<8x8xf32>, %g: tensor<8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %a : tensor<?x8xf32>, tensor<8x8xf32>
  %1 = dyna.rms_norm %0, %g {epsilon = 1.0e-6 : f64} : tensor<?x8xf32>, tensor<8xf32>
  %2 = dyna.linear %1, %b : tensor<?x8xf32>, tensor<8x8xf32>
  %3 = dyna.add %2, %x : tensor<?x8xf32>
  %4 = dyna.linear %3, %c : tensor<?x8xf32>, tensor<8x8xf32>
  %5 = dyna.dropout %4, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  %6 = dyna.linear %5, %d : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %6 : tensor<?x8xf32>
}
