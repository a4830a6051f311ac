// A square and its gradient are in sweeps; the whole way to code takes them.
// RUN: dyna-opt %s -dyna-differentiate | dyna-opt -dyna-memory | FileCheck %s
// RUN: dyna-opt %s -dyna-differentiate | dyna-opt -dyna-memory | dyna-opt -dyna-lower-cpu | FileCheck %s --check-prefix=CODE

// CHECK-LABEL: dyna.function @l.forward
// CHECK:         dyna.rows
// CHECK-NEXT:      dyna.square
// CHECK-NEXT:      dyna.square
// CHECK-LABEL: dyna.function @l.backward
// CHECK:         dyna.rows
// CHECK:           dyna.mul
// CODE-NOT: dyna.square
// CODE:     llvm.fmul
// CODE-NOT: dyna.square
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %a = dyna.square %x : tensor<?x64xf32>
  %b = dyna.square %a : tensor<?x64xf32>
  dyna.return %b : tensor<?x64xf32>
}
