// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics -dyna-verify-local
// Each mutant of whole models: VerifyLocalTest.cpp.

// Correct: a row-parallel linear and its reduction.
dyna.layer @l[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[], [tp]] on <tp=2>>],
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
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[], [tp]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
  %1 = dyna.linear %0, %w : tensor<?x4xf32>, tensor<8x4xf32>
  // expected-error @+1 {{returns value 0 laid out as [[], []] partial [tp], but l.tp2 promises #dist.layout<[[], []] on <tp=2>>}}
  dyna.return %1 : tensor<?x8xf32>
}

// -----

// The reduction is missing in front of an op that is not linear.
dyna.layer @l[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %1 = dyna.relu %0 : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[], [tp]] on <tp=2>>],
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
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  %1 = dyna.add %x, %0 : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[], [tp]] on <tp=2>>],
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
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{partial}}
  %0 = dist.all_reduce %x over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// The largest of the parts of a sum is no sum.
dyna.layer @l[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x4xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[], [tp]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.slice %x dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x4xf32>
  %1 = dyna.linear %0, %w : tensor<?x4xf32>, tensor<8x4xf32>
  // expected-error @+1 {{takes a maximum, but what ranks hold are parts of a sum}}
  %2 = dist.all_reduce %1 max over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %2 : tensor<?x8xf32>
}

// -----

// Rows of one operand are this rank's, those of the other all.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.add %x, %x : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2.sp(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.sequence,
                dist.gradients = [],
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
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
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
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
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
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=4>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=4>>],
                dist.results = [#dist.layout<[[tp:2/1], []] on <tp=4>>]} {
  // expected-error @+1 {{is over a group that is not in the module's 'dist.groups'}}
  %0 = dist.slice %x dim 0 over <3 [tp:2/1] on <tp=4>> : tensor<?x8xf32> -> tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
}

// -----

