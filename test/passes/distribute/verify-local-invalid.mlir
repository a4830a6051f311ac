// RUN: dyna-opt %s -split-input-file -verify-diagnostics -dyna-verify-local

// Correct: a row-parallel linear and its reduction.
dyna.layer @good[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @good.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @good, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
  %1 = dyna.linear %0, %w : tensor<?x4xf32>, tensor<8x4xf32>
  %2 = dist.all_reduce %1 over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %2 : tensor<?x8xf32>
}

// -----

// The reduction is missing at the end.
dyna.layer @l[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
  %1 = dyna.linear %0, %w : tensor<?x4xf32>, tensor<8x4xf32>
  // expected-error @+1 {{returns value 0 laid out as [[], []] partial [tp], but l.tp2 promises [[], []]}}
  dyna.return %1 : tensor<?x8xf32>
}

// -----

// The reduction is missing in front of an op that is not linear.
dyna.layer @l[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
  %1 = dyna.linear %0, %w : tensor<?x4xf32>, tensor<8x4xf32>
  // expected-error @+1 {{operand 0 has the layout [[], []] partial [tp], but the op needs the sum: reduce it first}}
  %2 = dyna.relu %1 : tensor<?x8xf32>
  dyna.return %2 : tensor<?x8xf32>
}

// -----

// A sum and a whole value are added: each rank would add the whole one.
dyna.layer @l[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
  %1 = dyna.linear %0, %w : tensor<?x4xf32>, tensor<8x4xf32>
  // expected-error @+1 {{operand 1 has the layout [[], []] partial [tp], but the op needs the sum: reduce it first}}
  %2 = dyna.add %x, %1 : tensor<?x8xf32>
  %3 = dist.all_reduce %2 over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %3 : tensor<?x8xf32>
}

// -----

// Twice is once too often.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{partial}}
  %0 = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// Rows of one operand are this rank's, those of the other all.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2.sp(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>, dist.sequence,
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.results = [#dist.layout<[[tp], []] on <tp=2>>]} {
  %0 = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-error @+1 {{operand 1 has the layout [[], []], but the op expects [[tp], []]}}
  %1 = dyna.add %x, %0 : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}

// -----

// A reshard is a wish.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[tp], []] on <tp=2>>]} {
  // expected-error @+1 {{is left over; run dyna-materialize-collectives}}
  %0 = dist.reshard %x from <[[], []] on <tp=2>> to <[[tp], []] on <tp=2>> : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// The ranks of another mesh.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[tp], []] on <tp=2>>]} {
  // expected-error @+1 {{is over a group of #dist.mesh<tp=4>, but the layer is on #dist.mesh<tp=2>}}
  %0 = dist.slice %x dim 0 over <1 [tp] on <tp=4>> : tensor<?x8xf32> -> tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// A group of a factor that the module does not list under this index.
module attributes {dist.groups = [#dist.group<3 [tp:2/2] on <tp=4>>]} {
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp4(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=4>,
                dist.arguments = [#dist.layout<[[], []] on <tp=4>>],
                dist.results = [#dist.layout<[[tp:2/1], []] on <tp=4>>]} {
  // expected-error @+1 {{is over a group that is not in the module's 'dist.groups'}}
  %0 = dist.slice %x dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x8xf32> -> tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
}

// -----

// A parameter with the type of the whole.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{has parameter 0 of type 'tensor<8xf32>', but #dist.layout<[[tp]] on <tp=2>> of 'tensor<8xf32>' is 'tensor<4xf32>'}}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A function with other parameters than its layer.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{takes argument 0 of type 'tensor<4xf32>', but the layer's parameter 0 is 'tensor<8xf32>'}}
dyna.function @l.tp2.forward of @l.tp2 as forward(%w: tensor<4xf32> in <parameter>, %x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>)
    attributes {dist.arguments = [#dist.layout<[[tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A function without layouts.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{belongs to a layer of a tensor degree and needs 'dist.arguments' and 'dist.results'}}
dyna.function @l.tp2.forward of @l.tp2 as forward(%x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A layer that is a part of none.
// expected-error @+1 {{expects 'dist.logical' to name the layer that it is a part of, but got @other}}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @other, dist.mesh = #dist.mesh<tp=2>,
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
