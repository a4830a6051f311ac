// Kernels over rows say what they move at least for each: activations that come from outside once, those that leave once.

// RUN: dyna-opt %s --dyna-convert-to-cuda -o %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// The conversions to LLVM's dialect keep that; PTX and what is emulated are made without.
// RUN: dyna-opt %S/../cpu/Inputs/small-gpt.mlir --dyna-convert-compute-type=type=bf16 --dyna-differentiate --dyna-lower-cuda -o %t.lowered.mlir
// RUN: FileCheck %s --input-file=%t.lowered.mlir --check-prefix=LOWERED
// RUN: dyna-opt %t.lowered.mlir --dyna-embed-kernels="arch=sm_80 ptxas=none" 2>&1 | FileCheck %s --check-prefix=EMBEDDED --implicit-check-not=dyna.row_bytes
// RUN: dyna-opt %t.lowered.mlir --dyna-embed-kernels=arch=emulated | FileCheck %s --check-prefix=EMBEDDED --implicit-check-not=dyna.row_bytes
// LOWERED: llvm.func @block_forward_rows0({{.*}}) attributes {dyna.row_bytes = {{[0-9]+}} : i64, nvvm.kernel,
// EMBEDDED: constant @dyna_name_block_forward_rows0("block_forward_rows0\00")
// EMBEDDED: constant @dyna_device_code

