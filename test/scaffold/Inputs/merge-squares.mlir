// A product of a value with itself becomes a square, alone and in its phase; one of two values stays.
// RUN: dyna-opt %s --pass-pipeline='builtin.module(dyna.function(dyna-merge-squares))' | FileCheck %s
// RUN: dyna-opt %s -dyna-memory | FileCheck %s --check-prefix=PHASE

// CHECK-LABEL: dyna.function @f
// CHECK-NEXT:  %[[A:.*]] = dyna.square %[[X:[^ ]*]] :
// CHECK-NEXT:  %[[B:.*]] = dyna.mul %[[A]], %[[X]]
// CHECK-NEXT:  dyna.return %[[B]]
// PHASE:       dyna.rows
// PHASE-NEXT:    dyna.square
// PHASE-NEXT:    dyna.mul
dyna.function @f of @l as evaluate(%x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  %a = dyna.mul %x, %x : tensor<?x8xf32>
  %b = dyna.mul %a, %x : tensor<?x8xf32>
  dyna.return %b : tensor<?x8xf32>
}
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  dyna.return %x : tensor<?x8xf32>
}
