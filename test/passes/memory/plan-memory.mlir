// RUN: dyna-opt %s -split-input-file --dyna-plan-memory --dyna-verify-memory | FileCheck %s

// The product's result lies where the sweep behind it puts its own: in the
// layer's output. Nothing is left for workspace.
// CHECK-LABEL: dyna.layer @epilogue
// CHECK-SAME:    tiers = [#dyna.place<saved_input, tq = 256>, #dyna.place<products>, #dyna.place<elementwise>, #dyna.place<deferred>]
dyna.layer @epilogue[%w: tensor<64x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %m = dyna.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.gelu %m tanh : tensor<?x64xf32>
  dyna.return %y : tensor<?x64xf32>
}
// CHECK-LABEL: dyna.function @epilogue.evaluate
// CHECK-SAME:    workspace <workspace>
// CHECK:         dyna.linear {{.*}} {places = [#dyna.place<output>]}
// CHECK:         } {places = [#dyna.place<output>]}
dyna.function @epilogue.evaluate of @epilogue as evaluate(%w: tensor<64x64xf32> in <parameter>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>) {
  %m = dyna.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.rows : tensor<?x64xf32> {
    %0 = dyna.gelu %m tanh : tensor<?x64xf32>
    dyna.yield %0 : tensor<?x64xf32>
  }
  dyna.return %y : tensor<?x64xf32>
}

// -----

// Saved values lie where forward returns them, and backward finds them there.
dyna.layer @saved[%w: tensor<128x64xf32>](%x: tensor<?x64xf32>) -> tensor<?x128xf32> {
  %m = dyna.linear %x, %w : tensor<?x64xf32>, tensor<128x64xf32>
  dyna.return %m : tensor<?x128xf32>
}
// CHECK-LABEL: dyna.layer @saved
// CHECK-SAME:    #dyna.place<products, tq = 1024>, #dyna.place<elementwise, tq = 512>
// CHECK-LABEL: dyna.function @saved.forward
// CHECK-SAME:    tensor<?x128xf32> in <products>, tensor<?x128xf32> in <products, tq = 512>, tensor<?x128xf32> in <elementwise>
// CHECK:         dyna.linear {{.*}} {places = [#dyna.place<products>]}
// CHECK:         } {places = [#dyna.place<products>]}
// CHECK:         dyna.linear {{.*}} {places = [#dyna.place<products, tq = 512>]}
// The result is both returned and saved: it lies where it is returned first.
// CHECK:         } {places = [#dyna.place<output>]}
dyna.function @saved.forward of @saved as forward(%w: tensor<128x64xf32> in <parameter>, %b: tensor<128xf32> in <parameter, index = 1>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x128xf32> in <output>, tensor<?x128xf32> in <products>, tensor<?x128xf32> in <products>, tensor<?x128xf32> in <elementwise>) {
  %m = dyna.linear %x, %w : tensor<?x64xf32>, tensor<128x64xf32>
  %h = dyna.rows : tensor<?x128xf32> {
    %0 = dyna.bias %m, %b : tensor<?x128xf32>, tensor<128xf32>
    dyna.yield %0 : tensor<?x128xf32>
  }
  %n = dyna.linear %x, %w : tensor<?x64xf32>, tensor<128x64xf32>
  %a = dyna.rows : tensor<?x128xf32> {
    %1 = dyna.mul %h, %n : tensor<?x128xf32>
    dyna.yield %1 : tensor<?x128xf32>
  }
  dyna.return %a, %h, %n, %a : tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>, tensor<?x128xf32>
}
// CHECK-LABEL: dyna.function @saved.backward
// CHECK-SAME:    %{{.*}}: tensor<?x128xf32> in <products>, %{{.*}}: tensor<?x128xf32> in <products, tq = 512>
dyna.function @saved.backward of @saved as backward(%x: tensor<?x64xf32> in <saved_input>, %h: tensor<?x128xf32> in <products>, %n: tensor<?x128xf32> in <products>, %dy: tensor<?x128xf32> in <input>) -> (tensor<?x128xf32> in <output>) {
  %dx = dyna.rows : tensor<?x128xf32> {
    %0 = dyna.mul %h, %dy : tensor<?x128xf32>
    dyna.yield %0 : tensor<?x128xf32>
  }
  dyna.return %dx : tensor<?x128xf32>
}

// -----

