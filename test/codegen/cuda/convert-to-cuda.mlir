// How sweeps become kernels: host code, slots, rows of warps, sums by shuffles, sums over rows
// by blocks.

// RUN: dyna-opt %s --dyna-convert-to-cuda --cse | FileCheck %s
// RUN: dyna-opt %s --dyna-convert-to-cuda --cse | FileCheck %s --check-prefix=HOST

// RUN: not dyna-opt %s --dyna-embed-kernels 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: expects kernels in 'dyna_kernels'; run --dyna-convert-to-cuda before they are embedded
// RUN: not dyna-opt %s --dyna-convert-to-cuda --dyna-embed-kernels=arch=sm_75 2>&1 | FileCheck %s --check-prefix=ARCH
// ARCH: error: expects architectures among sm_80 (which sm_86 and sm_89 run, too), sm_90, sm_100 and sm_120, separated by commas, or emulated alone, but got 'sm_75'

module attributes {dyna.target = "cuda"} {
dyna.layer @l[%b: tensor<32xf32>](%x: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %y = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
  dyna.return %y : tensor<?x32xf32>
}

// Nothing of the dyna dialect is left.
// CHECK-NOT: dyna.{{parameter|layer|function|rows}}

// Without a sum over columns: a lane has four columns of its warp's row, in one access; lanes
// behind the row load its last ones and store nothing.
// CHECK-LABEL: llvm.func @bias_rows0(
// CHECK-SAME:    %[[SLOTS:.*]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<4 x i64>, nvvm.grid_constant}) attributes {dyna.row_bytes = 256 : i64, nvvm.kernel, nvvm.maxntid = array<i32: 256>}
// CHECK:         nvvm.read.ptx.sreg.tid.x
// CHECK:         %[[IS_COLUMN:.*]] = arith.cmpi slt
// CHECK:         %[[COLUMN:.*]] = arith.minsi
// CHECK:         scf.for
// CHECK:           llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:           arith.addf %{{.*}} : vector<4xf32>
// CHECK:           scf.if %[[IS_COLUMN]] {
// CHECK-NEXT:        llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
// CHECK-NEXT:      }

// The host fills slots, the last with the number of rows, and launches kernel 0 in a block per
// eight rows; the status is returned unless it is DYNA_OK.
// HOST-LABEL: llvm.func @bias(
// HOST-SAME:    %[[CONTEXT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[SEGMENTS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> i32
// HOST:         %[[BLOCKS:.*]] = arith.divui
// HOST:         %[[CODE:.*]] = llvm.mlir.addressof @dyna_device_code
// HOST:         %[[STATUS:.*]] = llvm.call @dyna_launch_kernel(%[[CONTEXT]], %[[CODE]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// HOST:         arith.cmpi eq, %[[STATUS]]
dyna.function @bias of @l as forward(%b: tensor<32xf32> in <parameter>, %x: tensor<?x32xf32> in <products, tq = 256, constant = 64>)
    -> (tensor<?x32xf32> in <elementwise, tq = 128>) {
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<elementwise, tq = 128>]}
  dyna.return %y : tensor<?x32xf32>
}

// Accesses are no wider than the columns and strides of all tensors have in common: eight bytes
// behind a multiple of sixteen, rows of 34 elements, and both as they should be.
// CHECK-LABEL: llvm.func @column_rows0(
// CHECK-NOT:     vector<4xf32>
// CHECK:         llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<2xf32>
// CHECK:         llvm.return
// CHECK-LABEL: llvm.func @stride_rows0(
// CHECK-NOT:     vector<4xf32>
// CHECK:         llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr -> vector<2xf32>
// CHECK:         llvm.return
// CHECK-LABEL: llvm.func @aligned_rows0(
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK:         llvm.return
dyna.function @column of @l as forward(%b: tensor<32xf32> in <parameter>, %x: tensor<?x32xf32> in <products, tq = 256, column = 8, stride = 144>)
    -> (tensor<?x32xf32> in <elementwise, tq = 128>) {
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<elementwise, tq = 128>]}
  dyna.return %y : tensor<?x32xf32>
}
dyna.function @stride of @l as forward(%b: tensor<32xf32> in <parameter>, %x: tensor<?x32xf32> in <products, tq = 256, stride = 136>)
    -> (tensor<?x32xf32> in <elementwise, tq = 128>) {
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<elementwise, tq = 128>]}
  dyna.return %y : tensor<?x32xf32>
}
dyna.function @aligned of @l as forward(%b: tensor<32xf32> in <parameter>, %x: tensor<?x32xf32> in <products, tq = 256, column = 16, stride = 144>)
    -> (tensor<?x32xf32> in <elementwise, tq = 128>) {
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<elementwise, tq = 128>]}
  dyna.return %y : tensor<?x32xf32>
}

