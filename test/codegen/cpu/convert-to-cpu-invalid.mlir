// RUN: dyna-opt %s --dyna-convert-to-cpu -split-input-file -verify-diagnostics

dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { dyna.return %x : tensor<?x8xf32> }
dyna.function @f of @l as forward(%x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  // expected-error @below {{expects 1 places, but has 0; run --dyna-plan-memory before code generation}}
  %y = dyna.rows : tensor<?x8xf32> {
    %0 = dyna.relu %x : tensor<?x8xf32>
    dyna.yield %0 : tensor<?x8xf32>
  }
  dyna.return %y : tensor<?x8xf32>
}

// -----

dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { dyna.return %x : tensor<?x8xf32> }
dyna.function @f of @l as forward(%x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  // expected-error @below {{stands outside of 'dyna.rows'; run --dyna-fuse-rows before code generation}}
  %y = dyna.relu %x {places = [#dyna.place<output>]} : tensor<?x8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { dyna.return %x : tensor<?x8xf32> }
dyna.function @f of @l as forward(%w: tensor<8x8xf32> in <parameter>, %b: tensor<8xf32> in <parameter, index = 1>, %x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  // expected-error @below {{still has a bias; run --dyna-fuse-rows before code generation}}
  %y = dyna.linear %x, %w, %b {places = [#dyna.place<output>]} : tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32>
  dyna.return %y : tensor<?x8xf32>
}

// -----

dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { dyna.return %x : tensor<?x8xf32> }
dyna.function @f of @l as backward(%g: tensor<8x8xf32> in <gradient>, %x: tensor<?x8xf32> in <input>) -> (tensor<8x8xf32> in <gradient>) {
  // expected-error @below {{expects its accumulator in the place of its result, #dyna.place<workspace>, but it lies in #dyna.place<gradient>}}
  %y = dyna.linear_grad_weight %x, %x, %g {places = [#dyna.place<workspace>]} : tensor<?x8xf32>, tensor<?x8xf32>, tensor<8x8xf32>
  dyna.return %y : tensor<8x8xf32>
}

// -----

dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { dyna.return %x : tensor<?x8xf32> }
dyna.function @f of @l as backward(%g: tensor<8xf32> in <gradient>, %x: tensor<?x8xf32> in <input>) -> (tensor<8xf32> in <gradient>) {
  // expected-error @below {{expects one more place than results, its scratch memory, but has 1 places for 1 results}}
  %y = dyna.rows : tensor<8xf32> {
    %0 = dyna.bias_grad %x, %g : tensor<?x8xf32>, tensor<8xf32>
    dyna.yield %0 : tensor<8xf32>
  } {places = [#dyna.place<gradient>]}
  dyna.return %y : tensor<8xf32>
}

// -----

dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { dyna.return %x : tensor<?x8xf32> }
dyna.function @f of @l as forward(%s: !dyna.segments in <segments>, %x: tensor<?x8xf32> in <input>) -> (tensor<?x8xf32> in <output>) {
  %y = dyna.rows : tensor<?x8xf32> {
    %0 = dyna.relu %x : tensor<?x8xf32>
    // expected-error @below {{expects an operand from outside its 'dyna.rows': it needs whole rows}}
    %1 = dyna.rotary %0, %s {head_dim = 8 : i64, theta = 1.0e4 : f64} : tensor<?x8xf32>
    dyna.yield %1 : tensor<?x8xf32>
  } {places = [#dyna.place<output>]}
  dyna.return %y : tensor<?x8xf32>
}

// -----

// A gradient cannot be copied to where it should have been made.
dyna.layer @l(%x: tensor<?x8xf32>) -> tensor<?x8xf32> { dyna.return %x : tensor<?x8xf32> }
dyna.function @f of @l as backward(%g: tensor<8xf32> in <gradient, index = 1>) -> (tensor<8xf32> in <gradient>) {
  // expected-error @below {{expects result 0 to be computed in its place #dyna.place<gradient>, but it lies in #dyna.place<gradient, index = 1>}}
  dyna.return %g : tensor<8xf32>
}
