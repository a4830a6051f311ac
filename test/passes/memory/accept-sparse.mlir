// RUN: dyna-opt %s --dyna-differentiate --dyna-accept-sparse | FileCheck %s
// RUN: dyna-opt %s --dyna-differentiate --dyna-memory=sparse=true | FileCheck %s
// RUN: dyna-opt %s --dyna-differentiate --dyna-memory=sparse=true --dyna-memory=sparse=true | FileCheck %s
// RUN: dyna-opt %s --dyna-differentiate --dyna-memory | FileCheck %s --check-prefix=DENSE
// RUN: not dyna-opt %s --dyna-differentiate --dyna-memory='target=cuda sparse=true' 2>&1 | FileCheck %s --check-prefix=CUDA
// RUN: not dyna-opt %s --dyna-accept-sparse 2>&1 | FileCheck %s --check-prefix=NONE

// DENSE-NOT: sparse
// CUDA: has no kernels for sparse weights on cuda: plan for cpu, or leave --dyna-accept-sparse out
// NONE: error: {{.*}}--dyna-differentiate

// Two products: both weights may be sparse, the vector may not.
dyna.layer @two[%g: tensor<64xf32>, %a: tensor<64x64xf32>, %b: tensor<64x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x64xf32>, tensor<64xf32>
  %1 = dyna.linear %0, %a : tensor<?x64xf32>, tensor<64x64xf32>
  %2 = dyna.linear %1, %b : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %2 : tensor<?x64xf32>
}
// CHECK: dyna.function @two.evaluate {{.*}} attributes {sparse = array<i64: 1, 2>}
// CHECK: dyna.function @two.forward {{.*}} attributes {sparse = array<i64: 1, 2>}
// CHECK: dyna.function @two.backward of {{.*}} attributes {sparse = array<i64: 1, 2>}
// CHECK: dyna.function @two.backward_weight of {{.*}} attributes {sparse = array<i64: 1, 2>}
// CHECK: dyna.function @two.update
// CHECK-NOT: sparse
// CHECK-SAME: {

// An embedding reads its table, which is a product's weight as well: it stays dense.
dyna.layer @look[%w: tensor<64x64xf32>](%ids: tensor<?xi32>) -> tensor<?x64xf32> {
  %0 = dyna.embedding %ids, %w : tensor<?xi32>, tensor<64x64xf32>
  %1 = dyna.linear %0, %w : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %1 : tensor<?x64xf32>
}
// CHECK: dyna.function @look.forward
// CHECK-NOT: sparse
// CHECK: dyna.function @look.grad_norm
