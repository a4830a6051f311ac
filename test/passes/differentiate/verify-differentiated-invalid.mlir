// One fault is put into a differentiated module at a time.
// RUN: dyna-opt %s -dyna-differentiate -o %t.mlir
// RUN: dyna-opt %t.mlir -dyna-verify-differentiated -o /dev/null

// RUN: sed -e '/@l.backward_input of/,/^  }/d' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF1-MISSING
// DIFF1-MISSING: 'dyna.layer' op expects one function in role 'backward_input', but got 0
// RUN: sed -e 's/@l.evaluate of/@l.test of/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF1-NAME
// DIFF1-NAME: 'dyna.function' op expects the name @l.evaluate
// RUN: sed -e 's/@l.update of @l as update/@l.cast of @l as cast/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF1-CAST
// DIFF1-CAST: 'dyna.layer' op expects one function in role 'update', but got 0

// RUN: sed -e '/@l.evaluate of/s/-> (tensor<?x8xf32> in <output>)/-> (tensor<?x8xf32> in <deferred>)/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF2-MEMORY
// DIFF2-MEMORY: 'dyna.function' op has result 0 in 'deferred', where this role has none
// RUN: sed -e '/@l.evaluate of/s/-> (tensor<?x8xf32> in <output>)/-> (tensor<?x8xf32> in <output, index = 1>)/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF2-INDEX
// DIFF2-INDEX: 'dyna.function' op has result 0 in 'output' at index 1, which this role does not have
// RUN: sed -e '/@l.evaluate of/s/in <parameter, index = 1>/in <parameter, index = 2>/;/@l.evaluate of/s/tensor<8xf32> in <parameter, index = 2>/tensor<8xf32> in <parameter, index = 1>/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF2-TYPE
// DIFF2-TYPE: 'dyna.function' op expects argument 1 of type 'tensor<8xf32>', but got 'tensor<8x16xf32>'

// A second op starts from the argument: what the first adds would be lost.
// RUN: sed -e '/@l.backward of/,/^  }/s/^.*dyna.bias_grad %d_output, %d_b.*$/&\n %90 = dyna.bias_grad %d_output, %d_b : tensor<?x8xf32>, tensor<8xf32>/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF3-CHAIN
// DIFF3-CHAIN: 'dyna.function' op expects the accumulator in argument {{[0-9]+}} to pass from op to op, one use each, to result {{[0-9]+}}
// RUN: sed -e '/@l.backward of/,/^  }/s/return \(.*\), %[0-9]* :/return \1, %d_b :/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF3-SKIP
// DIFF3-SKIP: 'dyna.function' op uses the accumulator that result 3 returns
// RUN: sed -e '/@l.backward of/,/^  }/{s/, tensor<8xf32> in <gradient, index = 2>) {/) {/;s/\(return .*\), %[0-9]* : \(.*\), tensor<8xf32>/\1 : \2/}' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF3-RETURN
// DIFF3-RETURN: 'dyna.function' op takes the accumulator of parameter 2 1 times, but returns it 0 times

// RUN: sed -e '/@l.forward of/,/^  }/{s/, tensor<?x16xf32> in <elementwise>//;s/return %\([0-9]*\), %\([0-9]*\), %[0-9]* : tensor<?x8xf32>, tensor<?x16xf32>, tensor<?x16xf32>/return %\1, %\2 : tensor<?x8xf32>, tensor<?x16xf32>/}' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF4-TYPES
// DIFF4-TYPES: 'dyna.function' op reads tier 'elementwise' as ['tensor<?x16xf32>'], but 'forward' writes []
// RUN: sed -e '/@l.backward of/,/^  }/s/dyna.relu_grad %arg[0-9]*, /dyna.relu_grad %2, /' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF4-USE
// DIFF4-USE: 'dyna.function' op is given argument {{[0-9]+}} in tier 'products', but does not use it

// RUN: sed -e '/@l.evaluate of/,/^  }/s/dyna.relu %\([0-9]*\) :/dyna.dropout %\1, %rows {instance = 0 : i64, probability = 0.5 : f64} :/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF5-DROPOUT
// DIFF5-DROPOUT: 'dyna.dropout' op stands in a function that evaluates
// RUN: sed -e '/@l.recompute_selective of/,/^  }/s/%0 = dyna.relu .*/%1 = dyna.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32>\n %0 = dyna.relu %1 : tensor<?x16xf32>/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF5-PRODUCT
// DIFF5-PRODUCT: 'dyna.linear' op stands in a function that recomputes what follows from matrix products and attention

// RUN: sed -e '/@l.evaluate of/,/^  }/s/dyna.return/%90 = dyna.relu %x : tensor<?x8xf32>\n dyna.return/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF6
// DIFF6: 'dyna.relu' op computes what function @l.evaluate does not need

// What is derived again. A weight gradient is deleted; a term of the norm is
// deleted; an update decays its parameter; results change places; another epsilon.
// RUN: sed -e '/@l.backward of/,/^  }/{/dyna.bias_grad/d;s/, %0 : /, %d_b : /}' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF7-GRADIENT
// DIFF7-GRADIENT: 'dyna.function' op returns argument 5 where the layer's derivation has 'dyna.bias_grad'; run --dyna-differentiate on the layer again
// RUN: sed -e '/@l.grad_norm of/,/^  }/{/sum_squares %d_v/d;s/%d_b, %1 /%d_b, %0 /}' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF7-NORM
// DIFF7-NORM: 'dyna.sum_squares' op uses argument 3 where the layer's derivation has 'dyna.sum_squares'; run
// RUN: sed -e '/@l.update of/,/^  }/s/%v_b : /%v_b {decay} : /' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF7-DECAY
// DIFF7-DECAY: 'dyna.adamw' op has other attributes, types or operands than the layer's derivation: {decay} instead of {}; run
// RUN: sed -e '/@l.recompute_full of/,/^  }/s/return %0, %1/return %1, %0/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF7-RESULT
// DIFF7-RESULT: 'dyna.function' op returns 'dyna.linear' where the layer's derivation has 'dyna.relu'; run
// RUN: sed -e '/@n.evaluate of/,/^  }/s/e-05/e-06/' %t.mlir | not dyna-opt -dyna-verify-differentiated 2>&1 | FileCheck %s --check-prefix=DIFF7-EPSILON
// DIFF7-EPSILON: 'dyna.rms_norm' op has other attributes, types or operands than the layer's derivation: {epsilon = {{.*}}E-7 : f64} instead of {epsilon = 1.000000e-05 : f64}; run

// The order of ops may differ.
// RUN: sed -e '/@l.backward of/,/^  }/{/bias_grad/{h;d};/linear_grad_weight %3/G}' %t.mlir | dyna-opt -dyna-verify-differentiated -o /dev/null
dyna.layer @l[%w: tensor<16x8xf32>, %v: tensor<8x16xf32>, %b: tensor<8xf32>](%x: tensor<?x8xf32>, %rows: !dyna.segments) -> tensor<?x8xf32> {
  %h = dyna.linear %x, %w : tensor<?x8xf32>, tensor<16x8xf32>
  %a = dyna.relu %h : tensor<?x16xf32>
  %y = dyna.linear %a, %v, %b : tensor<?x16xf32>, tensor<8x16xf32>, tensor<8xf32>
  dyna.return %y : tensor<?x8xf32>
}
dyna.layer @n[%g: tensor<8xf32>](%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = dyna.rms_norm %x, %g {epsilon = 1.0e-5} : tensor<?x8xf32>, tensor<8xf32>
  dyna.return %y : tensor<?x8xf32>
}
