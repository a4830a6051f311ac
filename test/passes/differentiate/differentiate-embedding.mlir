// RUN: dyna-opt %s -dyna-differentiate -mlir-print-local-scope | FileCheck %s

// Token ids have no gradient: backward gives accumulators only. Nothing is saved
// but the ids, so the recomputations are there and empty.

// CHECK-LABEL: dyna.function @embed.forward of @embed as forward
// CHECK-SAME:    %{{[a-z0-9_]+}}: tensor<?xi32> in <input>, %{{[a-z0-9_]+}}: !dyna.segments in <segments>) -> (tensor<?x8xf32> in <output>) {
// CHECK-LABEL: dyna.function @embed.recompute_selective
// CHECK-SAME:    in <saved_input>) {
// CHECK-NEXT:    dyna.return{{$}}
// CHECK-LABEL: dyna.function @embed.recompute_full
// CHECK-SAME:    in <saved_input>) {
// CHECK-NEXT:    dyna.return{{$}}
// CHECK-LABEL: dyna.function @embed.backward of @embed as backward
// CHECK-SAME:    %[[G0:[a-z0-9_]+]]: tensor<33x8xf32> in <gradient>, %[[G1:[a-z0-9_]+]]: tensor<16x8xf32> in <gradient, index = 1>,
// CHECK-SAME:    %[[S:[a-z0-9_]+]]: !dyna.segments in <segments>, %[[IDS:[a-z0-9_]+]]: tensor<?xi32> in <saved_input>, %[[DZ:[a-z0-9_]+]]: tensor<?x8xf32> in <input>)
// CHECK-SAME:    -> (tensor<33x8xf32> in <gradient>, tensor<16x8xf32> in <gradient, index = 1>) {
// CHECK-NEXT:    %[[DY:.+]] = dyna.dropout %[[DZ]], %[[S]]
// CHECK-NEXT:    %[[P:.+]] = dyna.positions_grad %[[DY]], %[[S]], %[[G1]]
// CHECK-NEXT:    %[[E:.+]] = dyna.embedding_grad %[[DY]], %[[IDS]], %[[G0]]
// CHECK-NEXT:    dyna.return %[[E]], %[[P]]

// Both tables read one gradient: it is deferred once.
// CHECK-LABEL: dyna.function @embed.backward_input
// CHECK-SAME:    -> (tensor<?x8xf32> in <deferred>) {
// CHECK-NEXT:    %[[DY:.+]] = dyna.dropout
// CHECK-NEXT:    dyna.return %[[DY]]
// CHECK-LABEL: dyna.function @embed.backward_weight
// CHECK-SAME:    %[[DY:[a-z0-9_]+]]: tensor<?x8xf32> in <deferred>)
// CHECK-NEXT:    dyna.positions_grad %[[DY]]
// CHECK-NEXT:    dyna.embedding_grad %[[DY]]
// CHECK-NEXT:    dyna.return
dyna.layer @embed[%wte: tensor<33x8xf32>, %wpe: tensor<16x8xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> tensor<?x8xf32> {
  %e = dyna.embedding %ids, %wte : tensor<?xi32>, tensor<33x8xf32>
  %p = dyna.positions %wpe, %s : tensor<16x8xf32>
  %x = dyna.add %e, %p : tensor<?x8xf32>
  %y = dyna.dropout %x, %s {instance = 0 : i64, probability = 1.0e-1 : f64} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}