// A group that nothing needs.
// expected-error @+1 {{lists in 'dist.groups' #dist.group<3 [tp:2/2] on <tp=4>>, which nothing needs}}
module attributes {dist.groups = [#dist.group<3 [tp:2/2] on <tp=4>>]} {
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp4(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=4>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=4>>],
                dist.results = [#dist.layout<[[], []] on <tp=4>>]} {
  dyna.return %x : tensor<?x8xf32>
}
}

// -----

// A parameter with the type of the whole.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{takes argument 0 of type 'tensor<8xf32>', but [[tp]] of 'tensor<8xf32>' is 'tensor<4xf32>'}}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp]] on <tp=2>>],
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
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.forward of @l as forward(%w: tensor<8xf32> in <parameter>, %x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{states for argument 0 the layout #dist.layout<[[tp]] on <tp=2>>, but it is given as [[]]}}
dyna.function @l.tp2.forward of @l.tp2 as forward(%w: tensor<4xf32> in <parameter>, %x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>)
    attributes {dist.arguments = [#dist.layout<[[tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A function that the layer does not have.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{is a part of no function of @l}}
dyna.function @l.tp2.forward of @l.tp2 as forward(%w: tensor<8xf32> in <parameter>, %x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>)
    attributes {dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A function that is missing.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{has no function @l.tp2.forward in role 'forward', which @l.forward would be the whole of}}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.forward of @l as forward(%w: tensor<8xf32> in <parameter>, %x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// An attribute that nobody reads any more.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.relu %x : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{has 'dist.layouts', which says nothing here}}
  %0 = dyna.relu %x {dist.layouts = [#dist.layout<[[], []] on <tp=2>>]} : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// A function without layouts.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.forward of @l as forward(%x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
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
    attributes {dist.logical = @other,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// Layouts, but no mesh.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{has 'dist.arguments', but its layer has no 'dist.mesh'}}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.arguments = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// The name says that tokens are split, the layer that they are not.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{of @l is on #dist.mesh<tp=2>; expects the axis tp alone and, for tp=2, the name @l.tp2}}
dyna.layer @l.tp2.sp(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// Another order of the ranks.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{of @l is on #dist.mesh<tp=2 ranks [1, 0]>; expects the axis tp alone}}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2 ranks [1, 0]>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2 ranks [1, 0]>>],
                dist.results = [#dist.layout<[[], []] on <tp=2 ranks [1, 0]>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A layer that some degree forgets.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{has no part @other.tp2, though there is @l.tp2}}
dyna.layer @other(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A gradient that is said to be a sum, though nothing is added.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{has the gradient of parameter 0 as [[]] partial [tp], but no function adds to it}}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] partial [tp] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A gradient that is laid out unlike its parameter.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
// expected-error @+1 {{lays parameter 0 out as [[]] and its gradient as [[tp]]; expects parts of 'tensor<8xf32>', and of the gradient the same or a sum of such}}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// Another epsilon than that of the layer.
dyna.layer @l[%g: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%g: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{computes what the logical function @l does not: on these operands the op has the attributes {epsilon = 1.000000e-05 : f64} there, but here {epsilon = 2.000000e-05 : f64}}}
  %0 = dyna.rms_norm %x, %g {epsilon = 2.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// Another value than that of the layer.
dyna.layer @l[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %1 = dyna.relu %x : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %1 = dyna.relu %x : tensor<?x8xf32>
  // expected-error @+1 {{returns as value 0 another one than @l}}
  dyna.return %x : tensor<?x8xf32>
}

// -----

// A part of a table that does not say so: the sum would count ids twice.
dyna.layer @l[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<129x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>, #dist.layout<[[]] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{expects 'shard' to be #dyna.shard<group = 1, rows = 257>, as the table is laid out as [[tp], []], but got none}}
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<129x8xf32>
  %1 = dist.all_reduce %0 over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}

// -----

// A part of a smaller table.
dyna.layer @l[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<129x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>, #dist.layout<[[]] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{expects 'shard' to be #dyna.shard<group = 1, rows = 257>, as the table is laid out as [[tp], []], but got #dyna.shard<group = 1, rows = 250>}}
  %0 = dyna.embedding %ids, %w shard<group = 1, rows = 250> : tensor<?xi32>, tensor<129x8xf32>
  %1 = dist.all_reduce %0 over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}

// -----

// A part in another group.
dyna.layer @l[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<129x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>, #dist.layout<[[]] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{expects 'shard' to be #dyna.shard<group = 1, rows = 257>, as the table is laid out as [[tp], []], but got #dyna.shard<group = 0, rows = 257>}}
  %0 = dyna.embedding %ids, %w shard<group = 0, rows = 257> : tensor<?xi32>, tensor<129x8xf32>
  %1 = dist.all_reduce %0 over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}

// -----

// A head that would not reduce.
dyna.layer @l[%w: tensor<257x8xf32>](%x: tensor<?x8xf32>, %t: tensor<?xi32>) -> tensor<1xf64> {
  %0 = dyna.linear_cross_entropy %x, %w, %t : tensor<?x8xf32>, tensor<257x8xf32>, tensor<?xi32>
  dyna.return %0 : tensor<1xf64>
}
dyna.layer @l.tp2[%w: tensor<129x8xf32>](%x: tensor<?x8xf32>, %t: tensor<?xi32>) -> tensor<1xf64>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>, #dist.layout<[[]] on <tp=2>>],
                dist.results = [#dist.layout<[[]] on <tp=2>>]} {
  // expected-error @+1 {{expects 'shard' to be #dyna.shard<group = 1, rows = 257>, as the table is laid out as [[tp], []], but got none}}
  %0 = dyna.linear_cross_entropy %x, %w, %t : tensor<?x8xf32>, tensor<129x8xf32>, tensor<?xi32>
  dyna.return %0 : tensor<1xf64>
}

// -----

// A whole table that is said to be a part.
dyna.layer @l[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<257x8xf32>](%ids: tensor<?xi32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[]] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{expects no 'shard', as the table is laid out as [[], []], but got #dyna.shard<group = 1, rows = 257>}}
  %0 = dyna.embedding %ids, %w shard<group = 1, rows = 257> : tensor<?xi32>, tensor<257x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// Dropout that would count this rank's tokens from the first of all.
dyna.layer @l(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %0 = dyna.dropout %x, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2.sp(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.sequence,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>, unit],
                dist.results = [#dist.layout<[[tp], []] on <tp=2>>]} {
  // expected-error @+1 {{expects 'dist.tokens' to be #dist.group<1 [tp] on <tp=2>>, as its tokens are split over [tp], but got none}}
  %0 = dyna.dropout %x, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// The same for positions: all tokens' rows where this rank's are wanted.
dyna.layer @l[%w: tensor<16x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %0 = dyna.positions %w, %s : tensor<16x8xf32>
  %1 = dyna.add %x, %0 : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}
dyna.layer @l.tp2.sp[%w: tensor<16x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.sequence,
                dist.gradients = [#dist.layout<[[], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>, #dist.layout<[[tp], []] on <tp=2>>, unit],
                dist.results = [#dist.layout<[[tp], []] on <tp=2>>]} {
  %0 = dyna.positions %w, %s : tensor<16x8xf32>
  // expected-error @+1 {{operand 1 has the layout [[], []], but the op expects [[tp], []]}}
  %1 = dyna.add %x, %0 : tensor<?x8xf32>
  dyna.return %1 : tensor<?x8xf32>
}

// -----

// Tokens that are not split.
dyna.layer @l(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %0 = dyna.dropout %x, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>, unit],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{expects no 'dist.tokens', as its tokens are split over [], but got #dist.group<1 [tp] on <tp=2>>}}
  %0 = dyna.dropout %x, %s {instance = 0 : i64, probability = 1.0e-1 : f64, dist.tokens = #dist.group<1 [tp] on <tp=2>>} : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// Dropout that would count this rank's features from the first of the row.
dyna.layer @l[%w: tensor<16x8xf32>, %v: tensor<8x16xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32>
  %1 = dyna.dropout %0, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x16xf32>
  %2 = dyna.linear %1, %v : tensor<?x16xf32>, tensor<8x16xf32>
  dyna.return %2 : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8x8xf32>, %v: tensor<8x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp], []] on <tp=2>>, #dist.layout<[[], [tp]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>, #dist.layout<[[], [tp]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>, unit],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<8x8xf32>
  // expected-error @+1 {{expects 'dist.features' to be #dist.group<1 [tp] on <tp=2>>, as its features are split over [tp], but got none}}
  %1 = dyna.dropout %0, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  %2 = dyna.linear %1, %v : tensor<?x8xf32>, tensor<8x8xf32>
  %3 = dist.all_reduce %2 over <1 [tp] on <tp=2>> : tensor<?x8xf32>
  dyna.return %3 : tensor<?x8xf32>
}

// -----

// Features that are not split.
dyna.layer @l(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %0 = dyna.dropout %x, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}
dyna.layer @l.tp2(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[], []] on <tp=2>>, unit],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{expects no 'dist.features', as its features are split over [], but got #dist.group<1 [tp] on <tp=2>>}}
  %0 = dyna.dropout %x, %s {instance = 0 : i64, probability = 1.0e-1 : f64, dist.features = #dist.group<1 [tp] on <tp=2>>} : tensor<?x8xf32>
  dyna.return %0 : tensor<?x8xf32>
}

// -----

// Two key/value heads on a rank that has the queries of one: it would pair them wrongly.
dyna.layer @l[%q: tensor<16x8xf32>, %k: tensor<8x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x16xf32> {
  %0 = dyna.linear %x, %q : tensor<?x8xf32>, tensor<16x8xf32>
  %1 = dyna.linear %x, %k : tensor<?x8xf32>, tensor<8x8xf32>
  %2, %lse = dyna.attention %0, %1, %1, %s {heads = 8 : i64, kv_heads = 4 : i64, scale = 0.5 : f64} : tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  dyna.return %2 : tensor<?x16xf32>
}
dyna.layer @l.tp4[%q: tensor<4x8xf32>, %k: tensor<4x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x16xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=4>,
                dist.gradients = [#dist.layout<[[tp], []] on <tp=4>>, #dist.layout<[[tp:2/2], []] on <tp=4>>],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=4>>, #dist.layout<[[tp:2/2], []] on <tp=4>>, #dist.layout<[[], []] on <tp=4>>, unit],
                dist.results = [#dist.layout<[[], []] on <tp=4>>]} {
  %0 = dyna.linear %x, %q : tensor<?x8xf32>, tensor<4x8xf32>
  %1 = dyna.linear %x, %k : tensor<?x8xf32>, tensor<4x8xf32>
  // expected-error @+1 {{splits the query heads of one key/value head over ranks and expects kv_heads = 1, but got 2}}
  %2, %lse = dyna.attention %0, %1, %1, %s {heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
  %3 = dist.all_gather %2 dim 1 over <1 [tp] on <tp=4>> : tensor<?x4xf32> -> tensor<?x16xf32>
  dyna.return %3 : tensor<?x16xf32>
}

// -----

// Heads of another size than those of the layer.
dyna.layer @l[%q: tensor<16x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x16xf32> {
  %0 = dyna.linear %x, %q : tensor<?x8xf32>, tensor<16x8xf32>
  %2, %lse = dyna.attention %0, %0, %0, %s {heads = 8 : i64, kv_heads = 8 : i64, scale = 0.5 : f64} : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  dyna.return %2 : tensor<?x16xf32>
}
dyna.layer @l.tp2[%q: tensor<8x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x16xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>, unit],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dyna.linear %x, %q : tensor<?x8xf32>, tensor<8x8xf32>
  // expected-error @+1 {{on these operands the op has the attributes {heads = 8 : i64, kv_heads = 8 : i64, number = 0 : i64, scale = 5.000000e-01 : f64} there, but here {heads = 4 : i64, kv_heads = 4 : i64, number = 0 : i64, scale = 5.000000e-01 : f64}}}
  %2, %lse = dyna.attention %0, %0, %0, %s {heads = 2 : i64, kv_heads = 2 : i64, scale = 0.5 : f64} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  %3 = dist.all_gather %2 dim 1 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x16xf32>
  dyna.return %3 : tensor<?x16xf32>
}

// -----

// Nine features on two ranks: kernels take one size.
dyna.layer @l[%w: tensor<9x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x9xf32> {
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<9x8xf32>
  dyna.return %0 : tensor<?x9xf32>
}
dyna.layer @l.tp2[%w: tensor<5x8xf32>](%x: tensor<?x8xf32>) -> tensor<?x9xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  // expected-error @+1 {{expects parts of equal size of 'tensor<9x8xf32>'}}
  %0 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<5x8xf32>
  %1 = "test.whole"(%0) : (tensor<?x5xf32>) -> tensor<?x9xf32>
  dyna.return %1 : tensor<?x9xf32>
}

// -----

// An update that forgets the decay.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.update of @l as update(%p: tensor<8xf32> in <input>, %gr: tensor<8xf32> in <gradient>, %m: tensor<8xf32> in <input, index = 1>, %v: tensor<8xf32> in <input, index = 2>) -> (tensor<8xf32> in <input>, tensor<8xf32> in <gradient>, tensor<8xf32> in <input, index = 1>, tensor<8xf32> in <input, index = 2>) {
  %a, %b, %c, %d = dyna.adamw %p, %gr, %m, %v {decay} : tensor<8xf32>
  dyna.return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
dyna.function @l.tp2.update of @l.tp2 as update(%p: tensor<8xf32> in <input>, %gr: tensor<8xf32> in <gradient>, %m: tensor<8xf32> in <input, index = 1>, %v: tensor<8xf32> in <input, index = 2>) -> (tensor<8xf32> in <input>, tensor<8xf32> in <gradient>, tensor<8xf32> in <input, index = 1>, tensor<8xf32> in <input, index = 2>)
    attributes {dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>],
                dist.results = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>]} {
  // expected-error @+1 {{computes what the logical function @l.update does not: on these operands the op has the attributes {decay} there, but here {}}}
  %a, %b, %c, %d = dyna.adamw %p, %gr, %m, %v : tensor<8xf32>
  dyna.return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// An update of other rows than the rank's.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.update of @l as update(%p: tensor<8xf32> in <input>, %gr: tensor<8xf32> in <gradient>, %m: tensor<8xf32> in <input, index = 1>, %v: tensor<8xf32> in <input, index = 2>) -> (tensor<8xf32> in <input>, tensor<8xf32> in <gradient>, tensor<8xf32> in <input, index = 1>, tensor<8xf32> in <input, index = 2>) {
  %a, %b, %c, %d = dyna.adamw %p, %gr, %m, %v {decay} : tensor<8xf32>
  dyna.return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// expected-error @+1 {{states for argument 0 the layout #dist.layout<[[tp]] on <tp=2>>, but it is given as [[]]}}
dyna.function @l.tp2.update of @l.tp2 as update(%p: tensor<8xf32> in <input>, %gr: tensor<8xf32> in <gradient>, %m: tensor<8xf32> in <input, index = 1>, %v: tensor<8xf32> in <input, index = 2>) -> (tensor<8xf32> in <input>, tensor<8xf32> in <gradient>, tensor<8xf32> in <input, index = 1>, tensor<8xf32> in <input, index = 2>)
    attributes {dist.arguments = [#dist.layout<[[tp]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>],
                dist.results = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>]} {
  %a, %b, %c, %d = dyna.adamw %p, %gr, %m, %v {decay} : tensor<8xf32>
  dyna.return %a, %b, %c, %d : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Correct: each element of a gradient is counted by one rank.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.grad_norm of @l as grad_norm(%gr: tensor<8xf32> in <gradient>, %s: tensor<1xf64> in <output>) -> (tensor<1xf64> in <output>) {
  %a = dyna.sum_squares %gr, %s : tensor<8xf32>
  dyna.return %a : tensor<1xf64>
}
dyna.function @l.tp2.grad_norm of @l.tp2 as grad_norm(%gr: tensor<8xf32> in <gradient>, %s: tensor<1xf64> in <output>) -> (tensor<1xf64> in <output>)
    attributes {dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] partial [tp] on <tp=2>>],
                dist.results = [#dist.layout<[[]] partial [tp] on <tp=2>>]} {
  %a = dyna.sum_squares %gr, %s : tensor<8xf32>
  dyna.return %a : tensor<1xf64>
}

// -----

// A norm that is not added up over the ranks.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.grad_norm of @l as grad_norm(%gr: tensor<8xf32> in <gradient>, %s: tensor<1xf64> in <output>) -> (tensor<1xf64> in <output>) {
  %a = dyna.sum_squares %gr, %s : tensor<8xf32>
  dyna.return %a : tensor<1xf64>
}
// expected-error @+1 {{states for argument 1 the layout #dist.layout<[[]] on <tp=2>>, but it is given as [[]] partial [tp]}}
dyna.function @l.tp2.grad_norm of @l.tp2 as grad_norm(%gr: tensor<8xf32> in <gradient>, %s: tensor<1xf64> in <output>) -> (tensor<1xf64> in <output>)
    attributes {dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] on <tp=2>>],
                dist.results = [#dist.layout<[[]] on <tp=2>>]} {
  %a = dyna.sum_squares %gr, %s : tensor<8xf32>
  dyna.return %a : tensor<1xf64>
}

// -----

// A norm that counts nothing.
dyna.layer @l[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2[%w: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.gradients = [#dist.layout<[[]] on <tp=2>>],
                dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @l.grad_norm of @l as grad_norm(%gr: tensor<8xf32> in <gradient>, %s: tensor<1xf64> in <output>) -> (tensor<1xf64> in <output>) {
  %a = dyna.sum_squares %gr, %s : tensor<8xf32>
  dyna.return %a : tensor<1xf64>
}
dyna.function @l.tp2.grad_norm of @l.tp2 as grad_norm(%gr: tensor<8xf32> in <gradient>, %s: tensor<1xf64> in <output>) -> (tensor<1xf64> in <output>)
    attributes {dist.arguments = [#dist.layout<[[]] on <tp=2>>, #dist.layout<[[]] partial [tp] on <tp=2>>],
                dist.results = [#dist.layout<[[]] partial [tp] on <tp=2>>]} {
  // expected-error @+1 {{returns as value 0 another one than @l.grad_norm}}
  dyna.return %s : tensor<1xf64>
}

// -----

// The next layer takes this rank's tokens, whatever this one promises.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.layer @l.tp2.sp(%x: tensor<?x8xf32>) -> tensor<?x8xf32>
    attributes {dist.logical = @l,
                dist.mesh = #dist.mesh<tp=2>,
                dist.sequence,
                dist.gradients = [],
                dist.arguments = [#dist.layout<[[tp], []] on <tp=2>>],
                dist.results = [#dist.layout<[[], []] on <tp=2>>]} {
  %0 = dist.all_gather %x dim 0 over <1 [tp] on <tp=2>> : tensor<?x8xf32> -> tensor<?x8xf32>
  // expected-error @+1 {{returns value 0 laid out as [[], []], but it is taken as [[tp], []]}}
  dyna.return %0 : tensor<?x8xf32>
}
