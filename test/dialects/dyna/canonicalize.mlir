// RUN: dyna-opt %s -canonicalize -split-input-file | FileCheck %s

// Dropout with probability 0 is the identity; with another it is not.

// CHECK-LABEL: dyna.layer @dropout
// CHECK-SAME:  (%[[X:.*]]: tensor<?x8xf32>, %[[S:.*]]: !dyna.segments)
// CHECK:       %[[D:.*]] = dyna.dropout %[[X]], %[[S]] {{.*}}probability = 1.0
// CHECK-NEXT:  dyna.return %[[D]]
dyna.layer @dropout(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %a = dyna.dropout %x, %s {instance = 0 : i64, probability = 0.0 : f64} : tensor<?x8xf32>
  %b = dyna.dropout %a, %s {instance = 1 : i64, probability = 0.1 : f64} : tensor<?x8xf32>
  dyna.return %b : tensor<?x8xf32>
}

// -----

// A result that the memory phase has given a place stays where it is.

// CHECK-LABEL: dyna.layer @placed
// CHECK:       dyna.dropout
// CHECK-NEXT:  dyna.relu
// CHECK-NEXT:  dyna.relu
// CHECK-NEXT:  dyna.return
dyna.layer @placed(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %a = dyna.dropout %x, %s {instance = 0 : i64, probability = 0.0 : f64, places = [#dyna.place<workspace>]} : tensor<?x8xf32>
  %b = dyna.relu %a {places = [#dyna.place<workspace>]} : tensor<?x8xf32>
  %c = dyna.relu %b {places = [#dyna.place<output>]} : tensor<?x8xf32>
  dyna.return %c : tensor<?x8xf32>
}

// -----

// A rotation and its inverse cancel, in either order.

// CHECK-LABEL: dyna.layer @rotary_inverse
// CHECK-SAME:  (%[[X:.*]]: tensor<?x8xf32>
// CHECK-NEXT:  dyna.return %[[X]]
dyna.layer @rotary_inverse(%x: tensor<?x8xf32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %a = dyna.rotary %x, %s {head_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<?x8xf32>
  %b = dyna.rotary %a, %s {head_dim = 4 : i64, theta = 1.0e4 : f64, inverse} : tensor<?x8xf32>
  %c = dyna.rotary %b, %s {head_dim = 2 : i64, theta = 1.0e4 : f64, inverse} : tensor<?x8xf32>
  %d = dyna.rotary %c, %s {head_dim = 2 : i64, theta = 1.0e4 : f64} : tensor<?x8xf32>
  dyna.return %d : tensor<?x8xf32>
}

// -----

// Not so with another direction, base, head size, scaling, or other segments.

// CHECK-LABEL:   dyna.layer @rotary_other
// CHECK-COUNT-7: dyna.rotary
// CHECK:         dyna.return
dyna.layer @rotary_other(%x: tensor<?x8xf32>, %s: !dyna.segments, %t: !dyna.segments) -> tensor<?x8xf32> {
  %a = dyna.rotary %x, %s {head_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<?x8xf32>
  %b = dyna.rotary %a, %s {head_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<?x8xf32>
  %c = dyna.rotary %b, %s {head_dim = 4 : i64, theta = 5.0e5 : f64, inverse} : tensor<?x8xf32>
  %d = dyna.rotary %c, %s {head_dim = 8 : i64, theta = 5.0e5 : f64} : tensor<?x8xf32>
  %e = dyna.rotary %d, %t {head_dim = 8 : i64, theta = 5.0e5 : f64, inverse} : tensor<?x8xf32>
  %f = dyna.rotary %e, %t {head_dim = 8 : i64, theta = 5.0e5 : f64, scaling = #dyna.rope_scaling<factor = 2.0>} : tensor<?x8xf32>
  %g = dyna.rotary %f, %t {head_dim = 8 : i64, theta = 5.0e5 : f64, inverse, scaling = #dyna.rope_scaling<factor = 4.0>} : tensor<?x8xf32>
  dyna.return %g : tensor<?x8xf32>
}

// -----

// The second relu does nothing; a relu behind something else does.

// CHECK-LABEL: dyna.layer @relu
// CHECK-SAME:  (%[[X:.*]]: tensor<?x8xf32>
// CHECK-NEXT:  %[[A:.*]] = dyna.relu %[[X]]
// CHECK-NEXT:  %[[B:.*]] = dyna.silu %[[A]]
// CHECK-NEXT:  %[[C:.*]] = dyna.relu %[[B]]
// CHECK-NEXT:  dyna.return %[[C]]
dyna.layer @relu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = dyna.relu %x : tensor<?x8xf32>
  %b = dyna.relu %a : tensor<?x8xf32>
  %c = dyna.silu %b : tensor<?x8xf32>
  %d = dyna.relu %c : tensor<?x8xf32>
  dyna.return %d : tensor<?x8xf32>
}

// -----

dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}

// A cast behind a widening one takes the first operand.

// CHECK-LABEL: dyna.function @cast_widening
// CHECK-SAME:  (%[[A:[^:]*]]: tensor<8xbf16> {{.*}}, %[[B:[^:]*]]: tensor<8xf32>
// CHECK-NEXT:  %[[C:.*]] = dyna.cast %[[A]] : tensor<8xbf16> -> tensor<8xf64>
// CHECK-NEXT:  %[[D:.*]] = dyna.cast %[[B]] : tensor<8xf32> -> tensor<8xbf16>
// CHECK-NEXT:  dyna.return %[[C]], %[[D]], %[[A]] :
dyna.function @cast_widening of @l as cast(%a: tensor<8xbf16> in <input>, %b: tensor<8xf32> in <input, index = 1>)
    -> (tensor<8xf64> in <output>, tensor<8xbf16> in <output, index = 1>, tensor<8xbf16> in <output, index = 2>) {
  %a1 = dyna.cast %a : tensor<8xbf16> -> tensor<8xf32>
  %a2 = dyna.cast %a1 : tensor<8xf32> -> tensor<8xf64>
  %a3 = dyna.cast %a2 : tensor<8xf64> -> tensor<8xbf16>
  %b1 = dyna.cast %b : tensor<8xf32> -> tensor<8xf64>
  %b2 = dyna.cast %b1 : tensor<8xf64> -> tensor<8xbf16>
  dyna.return %a2, %b2, %a3 : tensor<8xf64>, tensor<8xbf16>, tensor<8xbf16>
}

// Behind a narrowing one it does not: f64 -> f32 -> bf16 rounds twice, f32 -> bf16 -> f32 loses bits.

// CHECK-LABEL:   dyna.function @cast_narrowing
// CHECK-COUNT-4: dyna.cast
// CHECK:         dyna.return
dyna.function @cast_narrowing of @l as cast(%a: tensor<8xf64> in <input>, %b: tensor<8xf32> in <input, index = 1>)
    -> (tensor<8xbf16> in <output>, tensor<8xf32> in <output, index = 1>) {
  %a1 = dyna.cast %a : tensor<8xf64> -> tensor<8xf32>
  %a2 = dyna.cast %a1 : tensor<8xf32> -> tensor<8xbf16>
  %b1 = dyna.cast %b : tensor<8xf32> -> tensor<8xbf16>
  %b2 = dyna.cast %b1 : tensor<8xbf16> -> tensor<8xf32>
  dyna.return %a2, %b2 : tensor<8xbf16>, tensor<8xf32>
}
