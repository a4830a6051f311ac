// Independent collectives of one group become one exchange, where the first stood.

// RUN: dyna-opt %s -split-input-file -dyna-fuse-collectives -mlir-print-local-scope | FileCheck %s

// Two in a row, and a third further on: what lies between stays.
// CHECK-LABEL: dyna.function @l.tp2.forward
// CHECK-NEXT:    %[[E:.+]]:3 = dist.exchange : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4xf32> {
// CHECK-NEXT:      %[[A:.+]] = dist.all_gather %x dim 0
// CHECK-NEXT:      %[[B:.+]] = dist.all_reduce %y
// CHECK-NEXT:      %[[C:.+]] = dist.reduce_scatter %z dim 1
// CHECK-NEXT:      dist.yield %[[A]], %[[B]], %[[C]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[R:.+]] = dyna.relu %[[E]]#0
// CHECK-NEXT:    %[[S:.+]] = dyna.add %[[R]], %[[E]]#1
// CHECK-NEXT:    dyna.return %[[S]], %[[E]]#2
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.tp2.forward of @l.tp2 as forward(
    %x: tensor<?x8xf32> in <input>, %y: tensor<?x8xf32> in <input, index = 1>, %z: tensor<?x8xf32> in <input, index = 2>)
    -> (tensor<?x8xf32> in <output>, tensor<?x4xf32> in <output, index = 1>)
    attributes {dist.arguments = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = dist.all_reduce %y over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  %2 = dyna.relu %0 : tensor<?x8xf32>
  %3 = dyna.add %2, %1 : tensor<?x8xf32>
  %4 = dist.reduce_scatter %z dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
  dyna.return %3, %4 : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// The second needs ops from between: they move along, the rest stays.
// CHECK-LABEL: dyna.function @l.tp2.forward
// CHECK-NEXT:    %[[K:.+]] = dyna.linear %x, %wk
// CHECK-NEXT:    %[[V:.+]] = dyna.linear %x, %wv
// CHECK-NEXT:    %[[G:.+]] = dyna.relu %[[V]]
// CHECK-NEXT:    %[[E:.+]]:2 = dist.exchange
// CHECK-NEXT:      dist.reduce_scatter %[[K]]
// CHECK-NEXT:      dist.reduce_scatter %[[G]]
// CHECK-NEXT:      dist.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[R:.+]] = dyna.relu %[[E]]#0
// CHECK-NEXT:    %[[S:.+]] = dyna.silu %[[V]]
// CHECK-NEXT:    dyna.return %[[R]], %[[E]]#1, %[[S]]
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.tp2.forward of @l.tp2 as forward(
    %wk: tensor<8x4xf32> in <parameter>, %wv: tensor<8x4xf32> in <parameter, index = 1>, %x: tensor<?x4xf32> in <input>)
    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <output, index = 1>, tensor<?x8xf32> in <output, index = 2>)
    attributes {dist.arguments = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>]} {
  %k = dyna.linear %x, %wk : tensor<?x4xf32>, tensor<8x4xf32>
  %0 = dist.reduce_scatter %k dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = dyna.relu %0 : tensor<?x8xf32>
  %v = dyna.linear %x, %wv : tensor<?x4xf32>, tensor<8x4xf32>
  %s = dyna.silu %v : tensor<?x8xf32>
  %g = dyna.relu %v : tensor<?x8xf32>
  %2 = dist.reduce_scatter %g dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  dyna.return %1, %2, %s : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// The later of two that could take it along does: the result lives no longer than it must.
// CHECK-LABEL: dyna.function @l.tp2.forward
// CHECK-NEXT:    %{{.+}} = dist.all_gather %x
// CHECK-NEXT:    dyna.relu
// CHECK-NEXT:    %[[E:.+]]:2 = dist.exchange
// CHECK-NEXT:      dist.reduce_scatter
// CHECK-NEXT:      dist.all_gather %y
// CHECK-NEXT:      dist.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    dyna.relu
// CHECK-NEXT:    dyna.return
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.tp2.forward of @l.tp2 as forward(
    %x: tensor<?x8xf32> in <input>, %y: tensor<?x8xf32> in <input, index = 1>)
    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <output, index = 1>)
    attributes {dist.arguments = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = dyna.relu %0 : tensor<?x8xf32>
  %2 = dist.reduce_scatter %1 dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  %3 = dyna.relu %2 : tensor<?x8xf32>
  %4 = dist.all_gather %y dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  dyna.return %3, %4 : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// Not where one needs the other, directly or through other ops.
// CHECK-LABEL: dyna.function @l.tp2.forward
// CHECK-NOT:     dist.exchange
// CHECK:         dyna.return
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.tp2.forward of @l.tp2 as forward(
    %x: tensor<?x8xf32> in <input>)
    -> (tensor<?x4xf32> in <output>)
    attributes {dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = dist.all_reduce %0 over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  %2 = dyna.relu %1 : tensor<?x8xf32>
  %3 = dyna.add %2, %x : tensor<?x8xf32>
  %4 = dist.reduce_scatter %3 dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
  dyna.return %4 : tensor<?x4xf32>
}

// -----

// Not over different groups, nor a slice, which exchanges nothing.
// CHECK-LABEL: dyna.function @l.tp4.forward
// CHECK-NOT:     dist.exchange
// CHECK:         dyna.return
dyna.layer @l.tp4(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.tp4.forward of @l.tp4 as forward(
    %x: tensor<?x8xf32> in <input>, %y: tensor<?x8xf32> in <input, index = 1>, %z: tensor<?x8xf32> in <input, index = 2>)
    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <output, index = 1>, tensor<?x4xf32> in <output, index = 2>)
    attributes {dist.arguments = [#dist.layout<[[], []] on <tp=4>>, #dist.layout<[[], []] on <tp=4>>, #dist.layout<[[], []] on <tp=4>>],
                dist.results = [#dist.layout<[[], []] on <tp=4>>, #dist.layout<[[], []] on <tp=4>>, #dist.layout<[[], []] on <tp=4>>]} {
  %0 = dist.all_gather %x dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = dist.all_gather %y dim 0 over <4 [tp:2/2] on <tp=4>> : tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = dist.slice %z dim 1 over <3 [tp:2/1] on <tp=4>> : tensor<?x8xf32> -> tensor<?x4xf32>
  dyna.return %0, %1, %2 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// Not where a collective over another group would have to be waited for first.
// CHECK-LABEL: dyna.function @l.tp4.forward
// CHECK-NOT:     dist.exchange
// CHECK:         dyna.return
dyna.layer @l.tp4(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.tp4.forward of @l.tp4 as forward(
    %x: tensor<?x8xf32> in <input>, %y: tensor<?x8xf32> in <input, index = 1>)
    -> (tensor<?x8xf32> in <output>, tensor<?x8xf32> in <output, index = 1>)
    attributes {dist.arguments = [#dist.layout<[[], []] on <tp=4>>, #dist.layout<[[], []] on <tp=4>>],
                dist.results = [#dist.layout<[[], []] on <tp=4>>, #dist.layout<[[], []] on <tp=4>>]} {
  %0 = dist.all_gather %x dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = dist.all_reduce %y over <4 [tp:2/2] on <tp=4>> : tensor<?x8xf32>
  %2 = dist.all_gather %1 dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x8xf32> -> tensor<?x8xf32>
  dyna.return %0, %2 : tensor<?x8xf32>, tensor<?x8xf32>
}