// Must not share: the norm reads its whole row after the result's first
// elements are written, so the product's result needs a place of its own.
// CHECK-LABEL: dyna.function @norm
// CHECK-SAME:    workspace <workspace, tq = 256>
// CHECK:         dyna.linear {{.*}} {places = [#dyna.place<workspace>]}
// CHECK:         } {places = [#dyna.place<output>]}
dyna.function @norm of @l as evaluate(%w: tensor<64x64xf32> in <parameter>, %g: tensor<64xf32> in <parameter, index = 1>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>) {
  %m = dyna.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.rows : tensor<?x64xf32> {
    %0 = dyna.rms_norm %m, %g {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32>
    dyna.yield %0 : tensor<?x64xf32>
  }
  dyna.return %y : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Beside a norm, the element-wise path from the product to a yielded sum may
// share; the norm's result may not.
// CHECK-LABEL: dyna.function @sum_and_norm
// CHECK-SAME:    workspace <workspace>
// CHECK:         dyna.linear {{.*}} {places = [#dyna.place<products>]}
// CHECK:         } {places = [#dyna.place<products>, #dyna.place<output>]}
dyna.function @sum_and_norm of @l as forward(%w: tensor<64x64xf32> in <parameter>, %g: tensor<64xf32> in <parameter, index = 1>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>, tensor<?x64xf32> in <products>) {
  %m = dyna.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %y:2 = dyna.rows : tensor<?x64xf32>, tensor<?x64xf32> {
    %0 = dyna.add %m, %x : tensor<?x64xf32>
    %1 = dyna.rms_norm %0, %g {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32>
    dyna.yield %0, %1 : tensor<?x64xf32>, tensor<?x64xf32>
  }
  dyna.return %y#1, %y#0 : tensor<?x64xf32>, tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// A sweep behind its product does not write over what the product reads, although
// it is the operand's last use; a sweep after some other op does.
// CHECK-LABEL: dyna.function @epilogue_operand
// CHECK-SAME:    workspace <workspace, tq = 512>
// CHECK:         } {places = [#dyna.place<workspace>]}
// CHECK:         dyna.linear {{.*}} {places = [#dyna.place<workspace, tq = 256>]}
// CHECK:         } {places = [#dyna.place<workspace, tq = 256>]}
// CHECK:         dyna.linear {{.*}} {places = [#dyna.place<output>]}
dyna.function @epilogue_operand of @l as evaluate(%w: tensor<64x64xf32> in <parameter>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>) {
  %a = dyna.rows : tensor<?x64xf32> {
    %0 = dyna.gelu %x tanh : tensor<?x64xf32>
    dyna.yield %0 : tensor<?x64xf32>
  }
  %m = dyna.linear %a, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.rows : tensor<?x64xf32> {
    %1 = dyna.add %m, %a : tensor<?x64xf32>
    dyna.yield %1 : tensor<?x64xf32>
  }
  %z = dyna.linear %y, %w : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %z : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// Accumulators stay where they are, through sweeps and products, and partial sums
// and kernels get scratch: the last place.
// CHECK-LABEL: dyna.function @accumulate
// CHECK-SAME:    workspace <workspace, tq = {{[0-9]+}}, tkv = {{[0-9]+}}, constant = 8192>
// CHECK:         dyna.rows
// CHECK:         } {places = [#dyna.place<gradient, index = 1>, #dyna.place<workspace>]}
// CHECK:         dyna.linear_grad_weight {{.*}} {places = [#dyna.place<gradient>]}
// CHECK:         dyna.attention_grad {{.*}} places = [#dyna.place<workspace, {{.*}}constant = 8192>, #dyna.place<workspace, {{.*}}constant = 8192>, #dyna.place<workspace, {{.*}}constant = 8192>, #dyna.place<workspace, tq = 768, constant = 8192>]
dyna.function @accumulate of @l as backward(%w: tensor<64x64xf32> in <parameter>, %g: tensor<64x64xf32> in <gradient>, %gb: tensor<64xf32> in <gradient, index = 1>, %s: !dyna.segments in <segments>, %x: tensor<?x64xf32> in <saved_input>, %o: tensor<?x64xf32> in <products>, %lse: tensor<?x8xf32> in <products>, %dy: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>, tensor<64x64xf32> in <gradient>, tensor<64xf32> in <gradient, index = 1>) {
  %gb1 = dyna.rows : tensor<64xf32> {
    %0 = dyna.bias_grad %dy, %gb : tensor<?x64xf32>, tensor<64xf32>
    dyna.yield %0 : tensor<64xf32>
  }
  %g1 = dyna.linear_grad_weight %dy, %x, %g : tensor<?x64xf32>, tensor<?x64xf32>, tensor<64x64xf32>
  %dq, %dk, %dv = dyna.attention_grad %x, %x, %x, %o, %lse, %dy, %s {causal, heads = 8 : i64, kv_heads = 8 : i64, scale = 2.5e-1 : f64} : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x8xf32>
  %a = dyna.linear_grad_input %dq, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %b = dyna.linear_grad_input %dk, %w add %a : tensor<?x64xf32>, tensor<64x64xf32>, tensor<?x64xf32>
  %c = dyna.linear_grad_input %dv, %w add %b : tensor<?x64xf32>, tensor<64x64xf32>, tensor<?x64xf32>
  dyna.return %c, %g1, %gb1 : tensor<?x64xf32>, tensor<64x64xf32>, tensor<64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}

// -----

// The norm's first rows are written while the product still reads its operand for
// later rows: the operand's place, though read for the last time, is not free.
// CHECK-LABEL: dyna.function @epilogue_reads_on
// CHECK-SAME:    workspace <workspace, tq = 768>
dyna.function @epilogue_reads_on of @l as evaluate(%w: tensor<64x64xf32> in <parameter>, %g: tensor<64xf32> in <parameter, index = 1>, %x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <output>) {
  %a = dyna.linear %x, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %m = dyna.linear %a, %w : tensor<?x64xf32>, tensor<64x64xf32>
  %y = dyna.rows : tensor<?x64xf32> {
    %0 = dyna.rms_norm %m, %g {epsilon = 1.0e-5 : f64} : tensor<?x64xf32>, tensor<64xf32>
    dyna.yield %0 : tensor<?x64xf32>
  }
  %z = dyna.linear %y, %w : tensor<?x64xf32>, tensor<64x64xf32>
  dyna.return %z : tensor<?x64xf32>
}
dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
