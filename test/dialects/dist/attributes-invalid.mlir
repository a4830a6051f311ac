// RUN: dyna-opt %s -allow-unregistered-dialect -split-input-file -verify-diagnostics

// MESH1: an axis twice.
// expected-error @+1 {{axis 'tp'}}
"test.op"() {a = #dist.mesh<tp=2, tp=4>} : () -> ()

// -----

// MESH1: ranks that are not one per position.
// expected-error @+1 {{ranks}}
"test.op"() {a = #dist.mesh<tp=2 ranks [0, 1, 2]>} : () -> ()

// -----

// LAYOUT1: an axis that the mesh does not have.
// expected-error @+1 {{'dp'}}
"test.op"() {a = #dist.layout<[[dp], []] on <tp=4>>} : () -> ()

// -----

// LAYOUT1: one axis in two dimensions.
// expected-error @+1 {{tp}}
"test.op"() {a = #dist.layout<[[tp], [tp:2/1]] on <tp=4>>} : () -> ()

// -----

// GROUP1: no parts.
// expected-error @+1 {{expects the axis parts in which the ranks of a group differ, but got none}}
"test.op"() {a = #dist.group<3 [] on <tp=4>>} : () -> ()

// -----

// GROUP1: a factor that the axis does not have.
// expected-error @+1 {{tp:3/1}}
"test.op"() {a = #dist.group<3 [tp:3/1] on <tp=4>>} : () -> ()

// -----

// GROUP2: tensor parallelism is group 1.
// expected-error @+1 {{expects the group over [tp] to have index 1, but got 3}}
"test.op"() {a = #dist.group<3 [tp] on <tp=4>>} : () -> ()

// -----

// GROUP2: a factor is not a whole axis.
// expected-error @+1 {{expects a group over [tp:2/1] to have an index from 3 on, as it is none of the axes dp, tp and pp, but got 1}}
"test.op"() {a = #dist.group<1 [tp:2/1] on <tp=4>>} : () -> ()

// -----

// Layouts of an op: one for each result.
// expected-error @+1 {{expects 'dist.layouts' to list 1 layouts, but got []}}
%x = "test.op"() {dist.layouts = []} : () -> tensor<?x4xf32>

// -----

// Layouts of an op: as many dimensions as the result.
// expected-error @+1 {{expects 'dist.layouts' to give a layout that fits 'tensor<?x4xf32>', but got #dist.layout<[[]] on <tp=2>>}}
%x = "test.op"() {dist.layouts = [#dist.layout<[[]] on <tp=2>>]} : () -> tensor<?x4xf32>

// -----

// Layouts of arguments that nothing declares: the layer has no type.
// expected-error @+1 {{requires attribute 'function_type'}}
"dyna.layer"() <{num_parameters = 0 : i64, sym_name = "l"}> ({
^bb0(%x: tensor<?x8xf32>):
  dyna.return %x : tensor<?x8xf32>
}) {dist.arguments = [unit], dist.results = [], dist.gradients = [], dist.mesh = #dist.mesh<tp=2>, dist.logical = @m} : () -> ()

// -----

// What the distribute phase writes, in layers that it did not make.
dyna.layer @l(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.dropout' op has 'dist.tokens', but its layer has no 'dist.mesh': attributes 'dist.*' are written by --dyna-distribute only}}
  %y = dyna.dropout %x, %s {dist.tokens = #dist.group<1 [tp] on <tp=2>>, instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

dyna.layer @l[%w: tensor<4x8xf32>](%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  // expected-error @+1 {{'dyna.positions' op has 'dist.tokens', but its layer has no 'dist.mesh'}}
  %y = dyna.positions %w, %s {dist.tokens = #dist.group<1 [tp] on <tp=2>>} : tensor<4x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{'dyna.layer' op has 'dist.sequence', but its layer has no 'dist.mesh'}}
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.sequence} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{'dyna.layer' op has 'dist.logical', but its layer has no 'dist.mesh'}}
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.logical = @l} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{'dyna.layer' op has 'dist.mesh', but its layer has no 'dist.logical'}}
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {dist.mesh = #dist.mesh<tp=2>} {
  dyna.return %x : tensor<?x8xf32>
}

// -----

dyna.layer @l(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
dyna.function @f of @l as forward(%x: tensor<?x8xf32> in <input>, %s: !dyna.segments in <segments>) -> (tensor<?x8xf32> in <output>) {
  // expected-error @+1 {{'dyna.dropout' op has 'dist.tokens', but its function has no 'dist.arguments'}}
  %y = dyna.dropout %x, %s {dist.tokens = #dist.group<1 [tp] on <tp=2>>, instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
