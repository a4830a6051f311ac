// RUN: dyna-opt %s --dyna-convert-to-cpu | FileCheck %s

dyna.parameter @unused : tensor<32xf32>

dyna.layer @l[%b: tensor<32xf32>](%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %y = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
  dyna.return %y : tensor<?x32xf32>
}

// Nothing of the dyna dialect is left.
// CHECK-NOT: dyna.{{parameter|layer|function|rows}}

// The signature of the ABI; the sweep goes to dyna_launch, and its status is
// returned unless it is DYNA_OK.
// CHECK-LABEL: llvm.func @bias(
// CHECK-SAME:    %[[CONTEXT:.*]]: !llvm.ptr, %[[PARAMS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[SAVED:.*]]: !llvm.ptr, %[[WORKSPACE:.*]]: !llvm.ptr, %[[SEGMENTS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// CHECK-SAME:    "prefer-vector-width", "512"
// CHECK:         %[[BODY:.*]] = llvm.mlir.addressof @bias.rows0
// CHECK:         %[[STATUS:.*]] = llvm.call @dyna_launch(%[[CONTEXT]], %[[BODY]],
// CHECK:         %[[OK:.*]] = arith.cmpi eq, %[[STATUS]]
// CHECK:         llvm.cond_br %[[OK]], ^[[NEXT:.*]], ^[[FAILED:.*]](%[[STATUS]] : i32)
// CHECK:       ^[[NEXT]]:
// CHECK:       ^[[FAILED]](%[[RESULT:.*]]: i32):
// CHECK-NEXT:    llvm.return %[[RESULT]] : i32

// One pass: each vector of x is loaded, added to and stored once.
// CHECK-LABEL: llvm.func internal @bias.rows0(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %{{.*}}: i64)
// CHECK:         scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK:           llvm.load %{{.*}} {alignment = 64 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK:           arith.addf %{{.*}} : vector<16xf32>
// CHECK:           llvm.store %{{.*}} {alignment = 64 : i64} : vector<16xf32>, !llvm.ptr
dyna.function @bias of @l as forward(%b: tensor<32xf32> in <parameter>, %x: tensor<?x32xf32> in <products, tq = 256, constant = 64>)
    -> (tensor<?x32xf32> in <elementwise, tq = 128>) {
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<elementwise, tq = 128>]}
  dyna.return %y : tensor<?x32xf32>
}

// The sweep behind a product is its epilogue: no launch of its own.
// CHECK-LABEL: llvm.func @epilogue(
// CHECK-NOT:     @dyna_launch
// CHECK:         llvm.mlir.addressof @epilogue.rows0
// CHECK:         llvm.call @dyna_matmul_f32
// CHECK-NOT:     @dyna_launch
// CHECK:         llvm.return
dyna.function @epilogue of @l as forward(%w: tensor<32x32xf32> in <parameter>, %x: tensor<?x32xf32> in <input>)
    -> (tensor<?x32xf32> in <output>) {
  %m = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x32xf32>, tensor<32x32xf32>
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.relu %m : tensor<?x32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x32xf32>
}

// A sweep that does not use the product's result is launched by itself.
// CHECK-LABEL: llvm.func @apart(
// CHECK:         llvm.call @dyna_matmul_f32
// CHECK:         llvm.call @dyna_launch
// CHECK:         llvm.return
dyna.function @apart of @l as forward(%w: tensor<32x32xf32> in <parameter>, %x: tensor<?x32xf32> in <input>)
    -> (tensor<?x32xf32> in <output>, tensor<?x32xf32> in <output, index = 1>) {
  %m = dyna.linear %x, %w {places = [#dyna.place<output, index = 1>]} : tensor<?x32xf32>, tensor<32x32xf32>
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.relu %x : tensor<?x32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<output>]}
  dyna.return %y, %m : tensor<?x32xf32>, tensor<?x32xf32>
}

// Rows of 24 bf16 are 48 bytes: aligned to 16 only. Conversion is integer code.
// CHECK-LABEL: llvm.func internal @bf16.rows0(
// CHECK-NOT:     f64
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<16xi16>
// CHECK:         arith.extui %{{.*}} : vector<16xi16> to vector<16xi32>
// CHECK:         llvm.store %{{.*}} {alignment = 16 : i64} : vector<16xi16>, !llvm.ptr
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<8xi16>
// CHECK-NOT:     math.
dyna.function @bf16 of @l as forward(%x: tensor<?x24xbf16> in <input>) -> (tensor<?x24xbf16> in <output>) {
  %y = dyna.rows : tensor<?x24xbf16> {
    %0 = dyna.relu %x : tensor<?x24xbf16>
    dyna.yield %0 : tensor<?x24xbf16>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x24xbf16>
}
