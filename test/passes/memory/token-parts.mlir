// RUN: dyna-opt %s --dyna-memory | FileCheck %s

// Tokens dealt to ranks. A part of k ranks takes ceil(32/k) of every 32 rounded tokens:
// of 8 bytes * 24 columns per row 192 * 11/32 = 66 with three ranks.

// CHECK:      dyna.layer @l
// CHECK-SAME: tiers = [#dyna.place<saved_input, tq = 66>, #dyna.place<products, tq = 66>, #dyna.place<elementwise>, #dyna.place<deferred>]
dyna.layer @l(%x: tensor<?x24xf64>) -> tensor<?x24xf64> attributes {
    dist.arguments = [#dist.layout<[[tp], []] on <tp=3>>], dist.results = [#dist.layout<[[tp], []] on <tp=3>>],
    dist.gradients = [], dist.logical = @whole, dist.mesh = #dist.mesh<tp=3>} {
  dyna.return %x : tensor<?x24xf64>
}

// The sum over the ranks lies where its operand did.

// CHECK-LABEL: dyna.function @l.forward
// CHECK-SAME:  workspace <workspace, tq = 384>
// CHECK:       %[[ALL:.*]] = dist.all_gather %{{.*}} dim 0 over <1 [tp] on <tp=3>> {places = [#dyna.place<workspace>]}
// CHECK:       %[[Y:.*]] = dyna.linear %[[ALL]], %{{.*}} {places = [#dyna.place<workspace, tq = 192>]}
// CHECK:       %[[Z:.*]] = dist.all_reduce %[[Y]] over <1 [tp] on <tp=3>> {places = [#dyna.place<workspace, tq = 192>]}
// CHECK:       dist.reduce_scatter %[[Z]] dim 0 over <1 [tp] on <tp=3>> {places = [#dyna.place<products>]}
dyna.function @l.forward of @l as forward(%w: tensor<24x24xf64> in <parameter>, %x: tensor<?x24xf64> in <saved_input>)
    -> (tensor<?x24xf64> in <output>, tensor<?x24xf64> in <products>) attributes {
      dist.arguments = [#dist.layout<[[], []] on <tp=3>>, #dist.layout<[[tp], []] on <tp=3>>]} {
  %g = dyna.gelu %x tanh : tensor<?x24xf64>
  %all = dist.all_gather %g dim 0 over <1 [tp] on <tp=3>> : tensor<?x24xf64> -> tensor<?x24xf64>
  %y = dyna.linear %all, %w : tensor<?x24xf64>, tensor<24x24xf64>
  %z = dist.all_reduce %y over <1 [tp] on <tp=3>> : tensor<?x24xf64>
  %part = dist.reduce_scatter %z dim 0 over <1 [tp] on <tp=3>> : tensor<?x24xf64> -> tensor<?x24xf64>
  %h = dyna.gelu %part tanh : tensor<?x24xf64>
  dyna.return %h, %part : tensor<?x24xf64>, tensor<?x24xf64>
}

// A sum whose operand is needed once more has a place of its own.

// CHECK-LABEL: dyna.function @l.backward
// CHECK:       %[[Y:.*]] = dyna.linear {{.*}} {places = [#dyna.place<output, index = 1>]}
// CHECK:       dist.all_reduce %[[Y]] over <1 [tp] on <tp=3>> {places = [#dyna.place<output>]}
// CHECK:       dyna.rows
dyna.function @l.backward of @l as backward(%w: tensor<24x24xf64> in <parameter>, %x: tensor<?x24xf64> in <input>)
    -> (tensor<?x24xf64> in <output>, tensor<?x24xf64> in <output, index = 1>) {
  %y = dyna.linear %x, %w : tensor<?x24xf64>, tensor<24x24xf64>
  %z = dist.all_reduce %y over <1 [tp] on <tp=3>> : tensor<?x24xf64>
  %h = dyna.mul %y, %z : tensor<?x24xf64>
  dyna.return %z, %h : tensor<?x24xf64>, tensor<?x24xf64>
}

// What works on this rank's tokens is not swept together with what works on all.

// CHECK-LABEL: dyna.function @l.evaluate
// CHECK:       dyna.rows
// CHECK-NEXT:    dyna.gelu
// CHECK-NEXT:    dyna.yield
// CHECK:       dyna.rows
// CHECK-NEXT:    dyna.silu
// CHECK-NEXT:    dyna.yield
dyna.function @l.evaluate of @l as evaluate(%x: tensor<?x24xf64> in <input>, %p: tensor<?x24xf64> in <input, index = 1>)
    -> (tensor<?x24xf64> in <output>, tensor<?x24xf64> in <output, index = 1>) attributes {
      dist.arguments = [#dist.layout<[[], []] on <tp=3>>, #dist.layout<[[tp], []] on <tp=3>>]} {
  %g = dyna.gelu %x tanh : tensor<?x24xf64>
  %h = dyna.silu %p : tensor<?x24xf64>
  dyna.return %g, %h : tensor<?x24xf64>, tensor<?x24xf64>
}