// A norm: what the first pass loads is not loaded again, nor kept in memory; all lanes get the
// sum by five shuffles.
// CHECK-LABEL: llvm.func @norm_rows0(
// CHECK-SAME:    nvvm.maxntid = array<i32: 128>
// CHECK:         scf.for
// CHECK-COUNT-2:   llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK-NOT:       llvm.store
// CHECK:           vector.reduction <add>
// CHECK-COUNT-5:   nvvm.shfl.sync bfly
// CHECK-NOT:       nvvm.shfl.sync
// CHECK:           math.sqrt
// Of the weight:
// CHECK-COUNT-2:   llvm.load %{{.*}} -> vector<4xf32>
// CHECK-NOT:       llvm.load
// CHECK-COUNT-2:   llvm.store
// CHECK:         llvm.return
dyna.function @norm of @l as forward(%w: tensor<256xf32> in <parameter>, %x: tensor<?x256xf32> in <input>)
    -> (tensor<?x256xf32> in <output>) {
  %y = dyna.rows : tensor<?x256xf32> {
    %0 = dyna.rms_norm %x, %w {epsilon = 1.0e-5 : f64} : tensor<?x256xf32>, tensor<256xf32>
    dyna.yield %0 : tensor<?x256xf32>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x256xf32>
}

// A row wider than a warp keeps is a block's: its warps meet in shared memory.
// CHECK-LABEL: llvm.func @wide_rows0(
// CHECK-SAME:    nvvm.maxntid = array<i32: 256>
// CHECK:         llvm.mlir.addressof @wide_rows0.shared : !llvm.ptr<3>
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK:         nvvm.barrier0
// CHECK:         nvvm.barrier0
dyna.function @wide of @l as forward(%w: tensor<8192xf32> in <parameter>, %x: tensor<?x8192xf32> in <input>)
    -> (tensor<?x8192xf32> in <output>) {
  %y = dyna.rows : tensor<?x8192xf32> {
    %0 = dyna.rms_norm %x, %w {epsilon = 1.0e-5 : f64} : tensor<?x8192xf32>, tensor<8192xf32>
    dyna.yield %0 : tensor<?x8192xf32>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x8192xf32>
}

// Rotated rows that another pass reads back are in shared memory: a barrier before they are
// written, since others may still read those of the row before, and one behind.
// CHECK-LABEL: llvm.func @turned_rows0(
// CHECK:         scf.for
// CHECK-NOT:     scf.for
// CHECK:           nvvm.barrier0
// CHECK:           scf.for
// CHECK-NOT:       nvvm.barrier0
// CHECK-COUNT-2:     llvm.store
// CHECK-SAME:      : vector<4xf32>, !llvm.ptr{{$}}
// CHECK-NEXT:      {{^ *}}}
// CHECK-NEXT:      nvvm.barrier0
// CHECK-NEXT:      llvm.getelementptr
// CHECK-NEXT:      llvm.load
// CHECK:         llvm.return
dyna.function @turned of @l as forward(%w: tensor<48xf32> in <parameter>, %x: tensor<?x48xf32> in <input>, %s: !dyna.segments in <segments>)
    -> (tensor<?x48xf32> in <output>) {
  %y = dyna.rows : tensor<?x48xf32> {
    %0 = dyna.rotary %x, %s {head_dim = 8 : i64, theta = 1.0e2 : f64} : tensor<?x48xf32>
    %1 = dyna.rms_norm %0, %w {epsilon = 1.0e-5 : f64} : tensor<?x48xf32>, tensor<48xf32>
    dyna.yield %1 : tensor<?x48xf32>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x48xf32>
}

// A sweep behind a product is none of its business, if it cannot be described.
// HOST-LABEL: llvm.func @sweep(
// HOST:         llvm.call @dyna_matmul_f32
// HOST:         llvm.call @dyna_launch_kernel
dyna.function @sweep of @l as forward(%w: tensor<32x32xf32> in <parameter>, %x: tensor<?x32xf32> in <input>)
    -> (tensor<?x32xf32> in <output>) {
  %m = dyna.linear %x, %w {places = [#dyna.place<workspace>]} : tensor<?x32xf32>, tensor<32x32xf32>
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.relu %m : tensor<?x32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x32xf32>
}

// A sum over rows stays in registers over all rows of a warp; the warps of a block add theirs
// in order, in shared memory, and each block has a row of the scratch memory. Eight warps add those
// up, a share each, and the first the shares.
// CHECK-LABEL: llvm.func @sum_rows0(
// CHECK:         scf.for {{.*}} iter_args(
// CHECK:           arith.addf
// CHECK:           scf.yield
// CHECK:         nvvm.barrier0
// CHECK-LABEL: llvm.func @sum_sum1(
// CHECK-SAME:    nvvm.maxntid = array<i32: 256>
// CHECK:         scf.for {{.*}} iter_args(
// CHECK-COUNT-4:   llvm.load
// CHECK:         nvvm.barrier0
// CHECK-COUNT-9: llvm.load
// CHECK:         llvm.store

// As many blocks as the rows want, in whole groups, 512 at most.
// HOST-LABEL: llvm.func @sum(
// HOST-DAG:     %[[MOST:.*]] = arith.constant 512 : i64
// HOST:         arith.minsi %[[MOST]]
dyna.function @sum of @l as forward(%g: tensor<64xf32> in <gradient>, %x: tensor<?x64xf32> in <input>)
    -> (tensor<64xf32> in <gradient>) {
  %y = dyna.rows : tensor<64xf32> {
    %0 = dyna.bias_grad %x, %g : tensor<?x64xf32>, tensor<64xf32>
    dyna.yield %0 : tensor<64xf32>
  } {places = [#dyna.place<gradient>, #dyna.place<workspace>]}
  dyna.return %y : tensor<64xf32>
}

// What a product can be told is a part of the call: C is where the sweep's result lies, and no
// kernel is launched.
// HOST-LABEL: llvm.func @described(
// HOST:         llvm.getelementptr inbounds %[[PRODUCT:[^ ]*]][84]
// HOST-NEXT:    llvm.store %c1_i32
// HOST:         llvm.store %c2_i32, %[[EPILOGUE:[^ ]*]] :
// HOST:         llvm.store %[[EPILOGUE]], %{{.*}} : !llvm.ptr, !llvm.ptr
// HOST:         llvm.call @dyna_matmul_f32(%{{.*}}, %[[PRODUCT]])
// HOST-NOT:     llvm.call @dyna_launch_kernel
// HOST:         llvm.return
dyna.function @described of @l as forward(%w: tensor<32x32xf32> in <parameter, index = 1>, %b: tensor<32xf32> in <parameter>, %x: tensor<?x32xf32> in <input>)
    -> (tensor<?x32xf32> in <output>, tensor<?x32xf32> in <products>) {
  %m = dyna.linear %x, %w {places = [#dyna.place<products>]} : tensor<?x32xf32>, tensor<32x32xf32>
  %y:2 = dyna.rows : tensor<?x32xf32>, tensor<?x32xf32> {
    %0 = dyna.bias %m, %b : tensor<?x32xf32>, tensor<32xf32>
    %1 = dyna.gelu %0 tanh : tensor<?x32xf32>
    dyna.yield %1, %0 : tensor<?x32xf32>, tensor<?x32xf32>
  } {places = [#dyna.place<output>, #dyna.place<products>]}
  dyna.return %y#0, %y#1 : tensor<?x32xf32>, tensor<?x32xf32>
}
}
