// Gradients of tables: a warp has some columns of a run, of all rows with one token or position.

// RUN: dyna-opt %s --dyna-convert-to-cuda --cse --split-input-file --verify-diagnostics | FileCheck %s
// RUN: dyna-opt %s --dyna-convert-to-cuda --cse --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=HOST

module attributes {dyna.target = "cuda"} {
dyna.layer @l[%b: tensor<512xf32>](%x: tensor<?x512xf32>) -> tensor<?x512xf32> {
  %y = dyna.bias %x, %b : tensor<?x512xf32>, tensor<512xf32>
  dyna.return %y : tensor<?x512xf32>
}

// Four rows are on their way before the first is added, each to sums of its own columns, in
// order; a row behind the run is loaded and not added. Nobody waits for other lanes.
// CHECK-LABEL:   llvm.func @tokens_table0(
// CHECK-SAME:      nvvm.maxntid = array<i32: 128>
// CHECK:           arith.remui
// CHECK:           %[[FOUR:.*]] = arith.constant 4 : i64
// CHECK:           scf.for %{{.*}} step %[[FOUR]] iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (vector<4xf32>, vector<4xf32>)
// CHECK-COUNT-8:     llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK-NOT:         llvm.load
// CHECK-COUNT-8:     arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<4xf32>
// CHECK:             scf.yield
// CHECK-COUNT-2:   llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
// CHECK-NOT:       nvvm.shfl
// CHECK:           llvm.return

// Without runs the function fails. Two blocks' columns for four runs each.
// HOST-LABEL:   llvm.func @tokens(
// HOST:           llvm.call @dyna_check_ids(
// HOST:           %[[NO_RUNS:.*]] = llvm.icmp "eq" %[[STARTS:.*]], %{{.*}} : !llvm.ptr
// HOST:           arith.select %[[NO_RUNS]], %{{.*}}, %{{.*}} : i32
// HOST:           llvm.cond_br
// HOST:           llvm.call @dyna_launch_kernel
dyna.function @tokens of @l as backward(%dy: tensor<?x512xf32> in <input>, %ids: tensor<?xi32> in <saved_input>, %g: tensor<13x512xf32> in <gradient>)
    -> (tensor<13x512xf32> in <gradient>) {
  %r = dyna.embedding_grad %dy, %ids, %g {places = [#dyna.place<gradient>]} : tensor<?x512xf32>, tensor<?xi32>, tensor<13x512xf32>
  dyna.return %r : tensor<13x512xf32>
}

// CHECK-LABEL:   llvm.func @positions_table0(
// CHECK:           llvm.load %{{.*}} : !llvm.ptr -> i64
// HOST-LABEL:   llvm.func @positions(
// HOST:           llvm.call @dyna_check_positions(
dyna.function @positions of @l as backward(%dy: tensor<?x512xf32> in <input>, %s: !dyna.segments in <segments>, %g: tensor<13x512xf32> in <gradient>)
    -> (tensor<13x512xf32> in <gradient>) {
  %r = dyna.positions_grad %dy, %s, %g {places = [#dyna.place<gradient>]} : tensor<?x512xf32>, tensor<13x512xf32>
  dyna.return %r : tensor<13x512xf32>
}
}

// -----

// There are runs of the micro-batch's tokens alone.
module attributes {dyna.target = "cuda"} {
dyna.layer @l[%b: tensor<32xf32>](%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %y = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
  dyna.return %y : tensor<?x32xf32>
}
dyna.function @other of @l as backward(%dy: tensor<?x32xf32> in <input>, %ids: tensor<?xi32> in <products>, %g: tensor<13x32xf32> in <gradient>)
    -> (tensor<13x32xf32> in <gradient>) {
  // expected-error @+1 {{expects the ids of the micro-batch's tokens, which are the input that the layer keeps, but got ids in #dyna.place<products>}}
  %r = dyna.embedding_grad %dy, %ids, %g {places = [#dyna.place<gradient>]} : tensor<?x32xf32>, tensor<?xi32>, tensor<13x32xf32>
  dyna.return %r : tensor<13x32xf32>
}
}
