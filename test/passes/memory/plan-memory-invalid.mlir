// RUN: dyna-opt %s -split-input-file -verify-diagnostics --dyna-plan-memory

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// expected-note @+1 {{first seen in "forward"}}
dyna.function @forward of @l as forward(%x: tensor<?x64xf32> in <input>) -> (tensor<?x64xf32> in <products>) {
  dyna.return %x : tensor<?x64xf32>
}
// expected-error @+1 {{expects value 0 of the tier 'products' to be 'tensor<?x64xf32>', but got 'tensor<?x32xf32>'}}
dyna.function @backward of @l as backward(%x: tensor<?x32xf32> in <products>) {
  dyna.return
}

// -----

dyna.layer @l(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  dyna.return %x : tensor<?x64xf32>
}
// The gradient that comes in is the caller's: nothing may be added to it in place.
dyna.function @backward of @l as backward(%dy: tensor<?x64xf32> in <input>, %w: tensor<64x64xf32> in <parameter>) -> (tensor<?x64xf32> in <output>) {
  // expected-error @+1 {{adds in place to an accumulator that is needed afterwards}}
  %0 = dyna.linear_grad_input %dy, %w add %dy : tensor<?x64xf32>, tensor<64x64xf32>, tensor<?x64xf32>
  dyna.return %0 : tensor<?x64xf32>
}