module attributes {dyna.target = "cuda"} {
dyna.layer @l[%b: tensor<768xbf16>](%x: tensor<?x768xbf16>) -> tensor<?x768xbf16> {
  %y = dyna.bias %x, %b : tensor<?x768xbf16>, tensor<768xbf16>
  dyna.return %y : tensor<?x768xbf16>
}

// Two rows of 768 x 2 bytes, though there are three passes over the first; the vectors are all rows'.
// CHECK-LABEL: llvm.func @norm_rows0(
// CHECK-SAME:    attributes {dyna.row_bytes = 3072 : i64, nvvm.kernel,
dyna.function @norm of @l as forward(%w: tensor<768xbf16> in <parameter>, %b: tensor<768xbf16> in <parameter, index = 1>, %x: tensor<?x768xbf16> in <input>)
    -> (tensor<?x768xbf16> in <output>) {
  %y = dyna.rows : tensor<?x768xbf16> {
    %0 = dyna.layer_norm %x, %w, %b {epsilon = 1.0e-5 : f64} : tensor<?x768xbf16>, tensor<768xbf16>
    dyna.yield %0 : tensor<?x768xbf16>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x768xbf16>
}

// The gradient of a norm and of the residual around it, with sums for three vectors: x, dy and the residual's gradient in, one out.
// What adds up partial sums goes over columns, and says nothing of rows.
// CHECK-LABEL: llvm.func @gradient_rows0(
// CHECK-SAME:    attributes {dyna.row_bytes = 6144 : i64, nvvm.kernel,
// CHECK-LABEL: llvm.func @gradient_sum1(
// CHECK-SAME:    attributes {nvvm.kernel,
dyna.function @gradient of @l as backward(%w: tensor<768xbf16> in <parameter>, %dw: tensor<768xf32> in <gradient>, %db: tensor<768xf32> in <gradient, index = 1>, %dc: tensor<768xf32> in <gradient, index = 2>, %x: tensor<?x768xbf16> in <saved_input>, %r: tensor<?x768xbf16> in <input>, %dy: tensor<?x768xbf16> in <products>)
    -> (tensor<?x768xbf16> in <output>, tensor<768xf32> in <gradient>, tensor<768xf32> in <gradient, index = 1>, tensor<768xf32> in <gradient, index = 2>) {
  %y:4 = dyna.rows : tensor<768xf32>, tensor<768xf32>, tensor<?x768xbf16>, tensor<768xf32> {
    %weight_result, %bias_result = dyna.layer_norm_grad_weight %x, %dy, %dw, %db {epsilon = 1.0e-5 : f64} : tensor<?x768xbf16>, tensor<768xf32>
    %0 = dyna.layer_norm_grad_input %x, %w, %dy {epsilon = 1.0e-5 : f64} : tensor<?x768xbf16>, tensor<768xbf16>
    %1 = dyna.add %0, %r : tensor<?x768xbf16>
    %2 = dyna.bias_grad %1, %dc : tensor<?x768xbf16>, tensor<768xf32>
    dyna.yield %weight_result, %bias_result, %1, %2 : tensor<768xf32>, tensor<768xf32>, tensor<?x768xbf16>, tensor<768xf32>
  } {places = [#dyna.place<gradient>, #dyna.place<gradient, index = 1>, #dyna.place<output>, #dyna.place<gradient, index = 2>, #dyna.place<workspace>]}
  dyna.return %y#2, %y#0, %y#1, %y#3 : tensor<?x768xbf16>, tensor<768xf32>, tensor<768xf32>, tensor<768xf32>
}

// A part of wider rows: its columns count, not the stride. Read and written in place, which is twice.
// CHECK-LABEL: llvm.func @column_rows0(
// CHECK-SAME:    attributes {dyna.row_bytes = 256 : i64, nvvm.kernel,
dyna.function @column of @l as forward(%b: tensor<32xf32> in <parameter>, %x: tensor<?x32xf32> in <products, column = 128, stride = 384>)
    -> (tensor<?x32xf32> in <products, column = 128, stride = 384>) {
  %y = dyna.rows : tensor<?x32xf32> {
    %0 = dyna.bias %x, %b : tensor<?x32xf32>, tensor<32xf32>
    dyna.yield %0 : tensor<?x32xf32>
  } {places = [#dyna.place<products, column = 128, stride = 384>]}
  dyna.return %y : tensor<?x32xf32>
}

// A row of the tokens' table and of the result; behind it two rows again, as samples share the table of positions.
// CHECK-LABEL: llvm.func @lookup_embedding0(
// CHECK-SAME:    attributes {dyna.row_bytes = 128 : i64, nvvm.kernel,
// CHECK-LABEL: llvm.func @lookup_rows1(
// CHECK-SAME:    attributes {dyna.row_bytes = 128 : i64, nvvm.kernel,
dyna.function @lookup of @l as forward(%t: tensor<13x32xbf16> in <parameter>, %p: tensor<9x32xbf16> in <parameter, index = 1>, %ids: tensor<?xi32> in <input>, %s: !dyna.segments in <segments>)
    -> (tensor<?x32xbf16> in <output>) {
  %x = dyna.embedding %ids, %t {places = [#dyna.place<output>]} : tensor<?xi32>, tensor<13x32xbf16>
  %y = dyna.rows : tensor<?x32xbf16> {
    %0 = dyna.positions %p, %s : tensor<9x32xbf16>
    %1 = dyna.add %x, %0 : tensor<?x32xbf16>
    dyna.yield %1 : tensor<?x32xbf16>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x32xbf16>
}

// Of what is added up to a table's rows a row each.
// CHECK-LABEL: llvm.func @tables_table0(
// CHECK-SAME:    attributes {dyna.row_bytes = 64 : i64, nvvm.kernel,
dyna.function @tables of @l as backward(%dy: tensor<?x32xbf16> in <input>, %ids: tensor<?xi32> in <saved_input>, %g: tensor<13x32xf32> in <gradient>)
    -> (tensor<13x32xf32> in <gradient>) {
  %r = dyna.embedding_grad %dy, %ids, %g {places = [#dyna.place<gradient>]} : tensor<?x32xbf16>, tensor<?xi32>, tensor<13x32xf32>
  dyna.return %r : tensor<13x32xf32>
}

// What is handed out elsewhere than it lies.
// CHECK-LABEL: llvm.func @copied_copy0(
// CHECK-SAME:    attributes {dyna.row_bytes = 256 : i64, nvvm.kernel,
dyna.function @copied of @l as forward(%x: tensor<?x32xf32> in <input>) -> (tensor<?x32xf32> in <output>) {
  dyna.return %x : tensor<?x32xf32>
}
}
