// Each reshard becomes the collectives that move least; those that undo each other
// disappear; factors of tp get groups from index 3 on, listed by the module.

// RUN: dyna-opt %s -split-input-file -dyna-materialize-collectives -mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: module
// CHECK-NOT:   dist.groups
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// CHECK-LABEL: dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK-NEXT:    %[[S:.+]] = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
// CHECK-NEXT:    %[[P:.+]] = dyna.linear %[[S]], %w : tensor<?x4xf32>, tensor<8x4xf32>
// CHECK-NEXT:    %[[R:.+]] = dist.reduce_scatter %[[P]] dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
// CHECK-NEXT:    %[[T:.+]] = dist.all_to_all %[[R]] dim 0 to 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
// CHECK-NEXT:    %[[A:.+]] = dyna.relu %[[T]] : tensor<?x4xf32>
// CHECK-NEXT:    %[[G:.+]] = dist.all_gather %[[A]] dim 1 over <1 [tp] on <tp=2>> : tensor<?x4xf32> -> tensor<?x8xf32>
// CHECK-NEXT:    dyna.return %[[G]] : tensor<?x8xf32>
dyna.layer @l.tp2[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>, dist.gradients = [#dist.layout<[[], [tp]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.reshard %x from <[[], []] on <tp=2>> to <[[], [tp]] on <tp=2>> : tensor<?x8xf32>
  %1 = dyna.linear %0, %w {dist.layouts = [#dist.layout<[[], []] partial [tp] on <tp=2>>]} : tensor<?x8xf32>, tensor<8x8xf32>
  %2 = dist.reshard %1 from <[[], []] partial [tp] on <tp=2>> to <[[tp], []] on <tp=2>> : tensor<?x8xf32>
  %3 = dist.reshard %2 from <[[tp], []] on <tp=2>> to <[[], [tp]] on <tp=2>> : tensor<?x8xf32>
  %4 = dyna.relu %3 {dist.layouts = [#dist.layout<[[], [tp]] on <tp=2>>]} : tensor<?x8xf32>
  %5 = dist.reshard %4 from <[[], [tp]] on <tp=2>> to <[[], []] on <tp=2>> : tensor<?x8xf32>
  dyna.return %5 : tensor<?x8xf32>
}

// -----

// There and back is nothing.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// CHECK-LABEL: dyna.layer @l.tp2(
// CHECK-NEXT:    %[[R:.+]] = dyna.relu %x : tensor<?x8xf32>
// CHECK-NEXT:    dyna.return %[[R]]
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>, dist.gradients = [],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.results = [#dist.layout<[[tp], []] on <tp=2>>]} {
  %0 = dist.reshard %x from <[[tp], []] on <tp=2>> to <[[], []] on <tp=2>> : tensor<?x8xf32>
  %1 = dist.reshard %0 from <[[], []] on <tp=2>> to <[[tp], []] on <tp=2>> : tensor<?x8xf32>
  %2 = dyna.relu %1 {dist.layouts = [#dist.layout<[[tp], []] on <tp=2>>]} : tensor<?x8xf32>
  dyna.return %2 : tensor<?x8xf32>
}

// -----

// Factors of an axis, and a gradient that is reduced over one.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// CHECK:       module attributes {dist.groups = [#dist.group<3 [tp:2/1] on <tp=4>>, #dist.group<4 [tp:2/2] on <tp=4>>]}
// CHECK-LABEL: dyna.layer @l.tp4[
// CHECK-NEXT:    %[[G:.+]] = dist.all_gather %x dim 1 over <3 [tp:2/1] on <tp=4>> : tensor<?x2xf32> -> tensor<?x4xf32>
// CHECK-NEXT:    dyna.relu %[[G]] : tensor<?x4xf32>
dyna.layer @l.tp4[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=4>, dist.gradients = [#dist.layout<[[]] partial [tp:2/2] on <tp=4>>],
                dist.arguments = [#dist.layout<[[]] on <tp=4>>, #dist.layout<[[], [tp]] on <tp=4>>],
                dist.results = [#dist.layout<[[], [tp:2/2]] on <tp=4>>]} {
  %0 = dist.reshard %x from <[[], [tp]] on <tp=4>> to <[[], [tp:2/2]] on <tp=4>> : tensor<?x8xf32>
  %1 = dyna.relu %0 {dist.layouts = [#dist.layout<[[], [tp:2/2]] on <tp=4>>]} : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}

// -----

// What the layer computes for nothing, and exchanges for that, goes: fused with what is needed
// it would stay.
dyna.layer @l[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// CHECK-LABEL: dyna.layer @l.tp2[
// CHECK-NEXT:    dyna.return %x
dyna.layer @l.tp2[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>, dist.gradients = [#dist.layout<[[], [tp]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.reshard %x from <[[], []] on <tp=2>> to <[[], [tp]] on <tp=2>> : tensor<?x8xf32>
  %1 = dyna.linear %0, %w {dist.layouts = [#dist.layout<[[], []] partial [tp] on <tp=2>>]} : tensor<?x8xf32>, tensor<8x8xf32>
  %2 = dist.reshard %1 from <[[], []] partial [tp] on <tp=2>> to <[[], []] on <tp=2>> : tensor<?x8xf32>
  %3 = dyna.relu %2 {dist.layouts = [#dist.layout<[[], []] on <tp=2>>]} : tensor<?x8xf32>
  dyna.return %x : tensor<?x8xf32>
}
