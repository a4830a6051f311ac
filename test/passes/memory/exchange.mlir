// RUN: dyna-opt %s -split-input-file --dyna-memory | FileCheck %s

// Operands of an exchange live until it ends, results from its start: the gathered value
// does not lie on %g, though %g has no other use. A sum may lie where its operand did.
// Of three ranks, 66 bytes per token are a part and 192 all of the tokens.

dyna.layer @l(%x: tensor<?x24xf64>) -> tensor<?x24xf64> attributes {
    dist.arguments = [#dist.layout<[[tp], []] on <tp=3>>], dist.results = [#dist.layout<[[tp], []] on <tp=3>>],
    dist.gradients = [], dist.logical = @whole, dist.mesh = #dist.mesh<tp=3>} {
  dyna.return %x : tensor<?x24xf64>
}
// CHECK-LABEL: dyna.function @l.forward
// CHECK-SAME:  workspace <workspace, tq = 450>
// CHECK:       %[[Y:.*]] = dyna.linear %{{.*}} {places = [#dyna.place<workspace>]}
// CHECK-NEXT:  {{.*}} = dyna.rows
// CHECK:       } {places = [#dyna.place<workspace, tq = 384>]}
// CHECK-NEXT:  {{.*}} = dist.exchange
// CHECK:       } {places = [#dyna.place<workspace>, #dyna.place<workspace, tq = 192>]}
dyna.function @l.forward of @l as forward(%w: tensor<24x24xf64> in <parameter>, %x: tensor<?x24xf64> in <saved_input>,
    %p: tensor<?x24xf64> in <input, index = 1>) -> (tensor<?x24xf64> in <output>) attributes {
      dist.arguments = [#dist.layout<[[], []] on <tp=3>>, #dist.layout<[[tp], []] on <tp=3>>, #dist.layout<[[], []] on <tp=3>>]} {
  %y = dyna.linear %p, %w : tensor<?x24xf64>, tensor<24x24xf64>
  %g = dyna.gelu %x tanh : tensor<?x24xf64>
  %e:2 = dist.exchange : tensor<?x24xf64>, tensor<?x24xf64> {
    %0 = dist.all_reduce %y over <1 [tp] on <tp=3>> : tensor<?x24xf64>
    %1 = dist.all_gather %g dim 0 over <1 [tp] on <tp=3>> : tensor<?x24xf64> -> tensor<?x24xf64>
    dist.yield %0, %1 : tensor<?x24xf64>, tensor<?x24xf64>
  }
  %h = dyna.linear %e#1, %w : tensor<?x24xf64>, tensor<24x24xf64>
  %i = dyna.mul %h, %e#0 : tensor<?x24xf64>
  dyna.return %i : tensor<?x24xf64>
}

// -----

// What two of the collectives read is not overwritten by one.

dyna.layer @l(%x: tensor<?x24xf64>) -> tensor<?x24xf64> {
  dyna.return %x : tensor<?x24xf64>
}
// CHECK-LABEL: dyna.function @l.forward
// CHECK-NEXT:  {{.*}} = dyna.linear %{{.*}} {places = [#dyna.place<workspace>]}
// CHECK-NEXT:  {{.*}} = dist.exchange
// CHECK:       } {places = [#dyna.place<workspace, tq = 192>, #dyna.place<workspace, tq = 384>]}
dyna.function @l.forward of @l as forward(%w: tensor<24x24xf64> in <parameter>, %x: tensor<?x24xf64> in <saved_input>)
    -> (tensor<?x24xf64> in <output>) {
  %y = dyna.linear %x, %w : tensor<?x24xf64>, tensor<24x24xf64>
  %e:2 = dist.exchange : tensor<?x24xf64>, tensor<?x24xf64> {
    %0 = dist.all_reduce %y over <1 [tp] on <tp=3>> : tensor<?x24xf64>
    %1 = dist.all_reduce %y max over <1 [tp] on <tp=3>> : tensor<?x24xf64>
    dist.yield %0, %1 : tensor<?x24xf64>, tensor<?x24xf64>
  }
  %h = dyna.linear %e#1, %w : tensor<?x24xf64>, tensor<24x24xf64>
  %i = dyna.mul %h, %e#0 : tensor<?x24xf64>
  dyna.return %i : tensor<?x24xf64>
}

// -----

// A result that is this rank's part of a sum takes a part's room, 66 bytes per token, and
// so does what is made of it: two gathered values and one part are live together.

dyna.layer @l(%x: tensor<?x24xf64>) -> tensor<?x24xf64> attributes {
    dist.arguments = [#dist.layout<[[tp], []] on <tp=3>>], dist.results = [#dist.layout<[[tp], []] on <tp=3>>],
    dist.gradients = [], dist.logical = @whole, dist.mesh = #dist.mesh<tp=3>} {
  dyna.return %x : tensor<?x24xf64>
}
// CHECK-LABEL: dyna.function @l.forward
// CHECK-SAME:  workspace <workspace, tq = 450>
// CHECK-NEXT:  {{.*}} = dist.exchange
// CHECK-NEXT:    dist.reduce_scatter
// CHECK-NEXT:    dist.all_gather
// CHECK:       } {places = [#dyna.place<workspace, tq = 192>, #dyna.place<workspace>]}
// CHECK-NEXT:  {{.*}} = dyna.linear {{.*}} {places = [#dyna.place<workspace, tq = 384>]}
dyna.function @l.forward of @l as forward(%w: tensor<24x24xf64> in <parameter>, %x: tensor<?x24xf64> in <saved_input>,
    %p: tensor<?x24xf64> in <input, index = 1>) -> (tensor<?x24xf64> in <output>) attributes {
      dist.arguments = [#dist.layout<[[], []] on <tp=3>>, #dist.layout<[[tp], []] on <tp=3>>, #dist.layout<[[], []] on <tp=3>>]} {
  %e:2 = dist.exchange : tensor<?x24xf64>, tensor<?x24xf64> {
    %0 = dist.reduce_scatter %p dim 0 over <1 [tp] on <tp=3>> : tensor<?x24xf64> -> tensor<?x24xf64>
    %1 = dist.all_gather %x dim 0 over <1 [tp] on <tp=3>> : tensor<?x24xf64> -> tensor<?x24xf64>
    dist.yield %0, %1 : tensor<?x24xf64>, tensor<?x24xf64>
  }
  %h = dyna.linear %e#0, %w : tensor<?x24xf64>, tensor<24x24xf64>
  %i = dyna.linear %e#1, %w : tensor<?x24xf64>, tensor<24x24xf64>
  %j = dist.all_gather %h dim 0 over <1 [tp] on <tp=3>> : tensor<?x24xf64> -> tensor<?x24xf64>
  %k = dyna.mul %i, %j : tensor<?x24xf64>
  dyna.return %k : tensor<?x24xf64>
}
